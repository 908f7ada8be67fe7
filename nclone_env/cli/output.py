"""What commands check before they write a file."""

from __future__ import annotations

from pathlib import Path

from nclone_env.errors import ConfigError


def check_free(path: Path, force: bool) -> None:
    """Check that a command may write a file.

    Raises:
        ConfigError: if it exists, unless it may be overwritten.
    """
    if path.exists() and not force:
        raise ConfigError(f"{path}: already exists; --force overwrites it, or name another")
