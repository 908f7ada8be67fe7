"""Imports of optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any

from nclone_env.errors import MissingExtraError

_PACKAGES = {"pygame": "pygame-ce"}


def optional_module(name: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Raises:
        MissingExtraError: if it is not installed; the message names the extra to install.
        ImportError: if it is, and fails.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(name, name.partition(".")[0].replace("_", "-"))
        raise MissingExtraError(f"{package} is not installed; {installation(extra)}") from error


def installation(extra: str) -> str:
    """Return the end of a message that says how to install an extra."""
    return f'run pip install ".[{extra}]" in a copy of the repository'
