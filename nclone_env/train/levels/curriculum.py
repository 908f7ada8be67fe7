"""Weights by which levels are drawn, from the success that was measured on them.

A level is worth training on while its outcome is uncertain or changes. Its score is the mean of two numbers from 0 to
1, both from averages of its outcomes that fade exponentially with each further episode:

- uncertainty, ``4 p (1 - p)`` of the recent success rate p: 0 for a level that always or never succeeds;
- learning progress, ``|f(fast) - f(slow)|`` of a fast and a slow average (Kanitscheider et al., 2021): positive for a
  level that is being learned or forgotten. ``f(p) = (1 - t) p / (p + t (1 - 2 p))`` stretches small rates, so that the
  first successes on a hard level count.

As long as a level has few episodes its score is mixed with 1, the best possible: unseen levels are played. Levels are
then drawn in proportion to their scores, apart from a share that is spread evenly. As in prioritised level replay
(Jiang et al., 2021), that share keeps every estimate from getting stale, which rescues levels that became learnable.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nclone_env.errors import ConfigError
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.options import check_integer

_STRETCH = 0.1
"""The t of f: a success rate of t is stretched to about one half."""


class LevelCurriculum:
    """Level weights from measured success and learning progress.

    All outcomes of one :meth:`update` count as simultaneous, so their order has no effect. Weights depend on the
    outcomes alone; nothing is drawn at random.

    Args:
        num_levels: number L of levels.
        floor: share of all episodes that is spread evenly over the levels; every weight is at least ``floor / L``.
        fast: weight of a new episode in the fast average, which is also the recent success rate.
        slow: weight of a new episode in the slow average; smaller than ``fast``.

    Raises:
        ConfigError: if a value is out of range.
    """

    def __init__(self, num_levels: int, *, floor: float = 0.2, fast: float = 0.1, slow: float = 0.02):
        check_integer("num_levels", num_levels, low=1)
        if not 0.0 < floor <= 1.0:
            raise ConfigError(f"floor: expected a share above 0, at most 1, got {floor!r}")
        if not 0.0 < slow < fast < 1.0:
            raise ConfigError(f"slow and fast: expected 0 < slow < fast < 1, got {slow!r} and {fast!r}")
        self._floor = float(floor)
        self._fast, self._slow = SuccessAverages(num_levels, fast), SuccessAverages(num_levels, slow)
        self._episodes, self._successes = np.zeros(num_levels, np.int64), np.zeros(num_levels, np.int64)

    @property
    def num_levels(self) -> int:
        """Number L of levels."""
        return len(self._episodes)

    @property
    def episodes(self) -> np.ndarray:
        """(L,) int64, the number of outcomes of each level, a copy."""
        return self._episodes.copy()

    @property
    def successes(self) -> np.ndarray:
        """(L,) int64, how many of them were successes, a copy."""
        return self._successes.copy()

    def update(self, levels: np.ndarray, success: np.ndarray) -> None:
        """Take in the outcomes of k episodes that ended together.

        Args:
            levels: (k,) integers from 0 to L - 1, with repetitions.
            success: (k,) bool.

        Raises:
            ConfigError: if a shape or dtype is wrong, or a level does not exist; nothing is changed.
        """
        played, won = check_outcomes(levels, success, self.num_levels)
        counts = np.bincount(played, minlength=self.num_levels)
        wins = np.bincount(played[won], minlength=self.num_levels)
        for averages in (self._fast, self._slow):
            averages.add(counts, wins)
        self._episodes += counts
        self._successes += wins

    def success_rates(self) -> np.ndarray:
        """Return the recent success rate of each level, (L,) float64; NaN for levels without an outcome."""
        return np.where(self._episodes > 0, self._fast.rates(), np.nan)

    def scores(self) -> np.ndarray:
        """Return the score of each level, (L,) float64 from 0 to 1; 1 for levels without an outcome."""
        recent, past = self._fast.rates(), self._slow.rates()
        measured = 2.0 * recent * (1.0 - recent) + 0.5 * np.abs(_stretched(recent) - _stretched(past))
        return np.clip(measured + self._fast.left * (1.0 - measured), 0.0, 1.0)

    def weights(self) -> np.ndarray:
        """Return the probability of each level, (L,) float64; the sum is 1, and each is at least ``floor / L``."""
        scores = self.scores()
        total = scores.sum()
        even = 1.0 / self.num_levels
        shares = scores / total if total > 0.0 else np.full(self.num_levels, even)
        return self._floor * even + (1.0 - self._floor) * shares

    def state(self) -> dict[str, np.ndarray]:
        """Return everything measured so far as arrays (L,), copies, for a checkpoint."""
        return copied(self._arrays())

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state: the same outcomes then give the same bits.

        Args:
            state: from :meth:`state` of a curriculum with as many levels.

        Raises:
            ConfigError: if an array is missing, or has another shape or dtype; nothing is changed.
        """
        restore_arrays(self._arrays(), state)

    def memory(self) -> MemoryNode:
        """Return the bytes of the averages and counts."""
        return array_group("level curriculum", self._arrays(), shared=True)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "fast": self._fast.total,
            "fast_left": self._fast.left,
            "slow": self._slow.total,
            "slow_left": self._slow.left,
            "episodes": self._episodes,
            "successes": self._successes,
        }


def _stretched(rates: np.ndarray) -> np.ndarray:
    """Return success rates with small ones stretched; 0 and 1 stay."""
    return (1.0 - _STRETCH) * rates / (rates + _STRETCH * (1.0 - 2.0 * rates))


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
