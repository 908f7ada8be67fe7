"""``nclone-env play`` and ``nclone-env replay``: play levels; record, convert and verify runs."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from nclone_env._files import inner_folders
from nclone_env._table import table
from nclone_env.cli.output import check_exists, check_free, check_suffix, counted, make_folder, plain_name
from nclone_env.cli.progress import say
from nclone_env.config import Theme
from nclone_env.errors import ConfigError, FormatError, NcloneError, UnknownLevelError, cut, plain, shortened
from nclone_env.level import Level, level_sets, load_level, load_levels, parse_inputs
from nclone_env.replay import (
    RECORDING_SUFFIX,
    STATE_NAMES,
    Recording,
    load_any_recording,
    load_verified,
    named_level,
    recording_files,
)


def play_levels(
    levels: Positional[tuple[str, ...]] = (),
    ghost: tuple[Path, ...] = (),
    begin: Annotated[Path | None, tyro.conf.arg(name="from")] = None,
    frame: int | None = None,
    output: Path = Path("."),
    scale: float = 1.0,
    theme: Theme = "light",
) -> int:
    """Play levels with the keyboard in a window, at 60 frames per second; H shows the keys.

    Args:
        levels: built-in sets or levels, level files, packs, or levels of packs (pack.txt#12); all built-in levels by
            default.
        ghost: recordings whose ninjas run along, translucent, each on its level.
        begin: recording to go on from; its level is played, alone unless levels are named.
        frame: frame of that recording to begin at, paused; its last one by default.
        output: folder for the runs that S saves; created if it is missing.
        scale: size of the window; 1 is at most 1056 x 600 pixels and a bar below.
        theme: colours, light or dark.
    """
    from nclone_env.replay import play_in_window  # only a window needs OpenCV

    check_scale(scale)
    begun = _begun(begin, frame)
    loaded = [*([begun[0]] if begun else []), *(load_levels(levels or level_sets()) if levels or not begun else [])]
    ghosts = ghost_recordings(ghost, loaded)
    make_folder(output)
    play_in_window(
        loaded, lambda recording: _save_beside(recording, output), scale, ghosts, theme, begun[1:] if begun else None
    )
    return 0


def verify_replays(files: Positional[tuple[Path, ...]]) -> int:
    """Replay recordings and print whether the simulator reproduces them; the exit status is 1 if one differs, else 0.

    Args:
        files: recordings made by ``replay record``, attract files of the game, recordings of nclone, or folders of
            them.
    """
    found = [file for path in files for file in recording_files(path)]
    if not found:
        got = f"{shortened(str(files[0]), 200)}{inner_folders(files[0])}" if files else "none"
        raise ConfigError(f"files: expected at least one recording or a folder of them, got {got}")
    rows = [_row(path) for path in found]
    say(*table(("file", "agrees", "frames", "end", "gold", "reason"), rows))
    disagreeing = sum(agrees != "yes" for _, agrees, *_ in rows)
    say(f"{counted(len(found), 'recording')}, {disagreeing} disagree")
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
    say(f"wrote {target} ({counted(len(recording.inputs), 'frame')}, hash {recording.trajectory_hash})")
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
        from nclone_env.replay import play_in_window

        check_scale(scale)
        play_in_window([compiled], lambda recording: saved_text(recording, target), scale)
        return 0
    recording = Recording.of(compiled, parse_inputs(inputs, "inputs"), {"level": compiled.name})
    recording.save(target)
    say(f"wrote {target} ({len(recording.inputs)} frames, hash {recording.trajectory_hash})")
    return 0


def _row(path: Path) -> tuple[str, ...]:
    """Return the row of a file: whether it is valid and the simulator reproduces it, how it ends, and why not."""
    name = plain(cut(path))
    try:
        _, found = load_verified(path)
    except UnknownLevelError:
        return name, "no", "-", "-", "-", f"{name}: expected a recording, got no such file"
    except FormatError as error:
        return name, "no", "-", "-", "-", plain(error)
    agrees, end = "yes" if found.agrees else "no", STATE_NAMES[found.state]
    return name, agrees, str(found.frames), end, str(found.gold), found.reason


def _begun(path: Path | None, frame: int | None) -> tuple[Level, list[int], int] | None:
    """Return level, inputs and frame of the recording to go on from; None without one."""
    if path is None:
        if frame is not None:
            raise ConfigError("frame: expected with --from, got it without; name the recording: --from run.replay")
        return None
    check_exists("from", path, "a recording")
    recording = load_any_recording(path)
    count = len(recording.inputs)
    at = count if frame is None else frame
    if not 0 <= at <= count:
        raise ConfigError(f"frame: expected a number from 0 to {count}, the frames of {path}, got {frame}")
    return named_level(recording), recording.inputs.tolist(), at


def check_scale(scale: float) -> None:
    """Check the size of a picture or window."""
    if not 0.1 <= scale <= 4.0:
        raise ConfigError(f"scale: expected a number from 0.1 to 4, got {scale}")


def saved_text(recording: Recording, target: Path) -> str:
    """Save a recording; return what came of it, which is printed as well."""
    try:
        recording.save(target)
        text = f"saved to {target} ({len(recording.inputs)} frames)"
    except OSError as error:
        text = f"not saved: {target} cannot be written: {error.strerror}"
    except NcloneError as error:
        text = f"not saved: {error}"
    say(text)
    return text


def ghost_recordings(files: Sequence[Path], levels: Sequence[Level]) -> list[Recording]:
    """Read the recordings of ghosts."""
    for file in files:
        check_exists("ghost", file, "a recording")
    recordings = [load_any_recording(file) for file in files]
    played = {level.raw.digest for level in levels}
    for file, recording in zip(files, recordings, strict=True):
        if recording.level.digest not in played:
            title = recording.settings.get("level", recording.level.title) or "another level"
            names = ", ".join(level.name for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
            got = f"a recording of {shortened(title)}"
            raise ConfigError(f"ghost: {file}: expected a recording of a level that is played ({names}), got {got}")
    return recordings


def _save_beside(recording: Recording, folder: Path) -> str:
    """Save a recording under a free name made of that of its level."""
    name = plain_name(str(recording.settings["level"]), "run")
    names = (f"{name}{'' if number == 1 else f'-{number}'}{RECORDING_SUFFIX}" for number in itertools.count(1))
    return saved_text(recording, next(folder / each for each in names if not (folder / each).exists()))
