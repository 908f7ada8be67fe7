"""``nclone-env replay``: verify, record, play and film recordings."""

from __future__ import annotations

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.constants import FRAMES_PER_SECOND
from nclone_env.errors import FormatError
from nclone_env.level.formats.attract import read_attract
from nclone_env.level.formats.reader import read_bytes
from nclone_env.level.load import load_level
from nclone_env.level.solutions import parse_inputs
from nclone_env.replay.recording import SUFFIX, Recording, is_recording, read_recording
from nclone_env.replay.verify import STATE_NAMES, Verdict, verify
from nclone_env.replay.video import recording_pictures, write_video


def verify_replays(files: Positional[tuple[Path, ...]]) -> int:
    """Play recordings again and print whether the simulator agrees; return 1 if one disagrees, else 0.

    Args:
        files: attract files of the game, or recordings of ``replay record``.
    """
    if not files:
        return _fail("files: expected at least one recording, got none")
    width = max([len("file"), *(len(str(path)) for path in files)])
    print(f"{'file':<{width}}  agrees  frames  {'end':<12}  gold  reason")
    disagreeing = sum(not _print_verdict(path, width) for path in files)
    print(f"{len(files)} recordings, {disagreeing} disagree")
    return 1 if disagreeing else 0


def record_replay(
    level: Positional[str],
    output: Path | None = None,
    inputs: str = "",
    human: bool = False,
    scale: float = 1.0,
    force: bool = False,
) -> int:
    """Record a run on a level: given inputs, or a person at the keyboard.

    Args:
        level: name of a built-in level, a level file, or a level of a pack (pack.txt#12).
        output: file to write; ``<level>.replay`` in the current folder by default.
        inputs: words such as "24RJ 3." for 24 frames of right and jump and 3 of nothing; L left, R right, J jump.
        human: play in a window; S saves the run so far.
        scale: size of the window; 1 is 1056 x 600 pixels.
        force: overwrite an existing file.
    """
    if human == bool(inputs):
        return _fail("inputs, human: expected one of the two; --inputs '24RJ 3.' or --human")
    compiled = load_level(level)
    target = output or Path(f"{compiled.name.replace('/', '-')}{SUFFIX}")
    if target.exists() and not force:
        return _fail(f"{target}: expected a new file, got one that exists; --force overwrites it")
    if not human:
        return _save(Recording.of(compiled, parse_inputs(inputs, "inputs"), {"level": compiled.name}), target)
    from nclone_env.replay import play

    print(play.HELP)
    play.play(compiled, lambda recording: _save(recording, target), play.open_window(compiled.name, scale), scale)
    return 0


def play_replay(file: Positional[Path], scale: float = 1.0) -> int:
    """Show a recording in a window, at the speed of the game.

    Args:
        file: an attract file of the game, or a recording of ``replay record``.
        scale: size of the window; 1 is 1056 x 600 pixels.
    """
    from nclone_env.replay import play

    recording = _recording_of(file)
    play.watch(recording_pictures(recording, scale), play.open_window(file.name, scale))
    return 0


def film_replay(
    file: Positional[Path], output: Path | None = None, scale: float = 1.0, every: int = 1, force: bool = False
) -> int:
    """Write a recording as a video, at the speed of the game.

    Args:
        file: an attract file of the game, or a recording of ``replay record``.
        output: MP4 file to write; ``<file>.mp4`` in the current folder by default.
        scale: size of the pictures; 1 is 1056 x 600 pixels.
        every: frames from one picture to the next.
        force: overwrite an existing file.
    """
    if every < 1:
        return _fail(f"every: expected a whole number of at least 1, got {every}")
    target = output or Path(f"{file.stem}.mp4")
    if target.exists() and not force:
        return _fail(f"{target}: expected a new file, got one that exists; --force overwrites it")
    pictures = recording_pictures(_recording_of(file), scale, every)
    try:
        count = write_video(pictures, target, FRAMES_PER_SECOND / every)
    except OSError as error:
        return _fail(f"{target}: cannot be written: {error.strerror}")
    print(f"wrote {target} ({count} pictures)")
    return 0


def _print_verdict(path: Path, width: int) -> bool:
    """Print the row of one file; return whether it is well-formed and the simulator agrees."""
    try:
        found = _verify_any(path)
    except FormatError as error:
        print(f"{path!s:<{width}}  {'no':<6}  {'-':>6}  {'-':<12}  {'-':>4}  {error}")
        return False
    answer, end = "yes" if found.agrees else "no", STATE_NAMES[found.state]
    print(f"{path!s:<{width}}  {answer:<6}  {found.frames:>6}  {end:<12}  {found.gold:>4}  {found.reason}")
    return found.agrees


def _verify_any(path: Path) -> Verdict:
    data = read_bytes(path)
    return read_recording(data, str(path)).prove() if is_recording(data) else verify(read_attract(data, str(path)))


def _recording_of(path: Path) -> Recording:
    """Return a recording from a file of either kind."""
    data = read_bytes(path)
    if is_recording(data):
        return read_recording(data, str(path))
    attract = read_attract(data, str(path))
    return Recording.of(attract.level, attract.inputs)


def _save(recording: Recording, target: Path) -> int:
    """Write a recording and say so; return the exit status."""
    try:
        recording.save(target)
    except OSError as error:
        return _fail(f"{target}: cannot be written: {error.strerror}")
    print(f"wrote {target} ({len(recording.inputs)} frames, hash {recording.trajectory_hash})")
    return 0


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1
