"""The runs that a gallery shows: found in files, and replayed by the simulator before they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nclone_env.constants import CELEBRATING
from nclone_env.errors import LevelFormatError, RecordingError
from nclone_env.level import Level, RawLevel
from nclone_env.level.formats import is_attract
from nclone_env.replay import RECORDING_SUFFIX, STATE_NAMES, Verdict, is_recording, load_verified, verdict
from nclone_env.sim.simulate import simulate

_START = 1 << 16  # bytes that show whether a file is a recording: a level has at most so many before its inputs


@dataclass(frozen=True, eq=False)
class GalleryRun:
    """Inputs on a level that the simulator has reproduced.

    Attributes:
        label: what the run is called: name of its file, without the suffix.
        level: the level it was played on.
        inputs: (T,) uint8.
        end: ``won``, ``dead`` or another state of the ninja after the last frame.
        frames: frames until the ninja won or died, T if neither.
        gold: pieces collected.
    """

    label: str
    level: RawLevel
    inputs: np.ndarray
    end: str
    frames: int
    gold: int

    @property
    def won(self) -> bool:
        """Whether the run completes the level."""
        return self.end == STATE_NAMES[CELEBRATING]

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Sort key: completed runs first, then short ones."""
        return not self.won, self.frames, self.label


def run_of(label: str, level: RawLevel | Level, inputs: bytes | np.ndarray) -> GalleryRun:
    """Play inputs and return the run."""
    raw = level.raw if isinstance(level, Level) else level
    codes = np.frombuffer(inputs, np.uint8) if isinstance(inputs, bytes) else inputs
    return _run(label, raw, codes, verdict(True, "", simulate(level, codes), len(codes)))


def _run(label: str, level: RawLevel, inputs: np.ndarray, found: Verdict) -> GalleryRun:
    return GalleryRun(label, level, inputs, STATE_NAMES[found.state], found.end, found.gold)


def solution_of(level: Level, inputs: bytes) -> GalleryRun:
    """Return a known solution of a level as a run.

    Raises:
        RecordingError: if it does not complete the level.
    """
    run = run_of("known solution", level, inputs)
    if not run.won:
        raise RecordingError(level.name, "known solution", "inputs that complete the level", f"a ninja {run.end}")
    return run


def load_run(path: Path) -> GalleryRun:
    """Read a recording, ``.replay`` or attract file, and replay it.

    Raises:
        UnknownLevelError: if the file does not exist.
        LevelFormatError: if it cannot be read, or is neither a recording nor a well-formed attract file.
        RecordingError: if it is a malformed recording, or the simulator does not reproduce it.
    """
    file, found = load_verified(path)
    if not found.agrees:
        raise RecordingError(str(path), "replay", "a run that the simulator reproduces", found.reason)
    return _run(path.stem, file.level, file.inputs, found)


def recording_files(path: Path) -> list[Path]:
    """Return a file, or the recordings in a folder by name; other files of the folder are not recordings.

    Raises:
        LevelFormatError: if the folder cannot be read.
    """
    if not path.is_dir():
        return [path]
    try:
        files = sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith("."))
        return [file for file in files if _starts_as_recording(file)]
    except OSError as error:
        raise LevelFormatError(str(path), "folder", "a readable folder of recordings", str(error)) from error


def _starts_as_recording(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_START)
    return is_recording(start) or is_attract(start) or path.suffix == RECORDING_SUFFIX


def without_copies(runs: Sequence[GalleryRun]) -> list[GalleryRun]:
    """Return runs by rank, of those with the same inputs the first one given."""
    first: dict[bytes, GalleryRun] = {}
    for run in runs:
        first.setdefault(run.inputs.tobytes(), run)
    return sorted(first.values(), key=lambda run: run.rank)
