"""The folder of a run: chosen so that no two runs mix, and locked while one of them writes to it.

Policies that ship with the package are files here too, by name: each a checkpoint without what only training needs, and
a card.
"""

from __future__ import annotations

import itertools
import shutil
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from nclone_env._files import FileLock, naming, remove_temporaries, temporary_beside
from nclone_env.errors import CheckpointError, ConfigError, RunFolderError, did_you_mean, shortened
from nclone_env.train.config import TrainConfig
from nclone_env.train.runs.hub import HUB, hub_file

LATEST, BEST = "checkpoint.pt", "best.pt"
_CURVE, _LEVELS, _EVENTS = "learning_curve.csv", "levels.csv", "tensorboard"
_REPORTS = ("learning_curve.png", "evaluation.txt", "evaluation.csv", "episode.mp4")
_LOCK = ".lock"
JOB = ".job"
"""File that names the launchers of a job of several processes, one a line; see ``train.runs.torchrun``."""
BUNDLED = Path(__file__).parents[2] / "policies"
_WEIGHTS = ".pt"


class RunFolder:
    """A folder that this process alone trains in, until :meth:`close` or the end of the process.

    Attributes:
        path: the folder.

    Raises:
        RunFolderError: if another process is training in it.
    """

    def __init__(self, path: Path):
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = FileLock(path / _LOCK)
        except BlockingIOError as error:
            raise RunFolderError(
                f"{path}: another process is training in this folder; wait for it, or pass another --name"
            ) from error
        remove_temporaries(path)

    @property
    def checkpoint(self) -> Path:
        """The latest checkpoint."""
        return self.path / LATEST

    @property
    def best(self) -> Path:
        """The checkpoint with the best recent success."""
        return self.path / BEST

    @property
    def levels(self) -> Path:
        """The table of levels."""
        return self.path / _LEVELS

    def replace_run(self, write: Callable[[Path], object]) -> None:
        """Replace an earlier run, if there is one, by the first checkpoint of another; other files stay.

        Nothing is removed before the checkpoint is complete, and the latest of the earlier run last.

        Args:
            write: writes the checkpoint, given its path.
        """
        if not holds_run(self.path):
            return
        with naming(self.checkpoint), temporary_beside(self.checkpoint) as temporary:
            write(temporary)
            for name in (BEST, _CURVE, _LEVELS, JOB, *_REPORTS):
                (self.path / name).unlink(missing_ok=True)
            shutil.rmtree(self.path / _EVENTS, ignore_errors=True)
            temporary.replace(self.checkpoint)

    def close(self) -> None:
        """Release the folder; remove it if nothing was written to it."""
        holds = holds_run(self.path)
        self._lock.release(remove=not holds)
        if not holds:
            with suppress(OSError):  # not empty
                self.path.rmdir()


class SharedFolder(RunFolder):
    """The folder of a run as ranks other than 0 know it: its paths only.

    Args:
        path: the folder, which rank 0 has locked.
    """

    def __init__(self, path: Path):
        self.path = path

    def close(self) -> None:
        """Leave the folder to rank 0."""


def lock_folder(config: TrainConfig, source: Path | None = None, overwrite: bool = False) -> RunFolder:
    """Choose and lock the folder of a run.

    A run that is named uses that folder, a resumed one without a name the folder of its checkpoint. A new run without
    a name uses a folder named after levels and seed, with a number from 2 on if that holds another run.

    Args:
        source: checkpoint to resume.
        overwrite: whether the folder may hold another run.

    Raises:
        RunFolderError: if the folder holds another run, or another process is training in it.
    """
    named = named_folder(config, source)
    base = named or config.run_folder
    if named or overwrite:
        folder = RunFolder(base)
        try:
            if not overwrite:
                _check_free(base, source)
        except RunFolderError:
            folder.close()
            raise
        return folder
    for number in itertools.count(1):
        with suppress(RunFolderError):  # another process is training in it
            folder = RunFolder(base if number == 1 else base.with_name(f"{base.name}-{number}"))
            if not holds_run(folder.path):
                return folder
            folder.close()
    raise AssertionError


