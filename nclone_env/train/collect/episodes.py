"""Episodes that ended, averaged per level."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from nclone_env.jit import kernel

FINISHED = np.dtype([("total", "f8"), ("frames", "i4"), ("level", "i4"), ("start", "i4"), ("success", "?")], align=True)
"""A finished episode: undiscounted return, simulated frames, index of its level, number of the start state in which it
began (-1: at the start of the level), and whether it reached the exit."""

EpisodeField = Literal["success", "total", "frames"]


class EpisodeStatistics:
    """Outcomes of the most recent episodes that began at the start of their level, in ring buffers of fixed size.

    Attributes:
        counts: (L,) int64, such episodes of each level so far.
        recent: (L, w) ``FINISHED``, the last w episodes of each level; episode c is in slot c % w.
        vector_steps: steps of every environment so far.

    Args:
        level_names: names of the L levels.
        longest: steps of the longest possible episode. Before that many steps only short episodes can have ended,
            most of them wins, so the means are biased and reported as nan.
        window: w, number of recent episodes kept per level.
    """

    def __init__(self, level_names: Sequence[str], longest: int = 0, window: int = 100):
        self.level_names = tuple(level_names)
        self._longest = longest
        self.vector_steps = 0
        self.counts = np.zeros(len(self.level_names), np.int64)
        self.recent = np.zeros((len(self.level_names), window), FINISHED)

    def add(self, episodes: np.ndarray) -> int:
        """Record (k,) finished episodes, except those that began in a start state; return k."""
        _count(episodes, self.recent, self.counts)
        return len(episodes)

    def renew(self, level_names: Sequence[str], kept: int) -> None:
        """Go on with as many other levels, of which the first ``kept`` are those of before."""
        self.level_names = tuple(level_names)
        self.counts[kept:] = 0
        self.recent[kept:] = np.zeros((), FINISHED)

    def means(self, name: EpisodeField) -> np.ndarray:
        """Return the mean of a field over the recent episodes of each level, (L,); nan where undefined."""
        if self.vector_steps < self._longest:
            return np.full(len(self.counts), np.nan)
        kept = np.minimum(self.counts, self.recent.shape[1])
        sums = self.recent[name].sum(axis=1, dtype=np.float64)  # unused slots hold 0
        return np.divide(sums, kept, out=np.full(len(kept), np.nan), where=kept > 0)

    def solved(self, success_rate: float) -> bool:
        """Return whether every level has a full window of episodes and at least this success rate over it."""
        full = bool((self.counts >= self.recent.shape[1]).all())
        return full and bool((self.means("success") >= success_rate).all())

    def summary(self) -> dict[str, float]:
        """Return the mean over levels of each statistic, and the lowest success rate of a level."""
        success = self.means("success")
        known = success[~np.isnan(success)]
        return {
            "success_rate": _mean_of_known(success),
            "min_success_rate": float(known.min()) if len(known) else float("nan"),
            "mean_return": _mean_of_known(self.means("total")),
            "mean_frames": _mean_of_known(self.means("frames")),
        }


@kernel
def _count(episodes, recent, counts):
    """Put each episode that began at the start of its level into the next slot of the level."""
    for number in range(len(episodes)):
        episode = episodes[number]
        if episode["start"] >= 0:
            continue
        level = episode["level"]
        slot = recent[level, counts[level] % recent.shape[1]]
        slot["total"], slot["frames"], slot["level"] = episode["total"], episode["frames"], level
        slot["start"], slot["success"] = -1, episode["success"]
        counts[level] += 1


def _mean_of_known(means: np.ndarray) -> float:
    known = means[~np.isnan(means)]
    return float(known.mean()) if len(known) else float("nan")
