"""Import what only an extra of the package brings."""

from __future__ import annotations

import importlib
from typing import Any

from nclone_env.errors import MissingExtraError


def optional_module(name: str, extra: str) -> Any:
    """Import a module that an extra brings.

    Raises:
        MissingExtraError: if it is not installed; the message names the extra.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("_", "-")
        raise MissingExtraError(
            f'{package} is needed here and not installed; run: pip install "nclone-env[{extra}]"'
        ) from error
