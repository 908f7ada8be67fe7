"""``nclone-env watch``: watch policies and recordings in a window, or write them as a video."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from nclone_env.cli.output import check_free
from nclone_env.cli.play import check_scale
from nclone_env.constants import FRAMES_PER_SECOND
from nclone_env.errors import ConfigError, shortened
from nclone_env.level.formats import appearance, read_bytes
from nclone_env.options import check_integer
from nclone_env.replay import is_any_recording, load_any_recording, named_level, write_video
from nclone_env.train import require_training_extra

if TYPE_CHECKING:
    from nclone_env.replay import WatchedRun

_CHECKPOINT_MAGIC = b"PK\x03\x04"
_HOLD = FRAMES_PER_SECOND  # frames for which the end of a run stays
Rounds = Callable[[int], "list[WatchedRun]"]
"""Number of a round to its runs."""


def watch_runs(
    sources: Positional[tuple[Path, ...]],
    levels: tuple[str, ...] = (),
    argmax: bool = False,
    views: int = 9,
    seed: int = 0,
    scale: float = 1.0,
    output: Path | None = None,
    force: bool = False,
) -> int:
    """Watch policies and recordings, several at once, at 60 frames per second until Esc or the window is closed.

    A policy plays episode after episode on each of its levels.

    Args:
        sources: checkpoints, folders of runs (their latest checkpoint), and recordings.
        levels: levels that policies play; by default those of their runs.
        argmax: take the most probable action instead of a sampled one.
        views: most runs shown at once.
        seed: seed of sampled actions.
        scale: size of the picture; 1 is 1056 x 600 pixels and a bar below each run.
        output: MP4 file to write instead of opening a window: one episode on each level, and each recording once.
        force: overwrite an existing file.
    """
    if not sources:
        raise ConfigError("sources: expected at least one checkpoint, folder of a run or recording, got none")
    check_scale(scale)
    check_integer("views", views, low=1, high=64)
    if output is not None:
        check_free(output, force)
    rounds = _rounds(sources, levels, "argmax" if argmax else "sampled", seed)
    if output is None:
        show(rounds, views, scale)
        return 0
    from nclone_env.replay import grid_pictures  # OpenCV is only needed to draw

    runs = rounds(0)
    pictures = grid_pictures(iter(runs), min(views, len(runs)), scale, _HOLD)
    count = write_video(pictures, output, FRAMES_PER_SECOND)
    print(f"wrote {output} ({count / FRAMES_PER_SECOND:.1f} s)")
    return 0


def show(rounds: Rounds, views: int, scale: float) -> None:
    """Show round after round in a window."""
    from nclone_env.replay import grid_pictures, grid_size, show

    first = rounds(0)
    count = min(views, len(first))
    pictures = grid_pictures(itertools.chain(first, _later(rounds)), count, scale, _HOLD)
    show(pictures, "nclone-env watch", grid_size(count, scale))


def _later(rounds: Rounds) -> Iterator[WatchedRun]:
    for number in itertools.count(1):
        yield from rounds(number)


def _rounds(sources: tuple[Path, ...], levels: tuple[str, ...], mode: Any, seed: int) -> Rounds:
    """Read the sources; return what makes the runs of a round.

    Raises:
        ConfigError: if a file is missing, or levels are given and no source is a checkpoint.
        CheckpointError, FormatError: if a source cannot be read.
    """
    makers = [
        _policy_maker(path, levels, mode, seed, label=len(sources) > 1) if _is_checkpoint(path) else _replayed(path)
        for path in sources
    ]
    if levels and not any(map(_is_checkpoint, sources)):
        raise ConfigError(f"levels: expected none for recordings, which have a level of their own, got {levels}")
    return lambda number: [run for maker in makers for run in maker(number)]


def _is_checkpoint(path: Path) -> bool:
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_CHECKPOINT_MAGIC)) == _CHECKPOINT_MAGIC
    except OSError as error:
        expected = "expected a checkpoint, the folder of a run, or a recording"
        raise ConfigError(f"sources: {expected}, got {shortened(str(path), 200)}: {error.strerror}") from error


def _replayed(path: Path) -> Rounds:
    from nclone_env.replay import WatchedRun

    data = read_bytes(path)
    if not is_any_recording(data):
        expected = "expected a checkpoint, the folder of a run, or a recording (a .replay or an attract file)"
        fix = "name what nclone-env train, play or replay record wrote"
        raise ConfigError(f"sources: {expected}, got {shortened(str(path), 200)}, {appearance(data)}; {fix}")
    recording = load_any_recording(path)
    return lambda number: [WatchedRun(named_level(recording), recording.inputs.tolist(), path.name)]


def _policy_maker(path: Path, levels: tuple[str, ...], mode: Any, seed: int, label: bool) -> Rounds:
    require_training_extra()
    from nclone_env.train import load_policy, policy_runs

    policy, environment, _ = load_policy(path, levels)
    name = f"{path.name if path.is_dir() else path.absolute().parent.name}: " if label else ""
    return lambda number: policy_runs(policy, environment, mode, seed + number, name)
