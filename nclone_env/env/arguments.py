"""Checks of the arguments of environment calls: options, seeds, masks, indices, and the choice of levels."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nclone_env.errors import ConfigError, UnknownLevelError, as_array, scalar, shortened, whole
from nclone_env.options import is_several, mapping, several


def check_options(options: dict[str, Any] | None, valid: Sequence[str]) -> dict[str, Any]:
    """Return the options as a dict."""
    options = mapping(options)
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(
            f"options: expected a dict with some of the keys {', '.join(valid)}, got {shortened(options)}"
        )
    chosen = dict(options or {})
    unknown = sorted(set(chosen) - set(valid), key=str)
    if unknown:
        raise ConfigError(f"options: unknown key {shortened(unknown, 200)[1:-1]}; valid keys: {', '.join(valid)}")
    if "level" in chosen and "state" in chosen:
        raise ConfigError("options: expected either 'level' or 'state', got both; a state includes its level")
    return chosen


def per_environment(argument: str, value: Any, num_envs: int) -> dict[int, Any]:
    """Return a value by environment: the same for all, or the items of a list that are not None."""
    if not is_several(value):
        return dict.fromkeys(range(num_envs), value)
    value = several(value)
    if len(value) != num_envs:
        raise ConfigError(f"{argument}: expected one, or a list of {num_envs}, got {len(value)}")
    return {index: item for index, item in enumerate(value) if item is not None}


def check_seed(seed: Any) -> int:
    """Return the 64 bits of a seed; ConfigError if it is not a whole number of at least 0."""
    seed = whole(scalar(seed))
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ConfigError(f"seed: expected whole numbers of at least 0 or None, got {shortened(seed)}")
    return seed % 2**64


def seed_of(seed: Any) -> int | tuple[int | None, ...]:
    """Return ``np_random_seed`` after a reset of a vector environment with a seed, as of those of Gymnasium."""
    if is_several(seed):
        return tuple(None if each is None else int(scalar(each)) for each in seed)
    return int(scalar(seed))


def check_seeds(seed: Any, num_envs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the 64 bits of each environment's seed, (n,) uint64, and the mask of those given, (n,) bool.

    One seed is that of the first environment, from which the others count up; a list has n seeds or None.
    """
    seeds = several(seed) if is_several(seed) else [check_seed(seed) + i for i in range(num_envs)]
    if len(seeds) != num_envs:
        raise ConfigError(f"seed: expected one seed or a list of {num_envs}, got {len(seeds)}")
    bits = [0 if value is None else check_seed(value) for value in seeds]
    return np.array(bits, dtype=np.uint64), np.array([value is not None for value in seeds])


def check_mask(mask: Any, num_envs: int) -> np.ndarray:
    """Return the mask of environments to reset, (n,) bool; all if it is None."""
    if mask is None:
        return np.ones(num_envs, dtype=np.bool_)
    expected = f"options['reset_mask']: expected a bool array of shape ({num_envs},)"
    array = as_array(mask.cpu() if hasattr(mask, "cpu") else mask, ConfigError, expected)
    if array.dtype != np.bool_ or array.shape != (num_envs,):
        raise ConfigError(f"{expected}, got {shortened(mask)}")
    return array


def check_indices(indices: Any, num_envs: int) -> np.ndarray:
    """Return n indices of environments, (n,) int64; ConfigError if dtype, shape or range is wrong."""
    array = as_array(indices, ConfigError, f"indices: expected whole numbers of shape ({num_envs},)")
    if array.dtype.kind not in "iu" or array.shape != (num_envs,):
        got = f"{array.dtype} of shape {array.shape}"
        raise ConfigError(f"indices: expected whole numbers of shape ({num_envs},), got {got}")
    if array.min() < 0 or array.max() >= num_envs:
        got = f"{array.min()} to {array.max()}"
        raise ConfigError(f"indices: expected environments from 0 to {num_envs - 1}, got {got}")
    return np.ascontiguousarray(array, dtype=np.int64)


def check_weights(weights: Any, names: Sequence[str], kept: int = 0) -> np.ndarray:
    """Return the weight of each level that episodes begin on, (L,) float64.

    Weights are one number per level, some by name (the others get 0), or None: all are equal. Those of the ``kept``
    levels behind are left out or 0.
    """
    if weights is None:
        return np.ones(len(names))
    try:
        weights = mapping(weights)
        if isinstance(weights, Mapping):
            array = np.zeros(len(names))
            for name, weight in weights.items():
                array[find_level(name, names, "weights")] = weight
        else:
            array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(f"weights: expected numbers, got {shortened(weights)}") from error
    if array.shape == (len(names) + kept,) and not array[len(names) :].any():
        array = array[: len(names)]
    if array.shape != (len(names),):
        expected = f"one number for each of the {len(names)} levels that episodes begin on"
        raise ConfigError(f"weights: expected {expected}, got shape {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ConfigError(f"weights: expected finite numbers of at least 0, not all 0, got {array.tolist()}")
    return array


def check_assignment(argument: str, levels: Any, names: Sequence[str], num_envs: int) -> np.ndarray:
    """Return the level of each environment, (n,) int64, -1 where levels are drawn.

    The levels are n names or indices, with None (or -1) where levels are drawn; None: drawn everywhere.
    """
    if levels is None:
        return np.full(num_envs, -1)
    items = several(levels) if is_several(levels) else ()
    if len(items) != num_envs:
        raise ConfigError(
            f"{argument}: expected one level or None for each of the {num_envs} environments, got {shortened(levels)}"
        )
    drawn = [level is None or (not isinstance(level, str) and level == -1) for level in items]
    pairs = zip(drawn, items, strict=True)
    return np.array([-1 if free else find_level(level, names, argument) for free, level in pairs], dtype=np.int64)


def find_level(level: Any, names: Sequence[str], argument: str) -> int:
    """Return the index of a level given by name or index."""
    level = whole(scalar(level))
    if isinstance(level, str) and level in names:
        return names.index(level)
    if isinstance(level, int) and not isinstance(level, bool) and 0 <= level < len(names):
        return level
    raise UnknownLevelError(
        f"{argument}: expected a name or an index below {len(names)}, got {shortened(level)}; "
        f"levels of this environment: {', '.join(names)}"
    )
