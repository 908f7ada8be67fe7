"""The ``options`` and ``seed`` arguments of ``reset``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nclone_env.errors import ConfigError


def check_options(options: dict[str, Any] | None, valid: Sequence[str]) -> dict[str, Any]:
    """Return the options as a dict.

    Raises:
        ConfigError: if they are no mapping, one is unknown (the message lists the valid ones), or two exclude each
            other.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"options: expected a dict with some of the keys {', '.join(valid)}, got {options!r}")
    chosen = dict(options or {})
    unknown = sorted(set(chosen) - set(valid), key=str)
    if unknown:
        raise ConfigError(f"options: unknown key {', '.join(map(repr, unknown))}; valid keys: {', '.join(valid)}")
    if "level" in chosen and "state" in chosen:
        raise ConfigError("options: expected either 'level' or 'state', got both; a state has its level")
    return chosen


def check_seed(seed: Any) -> int:
    """Return the 64 bits of a seed.

    Raises:
        ConfigError: if it is not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"seed: expected whole numbers of at least 0 or None, got {seed!r}")
    return int(seed) % 2**64
