"""Arguments of ``reset`` and other calls: options, seeds, masks, indices."""

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


def per_environment(argument: str, value: Any, num_envs: int) -> dict[int, Any]:
    """Return a value by environment: the same for all, or those of a list that are not None.

    Raises:
        ConfigError: if a list has another length than there are environments.
    """
    if not isinstance(value, (list, tuple)):
        return dict.fromkeys(range(num_envs), value)
    if len(value) != num_envs:
        raise ConfigError(f"{argument}: expected one, or a list of {num_envs}, got {len(value)}")
    return {index: item for index, item in enumerate(value) if item is not None}


def check_seed(seed: Any) -> int:
    """Return the 64 bits of a seed.

    Raises:
        ConfigError: if it is not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ConfigError(f"seed: expected whole numbers of at least 0 or None, got {seed!r}")
    return int(seed) % 2**64


def check_seeds(seed: Any, num_envs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the 64 bits of the seed of each environment, (n,) uint64, and which have one, (n,) bool.

    Args:
        seed: of the first environment, the others get the next numbers; or a list of n seeds or None.
        num_envs: n.

    Raises:
        ConfigError: if one is not a whole number of at least 0, or there are not n.
    """
    one = not isinstance(seed, (list, tuple, np.ndarray))
    seeds = [check_seed(seed) + i for i in range(num_envs)] if one else list(seed)
    if len(seeds) != num_envs:
        raise ConfigError(f"seed: expected one seed or a list of {num_envs}, got {len(seeds)}")
    bits = [0 if value is None else check_seed(value) for value in seeds]
    return np.array(bits, dtype=np.uint64), np.array([value is not None for value in seeds])


def check_mask(mask: Any, num_envs: int) -> np.ndarray:
    """Return the environments to reset, (n,) bool; all if it is None.

    Raises:
        ConfigError: if it is no bool array of that shape.
    """
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise ConfigError(f"options['reset_mask']: expected a bool array of shape ({num_envs},), got {mask!r}")
    return mask


def check_indices(indices: Any, num_envs: int) -> np.ndarray:
    """Return n indices of environments, (n,) int64.

    Raises:
        ConfigError: if dtype, shape or range is wrong.
    """
    array = np.asarray(indices)
    if array.dtype.kind not in "iu" or array.shape != (num_envs,):
        got = f"{array.dtype} of shape {array.shape}"
        raise ConfigError(f"indices: expected whole numbers of shape ({num_envs},), got {got}")
    if array.min() < 0 or array.max() >= num_envs:
        got = f"{array.min()} to {array.max()}"
        raise ConfigError(f"indices: expected environments from 0 to {num_envs - 1}, got {got}")
    return np.ascontiguousarray(array, dtype=np.int64)
