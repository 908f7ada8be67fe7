"""The episodes that end: a log of those of a rollout, and means over the recent ones of each level."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from nclone_env.env import WON, reserve
from nclone_env.jit import kernel
from nclone_env.memory import MemoryNode, arrays_node

FINISHED = np.dtype([("total", "f8"), ("frames", "i4"), ("level", "i4"), ("start", "i4"), ("success", "?")], align=True)
"""A finished episode: undiscounted return, simulated frames, index of its level, number of the start state in which it
began (-1: at the start of the level), and whether it reached the exit."""

EpisodeField = Literal["success", "total", "frames"]


class EpisodeLog:
    """The episodes that end in a rollout of a group, in order; at most one for each step of each environment.

    Attributes:
        records: (c,) ``FINISHED``, room for all that could end.
        steps: (c, 2), room for ``places``.
        count: number k of those that ended.
    """

    def __init__(self, capacity: int, places: type[np.integer] = np.uint16):
        self.records = np.ndarray(capacity, FINISHED, reserve(capacity * FINISHED.itemsize))
        self.steps = np.ndarray((capacity, 2), places, reserve(2 * capacity * np.dtype(places).itemsize))
        self.count = self._written = 0

    @property
    def episodes(self) -> np.ndarray:
        """(k,) ``FINISHED`` records; the next rollout overwrites them."""
        return self.records[: self.count]

    @property
    def places(self) -> np.ndarray:
        """(k, 2) integers, step of the rollout and environment of the group in which each of them ended."""
        return self.steps[: self.count]

    def clear(self) -> None:
        """Begin a new rollout."""
        self._written = max(self._written, self.count)
        self.count = 0

    def add(self, ended: np.ndarray, info: Mapping[str, np.ndarray], step: int) -> None:
        """Log the episodes that ``ended``, (n,) bool, in a step of the rollout, given its columns (n,)."""
        columns = (info[name] for name in ("level", "start", "outcome", "episode_return", "episode_frames"))
        self.count = log_episodes(ended, *columns, step, self.records, self.steps, self.count)

    def memory(self) -> MemoryNode:
        """Return the bytes of the log that were written; the system provides the others when they are."""
        written = slice(max(self._written, self.count))
        return arrays_node("episode log", (self.records[written], self.steps[written]), shared=False)


@kernel
def log_episodes(ended, levels, starts, outcomes, returns, frames, step, records, places, count):
    """Append a record for each episode that ended; return the new number of records."""
    for index in range(len(ended)):
        if ended[index]:
            record = records[count]
            record["total"], record["frames"] = returns[index], frames[index]
            record["level"], record["start"], record["success"] = levels[index], starts[index], outcomes[index] == WON
            places[count, 0], places[count, 1] = step, index
            count += 1
    return count


class EpisodeStatistics:
    """Outcomes of the most recent episodes that began at the start of their level, in ring buffers of fixed size.

    Attributes:
        counts: (L,) int64, such episodes of each level so far.
        recent: (L, w) ``FINISHED``, the last w episodes of each level; episode c is in slot c % w.
        vector_steps: steps of every environment so far.

    Args:
        longest: steps of the longest possible episode. Before that many steps only short episodes can have ended,
            most of them wins, so the means are biased and reported as nan.
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

    def means(self, name: EpisodeField) -> np.ndarray:
        """Return the mean of a field over the recent episodes of each level, (L,); nan where undefined."""
        if self.vector_steps < self._longest:
            return np.full(len(self.counts), np.nan)
        kept = np.minimum(self.counts, self.recent.shape[1])
        sums = self.recent[name].sum(axis=1, dtype=np.float64)  # unused slots hold 0
        return np.divide(sums, kept, out=np.full(len(kept), np.nan), where=kept > 0)

    def recent_wins(self) -> tuple[int, int]:
        """Return how many of the recent episodes of all levels reached the exit, and the number of these episodes."""
        kept = np.minimum(self.counts, self.recent.shape[1])
        return int(self.recent["success"].sum()), int(kept.sum())

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