def named_folder(config: TrainConfig, source: Path | None) -> Path | None:
    """Return the folder that a run must use, None if it may choose one."""
    if config.name:
        return config.run_folder
    return None if source is None else _parent(source)


def config_in(folder: RunFolder, config: TrainConfig) -> TrainConfig:
    """Return the configuration with the chosen folder."""
    return config.replace(output=folder.path.parent, name=folder.path.name)


def checkpoint_file(path: str | Path) -> Path:
    """Return the checkpoint that is meant by a file or by the folder of a run.

    Raises:
        CheckpointError: if there is no such file.
    """
    path = Path(path)
    file = path / LATEST if path.is_dir() else path
    if not file.is_file():
        hint = f"; to begin a new run with this policy pass --init {path}" if is_named(path) else ""
        raise CheckpointError(
            f"{file}: expected a checkpoint file, but the file does not exist; "
            f"pass the folder of a run or a checkpoint in it{hint}"
        )
    return file


def holds_run(path: Path) -> bool:
    """Return whether a folder holds files of a run."""
    return path.is_dir() and any(_is_part(entry.name) for entry in path.iterdir())


def _is_part(name: str) -> bool:
    """Return whether only a run has files of this name."""
    return name in (LATEST, BEST, _CURVE, _EVENTS)


def _check_free(path: Path, source: Path | None) -> None:
    """Check that a run in this folder mixes with no other: the folder is free, or the run is continued from its end."""
    if not holds_run(path) or (source is not None and source.name == LATEST and _same(source.parent, path)):
        return
    if source is not None and _same(source.parent, path):
        if not (path / LATEST).exists():
            return
        raise RunFolderError(
            f"{path}: resuming from {source.name} would discard what follows it in {LATEST}; "
            "pass another --name to branch off, or --overwrite to discard it"
        )
    resume = f"pass --resume {path} to continue it, " if (path / LATEST).exists() else "pass "
    raise RunFolderError(f"{path}: the folder holds another run; {resume}another --name, or --overwrite to replace it")


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _parent(source: Path) -> Path:
    """Return the folder of a file such that it has a name of its own."""
    return source.parent if source.parent.name not in ("", "..") else source.resolve().parent


def bundled_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the package, in alphabetical order."""
    return tuple(sorted(path.stem for path in BUNDLED.glob(f"*{_WEIGHTS}")))


def policy_file(path: str | Path) -> Path:
    """Return the checkpoint that is meant by a file, the folder of a run, or the name of a bundled policy or ``hub:``.

    A checkpoint of the user has precedence over a bundled policy of the same name.

    Raises:
        CheckpointError: if there is no such file or policy.
    """
    if str(path).startswith(HUB):
        return hub_file(str(path))
    try:
        return checkpoint_file(path)
    except CheckpointError as error:
        name, known = str(path), bundled_names()
        if name in known:
            return BUNDLED / f"{name}{_WEIGHTS}"
        hint = did_you_mean(name, known)
        raise CheckpointError(f"{error}, or name a bundled policy: {', '.join(known)}{hint}") from error


def is_named(path: str | Path) -> bool:
    """Return whether a policy is named, a bundled one or one on the hub, rather than a file of the user."""
    return str(path).startswith(HUB) or (str(path) in bundled_names() and not Path(path).exists())


def policy_card(name: str) -> dict[str, Any]:
    """Return what is known of a bundled policy: how it was made, and its scores.

    Raises:
        ConfigError: if there is no such policy.
    """
    known = bundled_names()
    if name not in known:
        raise ConfigError(
            f"policy: expected one of {', '.join(known)}, got {shortened(name)}{did_you_mean(name, known)}"
        )
    return tomllib.loads((BUNDLED / f"{name}.toml").read_text(encoding="utf-8"))
