"""The ``options`` argument of ``reset``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nclone_env.errors import ConfigError


def check_options(options: dict[str, Any] | None, valid: Sequence[str]) -> dict[str, Any]:
    """Return the options as a dict.

    Raises:
        ConfigError: if one is unknown; the message lists the valid ones.
    """
    chosen = dict(options or {})
    unknown = sorted(set(chosen) - set(valid))
    if unknown:
        raise ConfigError(f"options: unknown key {', '.join(map(repr, unknown))}; valid keys: {', '.join(valid)}")
    return chosen
