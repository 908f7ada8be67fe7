"""``nclone-env replay``: record and verify runs, play them back, and export them as video."""

from __future__ import annotations

from pathlib import Path

from tyro.conf import Positional

from nclone_env._table import table
from nclone_env.cli.output import check_exists, check_free, check_suffix, counted
from nclone_env.cli.play import check_scale, play_in_window, saved_text
from nclone_env.config import Theme
from nclone_env.constants import FRAMES_PER_SECOND
from nclone_env.errors import ConfigError, FormatError, UnknownLevelError, plain
from nclone_env.level import Level, load_level, parse_inputs
from nclone_env.options import check_integer
from nclone_env.replay import (
    RECORDING_SUFFIX,
    STATE_NAMES,
    VIDEO_SUFFIXES,
    Recording,
    frame_rate,
    load_any_recording,
    load_verified,
    recording_pictures,
    write_video,
)


def verify_replays(files: Positional[tuple[Path, ...]]) -> int:
    """Replay recordings and print whether the simulator reproduces them; the exit status is 1 if one differs, else 0.

    Args:
        files: recordings made by ``replay record``, attract files of the game, or recordings of nclone.
    """
    if not files:
        raise ConfigError("files: expected at least one recording, got none")
    rows = [_row(path) for path in files]
    print("\n".join(table(("file", "agrees", "frames", "end", "gold", "reason"), rows)))
    disagreeing = sum(agrees != "yes" for _, agrees, *_ in rows)
    print(f"{counted(len(files), 'recording')}, {disagreeing} disagree")
    return 1 if disagreeing else 0


def convert_replay(source: Positional[Path], target: Positional[Path], force: bool = False) -> int:
    """Convert an attract file of the game or a recording of nclone to a recording (.replay).

    Args:
        source: file to read.
        target: file to write.
        force: overwrite an existing file.
    """
    check_suffix("target", target, RECORDING_SUFFIX)
    check_free(target, force)
    recording = load_any_recording(source)
    recording.save(target)
    print(f"wrote {target} ({counted(len(recording.inputs), 'frame')}, hash {recording.trajectory_hash})")
    return 0


def record_replay(
    level: Positional[str],
    output: Path | None = None,
    inputs: str = "",
    human: bool = False,
    scale: float = 1.0,
    force: bool = False,
) -> int:
    """Record a run on a level, from given inputs or from the keyboard.

    Args:
        level: name of a built-in level, path of a level file, or a level of a pack (pack.txt#12).
        output: file to write; ``<level>.replay`` in the current directory by default.
        inputs: frame counts and keys, for example "24RJ 3.": 24 frames of right and jump, then 3 without keys; L left,
            R right, J jump.
        human: play with the keyboard in a window, as ``play`` does; S saves the run so far to ``output``.
        scale: size of the window; 1 is 1056 x 600 pixels and a bar below.
        force: overwrite an existing file.
    """
    if human == bool(inputs.strip()):
        raise ConfigError("inputs, human: expected exactly one of --inputs '24RJ 3.' and --human")
    compiled = load_level(level)
    target = output or Path(f"{compiled.name.replace('/', '-')}{RECORDING_SUFFIX}")
    check_free(target, force)
    if human:
        play_in_window([compiled], lambda recording: saved_text(recording, target), scale)
        return 0
    recording = Recording.of(compiled, parse_inputs(inputs, "inputs"), {"level": compiled.name})
    recording.save(target)
    print(f"wrote {target} ({len(recording.inputs)} frames, hash {recording.trajectory_hash})")
    return 0


def play_replay(file: Positional[Path], scale: float = 1.0, theme: Theme = "light") -> int:
    """Play back a recording in a window at 60 frames per second.

    Args:
        file: an attract file of the game, or a recording made by ``replay record``.
        scale: size of the window; 1 is at most 1056 x 600 pixels and a bar below.
        theme: colours, light or dark.
    """
    from nclone_env.replay import show, view_size

    check_scale(scale)
    check_exists("file", file, "a recording")
    recording = load_any_recording(file)
    size = view_size([Level.of(recording.level)], scale)
    show(recording_pictures(recording, scale, theme=theme), file.name, size)
    return 0


def export_video(
    file: Positional[Path],
    output: Path | None = None,
    scale: float = 1.0,
    every: int | None = None,
    theme: Theme = "light",
    force: bool = False,
) -> int:
    """Export a recording as a video that plays in real time.

    Args:
        file: an attract file of the game, or a recording made by ``replay record``.
        output: .mp4, .webm or .gif file to write; ``<file>.mp4`` in the current directory by default.
        scale: size of the video; 1 is at most 1056 x 600 pixels and a bar below.
        every: keep every n-th frame; all by default, of a GIF every second one.
        theme: colours, light or dark.
        force: overwrite an existing file.
    """
    check_scale(scale)
    target = output or Path(f"{file.stem}{VIDEO_SUFFIXES[0]}")
    check_suffix("output", target, *VIDEO_SUFFIXES)
    kept = FRAMES_PER_SECOND // frame_rate(target) if every is None else every
    check_integer("every", kept, low=1)
    check_exists("file", file, "a recording")
    recording = load_any_recording(file)
    check_free(target, force)
    count = write_video(recording_pictures(recording, scale, kept, theme), target, FRAMES_PER_SECOND / kept)
    print(f"wrote {target} ({count} pictures)")
    return 0


def _row(path: Path) -> tuple[str, ...]:
    """Return the row of a file: whether it is valid and the simulator reproduces it, how it ends, and why not."""
    try:
        _, found = load_verified(path)
    except UnknownLevelError:
        return plain(path), "no", "-", "-", "-", f"{plain(path)}: expected a recording, got no such file"
    except FormatError as error:
        return plain(path), "no", "-", "-", "-", plain(error)
    agrees, end = "yes" if found.agrees else "no", STATE_NAMES[found.state]
    return plain(path), agrees, str(found.frames), end, str(found.gold), found.reason
