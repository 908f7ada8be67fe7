"""Success rates from the outcomes of episodes, and their state in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nclone_env.errors import ConfigError


class SuccessAverages:
    """n success rates that fade exponentially with each further episode.

    All outcomes of one :meth:`add` count as simultaneous: their order has no effect.

    Args:
        size: number n of rates.
        weight: weight of a new episode, between 0 and 1.

    Attributes:
        total: (n,) float64, the weighted sums of successes.
        left: (n,) float64, 1 minus the sums of the weights; 1 without episodes, near 0 after many.
    """

    def __init__(self, size: int, weight: float):
        self._weight = weight
        self.total, self.left = np.zeros(size), np.ones(size)

    def add(self, counts: np.ndarray, wins: np.ndarray) -> None:
        """Take in ``counts``, (n,) episodes, of which ``wins``, (n,), succeeded."""
        seen = np.flatnonzero(counts)
        kept = (1.0 - self._weight) ** counts[seen]
        self.total[seen] = kept * self.total[seen] + (1.0 - kept) * (wins[seen] / counts[seen])
        self.left[seen] *= kept

    def rates(self) -> np.ndarray:
        """Return the success rates, (n,) float64; 0 without episodes."""
        return self.total / np.maximum(1.0 - self.left, np.finfo(np.float64).tiny)

    def clear(self, mask: np.ndarray) -> None:
        """Forget the episodes where ``mask``, (n,) bool, is set."""
        self.total[mask], self.left[mask] = 0.0, 1.0


def check_outcomes(levels: np.ndarray, success: np.ndarray, num_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels, (k,) int64, and the outcomes, (k,) bool, of k episodes.

    Args:
        levels: (k,) integers.
        success: (k,) bool.
        num_levels: number of levels.

    Raises:
        ConfigError: if a shape or dtype is wrong, or a level does not exist.
    """
    played, won = check_numbers("levels", levels, num_levels, low=0), np.asarray(success)
    if won.shape != played.shape or (won.size and won.dtype != np.bool_):
        raise ConfigError(f"success: expected bool of shape {played.shape}, got {won.dtype} of shape {won.shape}")
    return played, won.astype(np.bool_, copy=False)


def check_numbers(name: str, numbers: np.ndarray, limit: int, low: int) -> np.ndarray:
    """Return (k,) int64 numbers from ``low`` to ``limit - 1``.

    Raises:
        ConfigError: if shape, dtype or range is wrong.
    """
    array = np.asarray(numbers)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ConfigError(f"{name}: expected whole numbers of shape (k,), got {array.dtype} of shape {array.shape}")
    if array.size and not low <= array.min() <= array.max() < limit:
        raise ConfigError(f"{name}: expected numbers from {low} to {limit - 1}, got {array.min()} to {array.max()}")
    return array.astype(np.int64, copy=False)


def copied(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return copies of arrays by name."""
    return {name: array.copy() for name, array in arrays.items()}


def restore_arrays(arrays: Mapping[str, np.ndarray], state: Mapping[str, np.ndarray]) -> None:
    """Write the arrays of a state into arrays of the same names.

    Raises:
        ConfigError: if one is missing, or has another shape or dtype; nothing is changed.
    """
    missing = [name for name in arrays if name not in state]
    if missing:
        raise ConfigError(f"state: expected the arrays {', '.join(arrays)}, got none named {', '.join(missing)}")
    for name, array in arrays.items():
        found = np.asarray(state[name])
        if (found.shape, found.dtype) != (array.shape, array.dtype):
            expected, got = (f"{each.dtype} of shape {each.shape}" for each in (array, found))
            raise ConfigError(f"state[{name!r}]: expected {expected}, got {got}; restore a state of the same levels")
    for name, array in arrays.items():
        array[...] = state[name]
