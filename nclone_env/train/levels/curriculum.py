"""What episodes begin with, from the success that was measured: weights of levels, and starts along solutions.

A level is worth training on while its outcome is uncertain or changes. Its score is the mean of two numbers from 0 to
1, both from averages of its outcomes that fade exponentially with each further episode:

- uncertainty, ``4 p (1 - p)`` of the recent success rate p: 0 for a level that always or never succeeds;
- learning progress, ``|f(fast) - f(slow)|`` of a fast and a slow average (Kanitscheider et al., 2021): positive for a
  level that is being learned or forgotten. ``f(p) = (1 - t) p / (p + t (1 - 2 p))`` stretches small rates, so that the
  first successes on a hard level count.

As long as a level has few episodes its score is mixed with 1, the best possible: unseen levels are played. Levels are
then drawn in proportion to their scores, apart from a share that is spread evenly. As in prioritised level replay
(Jiang et al., 2021), that share keeps every estimate from getting stale, which rescues levels that became learnable.

Reverse curricula (Florensa et al., 2017; Salimans and Chen, 2018) begin episodes close to the goal, where success is
likely, and move the start back as success from it is learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from nclone_env.errors import ConfigError, check_integer, checked
from nclone_env.memory import MemoryNode, array_group

_STRETCH = 0.1
"""The t of f: a success rate of t is stretched to about one half."""
_NEW_EPISODE = 0.1
"""Weight of a new episode in the success rates of starts."""
_LEAST_EPISODES = 10
"""Episodes from a start before its success rate is believed."""
_THRESHOLD = 0.5
"""Success rate from which a start is moved back."""
_SHARE = 0.8
"""Share of the episodes of a level that begin in start states until it is done."""
_IN_USE = 3
"""Start states of a level in use at a time: the earliest and the next ones behind it, which are not unlearned then."""


class Measured(ABC):
    """Success that was measured, in arrays."""

    def state(self) -> dict[str, np.ndarray]:
        """Return everything measured so far as arrays (L,), copies, for a checkpoint."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from the :meth:`state` of an object for the same levels and starts: equal outcomes give equal bits."""
        arrays = self._arrays()
        missing = [name for name in arrays if name not in state]
        if missing:
            raise ConfigError(f"state: expected the arrays {', '.join(arrays)}, got none named {', '.join(missing)}")
        for name, array in arrays.items():
            found = np.asarray(state[name])
            if (found.shape, found.dtype) != (array.shape, array.dtype):
                expected, got = (f"{each.dtype} of shape {each.shape}" for each in (array, found))
                raise ConfigError(
                    f"state[{name!r}]: expected {expected}, got {got}; restore a state of the same levels"
                )
        for name, array in arrays.items():
            array[...] = state[name]

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""


class LevelCurriculum(Measured):
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

    @checked()
    def __init__(self, num_levels: int, *, floor: float = 0.2, fast: float = 0.1, slow: float = 0.02):
        check_integer("num_levels", num_levels, low=1, high=2**31 - 1)
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

    def update(self, levels: np.ndarray, success: np.ndarray) -> None:
        """Take in the outcomes of k episodes that ended together.

        Args:
            levels: (k,) integers from 0 to L - 1, with repetitions.
            success: (k,) bool.

        Raises:
            ConfigError: if a shape or dtype is wrong, or a level does not exist; nothing is changed.
        """
        played, won = _checked(levels, success, self.num_levels)
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


class BackwardStarts(Measured):
    """Which start states are in use: at first the last ones of each level, then earlier ones as success is learned.

    Of each level, the earliest state in use and up to two behind it are drawn alike. Once the success rate of episodes
    from the earliest passes the threshold, the state before it comes into use; after the first state of the level, or
    once episodes from the level's own start pass the threshold, the level is done and always begins at its start. Rates
    fade exponentially over about ten episodes.

    Args:
        levels: (K,) integers, ascending; the level of each start state, those of a level from its start to its exit.
        num_levels: number L of levels.
    """

    def __init__(self, levels: np.ndarray, num_levels: int):
        self._levels = levels
        self._first = np.searchsorted(levels, np.arange(num_levels))
        self._ahead = np.bincount(levels, minlength=num_levels)
        self._earliest, self._own = (SuccessAverages(num_levels, _NEW_EPISODE) for _ in range(2))

    def update(self, starts: np.ndarray, levels: np.ndarray, success: np.ndarray) -> bool:
        """Take in the outcomes of k episodes that ended together; return whether :meth:`shares` has changed.

        A level moves by at most one state. ``starts`` are the numbers of their start states, -1 for any other start.
        """
        earliest = self._first + self._ahead - 1
        for averages, chosen in ((self._earliest, starts == earliest[levels]), (self._own, starts == -1)):
            counts = np.bincount(levels[chosen], minlength=len(self._ahead))
            averages.add(counts, np.bincount(levels[chosen & success], minlength=len(self._ahead)))
        waiting = self._ahead > 0
        done = waiting & self._passes(self._own)
        moved = waiting & self._passes(self._earliest)
        self._ahead[moved] -= 1
        self._ahead[done] = 0
        self._earliest.clear(moved | done)
        return bool((moved | done).any())

    def shares(self) -> np.ndarray:
        """Return the probability of each start state, (K,) float64, for ``set_start_shares``."""
        ahead = self._ahead[self._levels]
        place = np.arange(len(self._levels)) - self._first[self._levels]
        used = (ahead > 0) & (place >= ahead - 1) & (place < ahead - 1 + _IN_USE)
        counts = np.bincount(self._levels[used], minlength=len(self._ahead))
        return np.where(used, _SHARE / np.maximum(counts, 1)[self._levels], 0.0)

    def memory(self) -> MemoryNode:
        """Return the bytes of numbers and rates."""
        own = {"levels": self._levels, "first": self._first}
        return array_group("backward starts", {**own, **self._arrays()}, shared=True)

    def _passes(self, averages: SuccessAverages) -> np.ndarray:
        believed = averages.left <= (1.0 - _NEW_EPISODE) ** (_LEAST_EPISODES - 0.5)
        return believed & (averages.rates() >= _THRESHOLD)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "ahead": self._ahead,
            "earliest": self._earliest.total,
            "earliest_left": self._earliest.left,
            "own": self._own.total,
            "own_left": self._own.left,
        }


def _stretched(rates: np.ndarray) -> np.ndarray:
    """Return success rates with small ones stretched; 0 and 1 stay."""
    return (1.0 - _STRETCH) * rates / (rates + _STRETCH * (1.0 - 2.0 * rates))


class SuccessAverages:
    """n success rates that fade exponentially with each further episode.

    All outcomes of one :meth:`add` count as simultaneous: their order has no effect. A new episode has a weight between
    0 and 1.

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


def _checked(levels: np.ndarray, success: np.ndarray, num_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels, (k,) int64, and the outcomes, (k,) bool, of k episodes."""
    played, won = np.asarray(levels), np.asarray(success)
    if played.ndim != 1 or (played.size and played.dtype.kind not in "iu"):
        raise ConfigError(f"levels: expected whole numbers of shape (k,), got {played.dtype} of shape {played.shape}")
    if played.size and not 0 <= played.min() <= played.max() < num_levels:
        raise ConfigError(f"levels: expected numbers from 0 to {num_levels - 1}, got {played.min()} to {played.max()}")
    if won.shape != played.shape or (won.size and won.dtype != np.bool_):
        raise ConfigError(f"success: expected bool of shape {played.shape}, got {won.dtype} of shape {won.shape}")
    return played.astype(np.int64, copy=False), won.astype(np.bool_, copy=False)
