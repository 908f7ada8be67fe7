"""``nclone-env play``: play levels with the keyboard."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from tyro.conf import Positional

from nclone_env.cli.output import plain_name
from nclone_env.errors import ConfigError, NcloneError, shortened
from nclone_env.level.catalog import level_sets
from nclone_env.level.level import Level
from nclone_env.level.load import load_levels
from nclone_env.replay import RECORDING_SUFFIX, Recording, load_any_recording


def play_levels(
    levels: Positional[tuple[str, ...]] = (),
    ghost: tuple[Path, ...] = (),
    output: Path = Path("."),
    scale: float = 1.0,
) -> int:
    """Play levels with the keyboard in a window, at 60 frames per second; H shows the keys.

    Args:
        levels: built-in sets or levels, level files, packs, or levels of packs (pack.txt#12); all built-in levels by
            default.
        ghost: recordings whose ninjas run along, translucent, each on its level.
        output: folder for the runs that S saves; created if it is missing.
        scale: size of the window; 1 is 1056 x 600 pixels and a bar below.
    """
    check_scale(scale)
    loaded = load_levels(levels or level_sets())
    ghosts = ghost_recordings(ghost, loaded)
    _make_folder(output)
    play_in_window(loaded, lambda recording: _save_beside(recording, output), scale, ghosts)
    return 0


def play_in_window(
    levels: Sequence[Level],
    save: Callable[[Recording], str],
    scale: float,
    recordings: Sequence[Recording] = (),
) -> None:
    """Open a window and play levels in it until it is closed.

    Args:
        levels: the levels.
        save: saves the recording of a run; returns what the window says then.
        scale: size of the window.
        recordings: runs that are shown as ghosts.

    Raises:
        ConfigError: if the scale is out of range.
        DisplayError: if there is no screen.
        MissingExtraError: if pygame-ce is not installed.
    """
    from nclone_env.render import check_display
    from nclone_env.replay import Play, View, ghosts_of, open_window, view_size

    check_scale(scale)
    check_display()
    first = View(levels[0], scale)
    first.tick(0)  # compiles the kernels while there is no window yet that would not answer
    first.picture()
    ghosts = ghosts_of(recordings)
    Play(levels, save, open_window(levels[0].name, view_size(scale)), scale, ghosts).run()


def check_scale(scale: float) -> None:
    """Check the size of a picture or window.

    Raises:
        ConfigError: if it is out of range.
    """
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
    print(text)
    return text


def ghost_recordings(files: Sequence[Path], levels: Sequence[Level]) -> list[Recording]:
    """Read the recordings of ghosts.

    Raises:
        ConfigError: if one is of a level that is not played.
        FormatError, UnknownLevelError: if one cannot be read.
    """
    recordings = [load_any_recording(file) for file in files]
    played = {level.raw.digest for level in levels}
    for file, recording in zip(files, recordings, strict=True):
        if recording.level.digest not in played:
            title = recording.settings.get("level", recording.level.title) or "another level"
            names = ", ".join(level.name for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
            got = f"a recording of {shortened(title)}"
            raise ConfigError(f"ghost: {file}: expected a recording of a level that is played ({names}), got {got}")
    return recordings


def _make_folder(folder: Path) -> None:
    """Create a folder if it is missing.

    Raises:
        ConfigError: if that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"output: expected a folder, got {folder}, which cannot be created: {error.strerror}; name another"
        ) from error


def _save_beside(recording: Recording, folder: Path) -> str:
    """Save a recording under a free name made of that of its level."""
    name = plain_name(str(recording.settings["level"]), "run")
    names = (f"{name}{'' if number == 1 else f'-{number}'}{RECORDING_SUFFIX}" for number in itertools.count(1))
    return saved_text(recording, next(folder / each for each in names if not (folder / each).exists()))
