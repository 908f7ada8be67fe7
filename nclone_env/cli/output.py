"""What commands check before they begin."""

import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path

from nclone_env._files import Claims, suffix_of, there
from nclone_env.errors import ConfigError, check_integer, shortened

_MOST_EPISODES = 1 << 24


class _Own(threading.local):
    """What the command of this thread has claimed."""

    def __init__(self) -> None:
        self.claims = Claims()


_own = _Own()


def claim(path: Path) -> None:
    """Claim a file or folder that a command writes; the folder it is in is created."""
    make_folder(path.parent)
    _own.claims.add(path)


def check_free(path: Path, force: bool) -> None:
    """Claim a file that a command writes, and check that it may."""
    if path.is_dir():
        raise ConfigError(f"{path}: expected the name of a file to write, got a folder; name another")
    check_all_free((path,), force)


def check_all_free(paths: Iterable[Path], force: bool) -> None:
    """Claim the files and folders that a command writes together, and check that it may."""
    for path in paths:
        claim(path)
        if os.path.lexists(path) and not force:
            release_claims()
            raise ConfigError(f"{path}: already exists; --force overwrites it, or name another")


def make_folder(folder: Path) -> None:
    """Create a folder if it is missing; of the current one, which may be removed, the system tells more."""
    check_folder("output", folder)
    try:
        if folder.parts:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"output: expected a folder, got {folder}, which cannot be created: {error.strerror}; name another"
        ) from error


def release_claims() -> None:
    """Release what the command has claimed."""
    _own.claims.release()


def check_exists(argument: str, path: Path, expected: str) -> None:
    """Check that a file that a command reads exists."""
    if not there(path.exists):
        raise ConfigError(f"{argument}: expected {expected}, got {shortened(str(path), 200)}, which does not exist")


def check_folder(argument: str, path: Path) -> None:
    """Check that a command may write files in a folder, which need not exist yet, nor those that it is in."""
    for each in (path, *path.parents):
        if there(each.exists) and not each.is_dir():
            raise ConfigError(f"{argument}: expected a folder, got {each}, which is a file; name another")


def check_suffix(argument: str, path: Path, *suffixes: str) -> None:
    """Check that the name of a file to write tells its format."""
    if suffix_of(path) not in suffixes:
        expected = f"expected a name ending in {' or '.join(suffixes)}"
        raise ConfigError(f"{argument}: {expected}, got {str(path)!r}; for example {path.stem or 'file'}{suffixes[0]}")


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural by an s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def plain_name(name: str, otherwise: str) -> str:
    """Return what of a name a file may have that a shell and a URL take without quotes; ``otherwise`` if it is nothing.

    At most 100 characters, the last ones; systems allow 255.
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", name)[-100:].strip("-.") or otherwise


def check_episodes(episodes: int | None) -> None:
    """Check the number of episodes if there is one; each has an environment of its own."""
    if episodes is not None:
        check_integer("episodes", episodes, low=1, high=_MOST_EPISODES)
