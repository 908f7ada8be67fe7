"""Collection: a group of environments plays its part of the rollout, on one thread and without waiting for others."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from nclone_env.env import Buffers, NPlusPlusVectorEnv
from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.collect.compiled_steps import CompiledSteps, GroupArrays, GroupNumbers, list_truncated, padded
from nclone_env.train.collect.environments import VectorEnvironment
from nclone_env.train.collect.episodes import EpisodeLog
from nclone_env.train.collect.rollout import RolloutColumns
from nclone_env.train.network.device import host_zeros
from nclone_env.train.network.mlp import MLP, Network
from nclone_env.train.network.policy import NO_MASKS
from nclone_env.train.network.sampling import sample_actions


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
        count, storage = columns.num_envs, columns.storage
        self.episodes = EpisodeLog(count * storage.num_steps)
        self.levels = np.zeros(count, np.int32)
        self.step_seconds = np.zeros(storage.num_steps)
        self._network, self._seed = network, seed
        self._finals: Buffers = {
            name: host_zeros(array.shape, array.dtype, storage.pinned)
            for name, array in columns.reset_outputs().items()
            if name != "action_mask"
        }
        self._arrays = GroupArrays(
            storage.arrays,
            self.episodes.records,
            self.episodes.steps,
            self.levels,
            ended=np.zeros(count, np.bool_),
            rows=np.zeros(count, np.int64),
            indices=np.zeros(count, np.int64),
            probabilities=np.zeros((count, NO_MASKS.shape[1]), np.float32),
        )
        self._compiled: CompiledSteps | None = None
        # Not for subclasses of the environment, which may make steps of their own.
        if type(envs) is NPlusPlusVectorEnv and isinstance(network, MLP) and network.pass_arrays(0) is not None:
            numbers = GroupNumbers(columns.first, self.first, seed)
            self._compiled = CompiledSteps(envs, network, storage, self._finals, self._arrays, numbers)

    def reset(self, seed: int) -> None:
        """Begin new episodes; environment i of the run gets seed ``seed + i``."""
        self.columns.restart()
        self.envs.reset(seed=seed + self.first, out=self.columns.reset_outputs())

    def play(self, seat: int, step: int) -> None:
        """Play all steps of the rollout, the first of which is number ``step`` of the run."""
        self.columns.restart()
        self.episodes.clear()
        if not self._play_compiled(seat, step):
            self.levels[:] = self._play_in_python(seat, step)["level"]

    def warm_up(self, seat: int) -> None:
        """Play a rollout of new episodes, and load the kernels that only episodes that end would need."""
        self.reset(0)
        if self._play_compiled(seat, 0):
            return
        info, none_ended = self._play_in_python(seat, 0), np.zeros(self.columns.num_envs, np.bool_)
        self.episodes.add(none_ended, info, 0)
        self._evaluate_truncations(seat, none_ended, none_ended, {})

    def memory(self) -> MemoryNode:
        """Return the bytes of the environments and of everything else of this group."""
        numbers: Buffers = {
            "logits": self._arrays.probabilities,
            "ended": self._arrays.ended,
            "indices": self._arrays.indices,
            "places": self._arrays.rows,
            "levels": self.levels,
        }
        own = array_group("truncated episodes", self._finals | numbers, shared=False)
        return MemoryNode("group", children=(self.envs.memory(), self.columns.memory(), self.episodes.memory(), own))

    def _play_compiled(self, seat: int, step: int) -> bool:
        """Play all steps in compiled code; return False, and play none, if environments or network need Python."""
        count = None if self._compiled is None else self._compiled.play(seat, step, self.step_seconds)
        if count is None:
            return False
        self.episodes.count = count
        return True

    def _play_in_python(self, seat: int, step: int) -> dict[str, Any]:
        """Play all steps by calls of the environments and the network; return the last ``info``."""
        columns = self.columns
        while not columns.full:
            number, started = columns.cursor, time.perf_counter()
            info = self._step(seat, step + number)
            self.step_seconds[number] = time.perf_counter() - started
        columns.row("values")[:] = self._network.outputs(seat, columns.observation())[1]
        return info

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
        draw = (self._seed, self.first, step, self._arrays.probabilities, actions, columns.row("log_probs"))
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
        indices, places = self._arrays.indices, self._arrays.rows
        count = list_truncated(truncated, ended, indices, places)
        if not count:
            return
        rows = padded(count, len(truncated))
        for name, target in self._finals.items():
            np.take(finals[name], places[:rows], axis=0, out=target[:rows], mode="clip")
        chosen = {name: target[:rows] for name, target in self._finals.items()}
        _, values = self._network.outputs(seat, self.columns.stacked_finals(indices[:rows], chosen))
        self.columns.row("final_values")[indices[:count]] = values[:count]
