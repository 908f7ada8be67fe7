"""Imports of optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any

from nclone_env.errors import MissingExtraError


def optional_module(name: str, extra: str) -> Any:
    """Import a module of an optional dependency.

    Raises:
        MissingExtraError: if it is not installed; the message names the extra to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        raise MissingExtraError(f'{package} is not installed; run: pip install "nclone-env[{extra}]"') from error
