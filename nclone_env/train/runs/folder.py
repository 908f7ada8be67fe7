"""The folder of a run: chosen so that no two runs mix, and locked while one of them writes to it.

A job that ``torchrun`` restarts after the loss of a rank continues the run that it began. The folder of a run names
the ``torchrun`` processes of its job. A restarted job looks for a folder that names one of its own, so it continues no
run of another job, not even if its first attempt failed because the folder held that run.
"""

import itertools
import os
import shutil
import socket
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from torch import distributed

from nclone_env._files import LOCK, FileLock, naming, remove_temporaries, temporary_beside, write_file
from nclone_env.errors import RunFolderError
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.files import LATEST, checkpoint_file
from nclone_env.train.ranks import Ranks
from nclone_env.train.runs.trackers import TENSORBOARD, WANDB

BEST = "best.pt"
RECORD = "run.toml"
_CURVE, _LEVELS = "learning_curve.csv", "levels.csv"
_REPORTS = ("learning_curve.png", "evaluation.txt", "evaluation.csv", "episode.mp4")
_JOB = ".job"
"""File that names the launchers of a job of several processes, one a line."""


class RunFolder:
    """A folder that this process alone trains in, until :meth:`close` or the end of the process.

    Ranks other than 0 do not lock it: rank 0 has.

    Attributes:
        path: the folder.
        checkpoint: the latest checkpoint.
        best: the checkpoint with the best recent success.
        levels: the table of levels.
        record: the file of all options of the run, and of what it ran on.
    """

    def __init__(self, path: Path, lock: bool = True):
        self.path, self.checkpoint, self.best = path, path / LATEST, path / BEST
        self.levels, self.record = path / _LEVELS, path / RECORD
        self._lock: FileLock | None = None
        if not lock:
            return
        path.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = FileLock(path / LOCK)
        except BlockingIOError as error:
            raise RunFolderError(
                f"{path}: another process is training in this folder; wait for it, or pass another --name"
            ) from error
        remove_temporaries(path)

    def replace_run(self, write: Callable[[Path], object]) -> None:
        """Replace an earlier run, if there is one, by the first checkpoint of another; other files stay.

        Nothing is removed before the checkpoint is complete, and the latest of the earlier run last.
        """
        if not _holds_run(self.path):
            return
        with naming(self.checkpoint), temporary_beside(self.checkpoint) as temporary:
            write(temporary)
            for name in (BEST, RECORD, _CURVE, _LEVELS, _JOB, *_REPORTS):
                (self.path / name).unlink(missing_ok=True)
            for name in (TENSORBOARD, WANDB):
                shutil.rmtree(self.path / name, ignore_errors=True)
            temporary.replace(self.checkpoint)

    def close(self) -> None:
        """Release the folder; remove it if nothing was written to it."""
        if self._lock is None:
            return
        holds = _holds_run(self.path)
        self._lock.release(remove=not holds)
        if not holds:
            with suppress(OSError):  # not empty
                self.path.rmdir()


def lock_folder(config: TrainConfig, source: Path | None = None, overwrite: bool = False) -> RunFolder:
    """Choose and lock the folder of a run.

    A run that is named uses that folder, a resumed one without a name the folder of its checkpoint. A new run without
    a name uses a folder named after levels and seed, with a number from 2 on if that holds another run.
    """
    named = _named_folder(config, source)
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
            if not _holds_run(folder.path):
                return folder
            folder.close()
    raise AssertionError


def _named_folder(config: TrainConfig, source: Path | None) -> Path | None:
    """Return the folder that a run must use, None if it may choose one."""
    if config.name:
        return config.run_folder
    if source is None or source.parent.name not in ("", ".."):
        return source and source.parent
    return source.resolve().parent  # so that it has a name of its own


def config_in(folder: RunFolder, config: TrainConfig) -> TrainConfig:
    """Return the configuration with the chosen folder."""
    return config.replace(output=folder.path.parent, name=folder.path.name)


def _holds_run(path: Path) -> bool:
    """Return whether a folder holds files of a run."""
    return path.is_dir() and any(entry.name in (LATEST, BEST, _CURVE, TENSORBOARD) for entry in path.iterdir())


def _check_free(path: Path, source: Path | None) -> None:
    """Check that a run in this folder mixes with no other: the folder is free, or the run is continued from its end."""
    if not _holds_run(path) or (source is not None and source.name == LATEST and _same(source.parent, path)):
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


def launchers(ranks: Ranks) -> frozenset[str]:
    """Return the ``torchrun`` processes that started the ranks; empty without ``torchrun``.

    They live on when ranks are restarted. On several machines one of them may be lost.
    """
    return frozenset(filter(None, ranks.exchange(_launcher())))


def lock_folder_for_all(
    config: TrainConfig, resume: str | Path | None, overwrite: bool, ranks: Ranks, job: Collection[str]
) -> tuple[RunFolder, Path | None]:
    """Choose and lock the folder of a run for all ranks of a job, and the checkpoint to continue from."""
    locked = []

    def choose() -> tuple[Path, Path | None]:
        source = None if resume is None else checkpoint_file(resume)
        source = _own_checkpoint(config, source, job) or source
        locked.append(lock_folder(config, source, overwrite))
        return locked[0].path, source

    path, source = ranks.from_first(choose)
    return (locked[0] if ranks.first else RunFolder(path, lock=False)), source


def _own_checkpoint(config: TrainConfig, source: Path | None, job: Collection[str]) -> Path | None:
    """Return the latest checkpoint of the run that this job began, from ``source``, before a restart; else None."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) == 0:
        return None
    path = _named_folder(config, source)
    for folder in config.output.glob(f"{config.run_folder.name}*") if path is None else (path,):
        named = (folder / _JOB).read_text().splitlines() if (folder / _JOB).is_file() else []
        if (folder / LATEST).is_file() and not set(named).isdisjoint(job):
            return folder / LATEST
    return None


def name_job(folder: RunFolder, job: Collection[str]) -> None:
    """Note which job writes to a folder."""
    if job:
        write_file(folder.path / _JOB, "\n".join(sorted(job)).encode())


def _launcher() -> str:
    """Return what tells the parent process from all others, of other machines and times as well."""
    if not distributed.is_torchelastic_launched():
        return ""
    parent = os.getppid()
    boot = started = ""
    with suppress(OSError):  # only Linux tells
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        fields = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started = fields[19]  # clock ticks since the boot
    return f"{socket.gethostname()} {boot} {parent} {started}"
