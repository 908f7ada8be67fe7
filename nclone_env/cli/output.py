"""What commands check before they write a file."""

from __future__ import annotations

import re
from pathlib import Path

from nclone_env.errors import ConfigError


def check_free(path: Path, force: bool) -> None:
    """Check that a command may write a file.

    Raises:
        ConfigError: if it exists, unless it may be overwritten.
    """
    if path.exists() and not force:
        raise ConfigError(f"{path}: already exists; --force overwrites it, or name another")


def check_exists(argument: str, path: Path, expected: str) -> None:
    """Check that a file that a command reads exists.

    Raises:
        ConfigError: if it does not; ``expected`` says what it should be.
    """
    if not path.exists():
        raise ConfigError(f"{argument}: expected {expected}, got {str(path)!r}, which does not exist")


def check_folder(argument: str, path: Path) -> None:
    """Check that a command may write files in a folder, which need not exist yet.

    Raises:
        ConfigError: if it is something else.
    """
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{argument}: expected a folder, got {path}, which is a file; name another")


def check_suffix(argument: str, path: Path, *suffixes: str) -> None:
    """Check that the name of a file to write tells its format.

    Raises:
        ConfigError: if it ends in none of the suffixes.
    """
    if path.suffix not in suffixes:
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
