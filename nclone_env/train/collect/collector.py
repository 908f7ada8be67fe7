"""Collection: a group of environments plays its part of the rollout, on one thread and without waiting for others.

Episodes that ended are logged, and averaged per level.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from nclone_env.env import WON, Buffers, reserve
from nclone_env.jit import kernel
from nclone_env.memory import MemoryNode, array_group, arrays_node
from nclone_env.train.collect.environments import VectorEnvironment
from nclone_env.train.collect.rollout import RolloutColumns
from nclone_env.train.network.device import host_zeros
from nclone_env.train.network.mlp import Network
from nclone_env.train.network.policy import NO_MASKS
from nclone_env.train.network.sampling import sample_actions

FINISHED = np.dtype([("total", "f8"), ("frames", "i4"), ("level", "i4"), ("start", "i4"), ("success", "?")], align=True)
"""A finished episode: undiscounted return, simulated frames, index of its level, number of the start state in which it
began (-1: at the start of the level), and whether it reached the exit."""

EpisodeField = Literal["success", "total", "frames"]


class Collector:
    """Plays a group of n environments.

    Attributes:
        envs: the environments.
        columns: their part of the rollout.
        first: number of the first of them, counted over all ranks.
        episodes: the episodes that ended in it.
        levels: (n,) int32, index of the level that each environment played in its last step.
        step_seconds: (T,) float64, times of the steps of the last rollout, in any order.

    Args:
        envs: n environments with same-step autoreset.
        seed: seed of the sampled actions.
        offset: environments of the ranks before this one.
    """

    def __init__(self, envs: VectorEnvironment, columns: RolloutColumns, network: Network, seed: int, offset: int = 0):
        self.envs, self.columns, self.first = envs, columns, offset + columns.first
        self.episodes = EpisodeLog(columns.num_envs * columns.storage.num_steps)
        self.levels = np.zeros(columns.num_envs, np.int32)
        self.step_seconds = np.zeros(columns.storage.num_steps)
        self._network, self._seed = network, seed
        self._scratch = np.zeros((columns.num_envs, NO_MASKS.shape[1]), np.float32)
        self._indices, self._places = (np.zeros(columns.num_envs, np.int64) for _ in range(2))
        self._finals: Buffers = {
            name: host_zeros(array.shape, array.dtype, columns.storage.pinned)
            for name, array in columns.reset_outputs().items()
            if name != "action_mask"
        }

    def reset(self, seed: int) -> None:
        """Begin new episodes; environment i of the run gets seed ``seed + i``."""
        self.columns.restart()
        self.envs.reset(seed=seed + self.first, out=self.columns.reset_outputs())

    def play(self, seat: int, step: int) -> dict[str, Any]:
        """Play all steps of the rollout, the first of which is number ``step`` of the run; return the last ``info``."""
        columns = self.columns
        columns.restart()
        self.episodes.clear()
        while not columns.full:
            number, started = columns.cursor, time.perf_counter()
            info = self._step(seat, step + number)
            self.step_seconds[number] = time.perf_counter() - started
        self.levels[:] = info["level"]
        columns.row("values")[:] = self._network.outputs(seat, columns.observation())[1]
        return info

    def warm_up(self, seat: int) -> None:
        """Play a rollout of new episodes, and load the kernels that only episodes that end would need."""
        self.reset(0)
        info, none_ended = self.play(seat, 0), np.zeros(self.columns.num_envs, np.bool_)
        self.episodes.add(none_ended, info, 0)
        self._evaluate_truncations(seat, none_ended, none_ended, {})

    def memory(self) -> MemoryNode:
        """Return the bytes of the environments and of everything else of this group."""
        numbers: Buffers = {
            "logits": self._scratch,
            "indices": self._indices,
            "places": self._places,
            "levels": self.levels,
        }
        own = array_group("truncated episodes", self._finals | numbers, shared=False)
        return MemoryNode("group", children=(self.envs.memory(), self.columns.memory(), self.episodes.memory(), own))

    def _step(self, seat: int, step: int) -> dict[str, Any]:
        """Make one step of all environments and record it at the cursor; return its ``info``."""
        columns = self.columns
        actions = self._choose(seat, step)
        _, rewards, terminated, truncated, info = self.envs.step(actions, out=columns.step_outputs())
        if "final_info" in info:
            self.episodes.add(info["_final_info"], info["final_info"], columns.cursor)
            self._evaluate_truncations(seat, truncated, info["_final_obs"], info["final_obs"])
        columns.record_outcome(rewards, terminated, truncated)
        return info

    def _choose(self, seat: int, step: int) -> np.ndarray:
        """Record actions (n,), their log probabilities and the values at the cursor; return the actions."""
        columns = self.columns
        observations = columns.observation()
        logits, values = self._network.outputs(seat, observations)
        actions = columns.row("actions")
        masks = observations.get("action_mask", NO_MASKS)
        draw = (self._seed, self.first, step, self._scratch, actions, columns.row("log_probs"))
        sample_actions(logits, masks, *draw)
        columns.row("values")[:] = values
        return actions

    def _evaluate_truncations(
        self, seat: int, truncated: np.ndarray, ended: np.ndarray, finals: Mapping[str, np.ndarray]
    ) -> None:
        """Record the values of the final observations of episodes that the step at the cursor truncated.

        Args:
            truncated: (n,) bool.
            ended: (n,) bool, the environments whose episode ended.
            finals: the last observation of each of them, (k, ...) by name.
        """
        count = _list_truncated(truncated, ended, self._indices, self._places)
        if not count:
            return
        indices, places = self._indices[:count], self._places[:count]
        rows = min(len(truncated), 1 << (count - 1).bit_length())  # so that calls have few different sizes
        for name, target in self._finals.items():
            np.take(finals[name], places, axis=0, out=target[:count], mode="clip")
        padded = {name: target[:rows] for name, target in self._finals.items()}
        _, values = self._network.outputs(seat, self.columns.stacked_finals(self._indices[:rows], padded))
        self.columns.row("final_values")[indices] = values[:count]


@kernel
def _list_truncated(truncated, ended, indices, places):
    """List the truncated episodes; return their number.

    Args:
        truncated: (n,) bool.
        ended: (n,) bool; all truncated ones and more.
        indices: (n,) int64, written: their environments.
        places: (n,) int64, written: how many of the environments before each of them ended.
    """
    count, place = 0, 0
    for index in range(len(ended)):
        if truncated[index]:
            indices[count], places[count] = index, place
            count += 1
        if ended[index]:
            place += 1
    return count


class EpisodeLog:
    """The episodes that end in a rollout of a group, in order; at most one for each step of each environment."""

    def __init__(self, capacity: int):
        self._records = np.ndarray(capacity, FINISHED, reserve(capacity * FINISHED.itemsize))
        self._places = np.ndarray((capacity, 2), np.uint16, reserve(capacity * 4))
        self._count = self._written = 0

    @property
    def episodes(self) -> np.ndarray:
        """(k,) ``FINISHED`` records; the next rollout overwrites them."""
        return self._records[: self._count]

    @property
    def places(self) -> np.ndarray:
        """(k, 2) uint16, step of the rollout and environment of the group in which each of them ended."""
        return self._places[: self._count]

    def clear(self) -> None:
        """Begin a new rollout."""
        self._written = max(self._written, self._count)
        self._count = 0

    def add(self, ended: np.ndarray, info: Mapping[str, np.ndarray], step: int) -> None:
        """Log the episodes that ``ended``, (n,) bool, in a step of the rollout, given its columns (n,)."""
        columns = (info[name] for name in ("level", "start", "outcome", "episode_return", "episode_frames"))
        self._count = _log(ended, *columns, step, self._records, self._places, self._count)

    def memory(self) -> MemoryNode:
        """Return the bytes of the log that were written; the system provides the others when they are."""
        written = slice(max(self._written, self._count))
        return arrays_node("episode log", (self._records[written], self._places[written]), shared=False)


@kernel
def _log(ended, levels, starts, outcomes, returns, frames, step, records, places, count):
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
