"""The vector environment: many environments in one process, advanced by one compiled call."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from nclone_env.config import EnvironmentConfig, check_integer
from nclone_env.env.actions import action_space, check_actions
from nclone_env.env.arrays.buffers import Buffers, make_buffers
from nclone_env.env.arrays.outputs import COLUMNS, Outputs
from nclone_env.env.batch import Batch
from nclone_env.env.compiled import records
from nclone_env.env.compiled.reward_function import RewardFunction
from nclone_env.env.curriculum import check_assignment, check_weights
from nclone_env.env.group import Group
from nclone_env.env.level_access import LevelAccess
from nclone_env.env.options import check_indices, check_mask, check_options, check_seeds, per_environment
from nclone_env.env.single import config_from
from nclone_env.env.spaces import batched_space, observation_space
from nclone_env.env.viewer import Viewer
from nclone_env.errors import ClosedError, ConfigError, ResetNeededError, StepOrderError
from nclone_env.memory_tree import MemoryNode

_MODES = {
    AutoresetMode.NEXT_STEP: records.NEXT_STEP,
    AutoresetMode.SAME_STEP: records.SAME_STEP,
    AutoresetMode.DISABLED: records.DISABLED,
}
_MOST_ENVS, _MOST_THREADS, _MOST_RING = 1 << 24, 1024, 1024
Step = tuple[Buffers, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


class NPlusPlusVectorEnv(LevelAccess, gymnasium.vector.VectorEnv[Buffers, np.ndarray, np.ndarray]):
    """``num_envs`` environments in one process, stepped by compiled code on several threads.

    Observations are a dict of arrays (num_envs, ...). By default everything that is returned is safe to keep, and
    memory that nobody keeps is used again; with ``out`` observations go into the caller's arrays; with ``copy=False``
    everything is in a ring of ``ring`` batches (docs/memory.md).

    ``info`` has the columns ``level`` (index in ``level_names``), ``frames``, ``outcome`` (code, see
    ``env.compiled.records.OUTCOMES``), ``gold``, ``episode_frames``, ``episode_steps`` and ``episode_return`` as arrays
    (num_envs,) about the step just made, each with its ``_name`` mask. In same-step mode ``final_obs`` and
    ``final_info`` hold the last observation and the columns of the episodes that ended; other rows mean nothing.

    Args:
        config: what to build; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        autoreset_mode: when finished environments begin anew (Gymnasium's ``AutoresetMode`` or its value).
        num_threads: threads that share the work; by default one per core if there is enough of it.
        copy: whether what is returned is safe to keep; else it is valid until the ``ring``-th call after.
        ring: number of batches in turn with ``copy=False``.
        num_groups: number of equal groups of environments that ``send`` and ``recv`` step each on its own.
        reward_function: takes an ``EVENT`` record (``env.compiled.records``) and returns the reward of the step,
            instead of the configured one; it is compiled by Numba, if that has not been done.
        **fields: fields of :class:`EnvironmentConfig`, which replace those of ``config``.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError, UnsupportedLevelError: as the single environment.
    """

    def __init__(
        self,
        config: EnvironmentConfig | None = None,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
        copy: bool = True,
        ring: int = 2,
        num_groups: int = 1,
        reward_function: RewardFunction | None = None,
        **fields: Any,
    ):
        self.closed = True  # until all is made: Gymnasium closes what is dropped, even if an argument was refused
        self.config = config_from(config, fields)
        check_integer("num_envs", num_envs, low=1, high=_MOST_ENVS)
        if num_threads is not None:
            check_integer("num_threads", num_threads, low=1, high=_MOST_THREADS)
        check_integer("ring", ring, low=1, high=_MOST_RING)
        check_integer("num_groups", num_groups, low=1, high=int(num_envs))
        if num_groups > 1 and self.config.observation.frame_stack > 1:
            raise ConfigError(f"num_groups: expected 1 with a frame_stack, got {num_groups}; stack in the learner")
        self.num_envs = num_envs = int(num_envs)
        mode = _autoreset_mode(autoreset_mode)
        self._batch = Batch(self.config, num_envs, _MODES[mode], num_threads, reward_function)
        self._all = Group(self._batch, 0, num_envs, None if copy else ring)
        edges = [num_envs * group // num_groups for group in range(num_groups + 1)]
        self._groups = [Group(self._batch, *edge, None if copy else ring) for edge in itertools.pairwise(edges)]
        self._everyone = np.ones(num_envs, dtype=np.bool_)
        self._everyone.flags.writeable = False
        self._viewer = Viewer(self.config)
        self._begun = False
        self.autoreset_mode = mode
        self.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": self.config.frames_per_second,
            "autoreset_mode": mode,
        }
        self.render_mode = self.config.render_mode
        self.single_observation_space = observation_space(self._batch.specs)
        self.single_action_space = action_space(self.config.action_space)
        self.observation_space = batched_space(self._batch.specs, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Buffers, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: environment i gets ``seed + i``, or the i-th of a list; None goes on with the random choices.
            options: ``{"level": name or index}`` plays that level; ``{"state": snapshot}`` begins in the world of the
                snapshot; of both, a list of n gives each environment its own; ``{"reset_mask": (n,) bool}`` resets
                only those.
            out: arrays by name that are written: all observations, and any of rewards, terminations, truncations and
                the columns of ``info``.

        Raises:
            ConfigError: if an option is unknown, the mask has the wrong shape or dtype, or a seed is not a whole
                number of at least 0.
            UnknownLevelError: if the level is not one of ``level_names``.
            SnapshotError: if the snapshot is malformed, of other levels, or its episode is over.
            BufferError: if ``out`` does not fit.
            StepOrderError: while a step is sent and not received.
            ClosedError: after ``close``.
        """
        self._check_idle("reset")
        outputs = self._all.take(out)
        chosen = check_options(options, ("level", "state", "reset_mask"))
        states = per_environment("options['state']", chosen["state"], self.num_envs) if "state" in chosen else {}
        starts = {index: self._batch.read_start(state) for index, state in states.items()}
        mask = check_mask(chosen.get("reset_mask"), self.num_envs) if self._begun else self._everyone
        self._choose_levels(chosen.get("level"), mask)
        self._seed(seed, mask)
        for index, start in starts.items():
            if mask[index]:
                self._batch.begin_at(start, index)
        anew = mask.copy()
        anew[list(starts)] = False
        self._all.reset(anew, outputs)
        self._begun = True
        return outputs.observations, outputs.info

    def step(self, actions: Any, *, out: Mapping[str, np.ndarray] | None = None) -> Step:
        """Advance every environment by one step.

        Args:
            actions: (n,) integers 0..5, or (n, 2) for ``multi_discrete``.
            out: as in ``reset``.

        Returns:
            Observations, rewards (n,) float64, terminations (n,) bool, truncations (n,) bool, info.

        Raises:
            ActionError: if the actions have the wrong dtype, shape or range; nothing is advanced then.
            BufferError: if ``out`` does not fit.
            ResetNeededError: before the first ``reset``.
            StepOrderError: while a step is sent and not received.
            ClosedError: after ``close``.
        """
        self._check_begun("step")
        outputs = self._all.take(out)
        check_actions(actions, self.config.action_space, self._all.actions)
        self._all.step(outputs)
        return _returned(outputs)

    def send(self, actions: Any, group: int = 0, *, out: Mapping[str, np.ndarray] | None = None) -> None:
        """Begin a step of one group in the background and return at once; ``recv`` returns what ``step`` would.

        Args:
            actions: (g,) integers 0..5 for the g environments of the group, or (g, 2) for ``multi_discrete``.
            group: 0 to ``num_groups - 1``; the groups are equal shares of the environments, in order.
            out: as in ``step``, with g rows.

        Raises:
            StepOrderError: if the last step of the group has not been received.
            ActionError, BufferError, ResetNeededError, ClosedError: as ``step``.
        """
        chosen = self._group("send", group)
        if chosen.pending:
            raise StepOrderError(f"send() was called twice for group {group}; call recv({group}) in between")
        outputs = chosen.take(out)
        check_actions(actions, self.config.action_space, chosen.actions)
        chosen.send(outputs)

    def recv(self, group: int = 0) -> Step:
        """Wait for the step that was sent for a group; return what ``step`` does, of the group alone.

        Raises:
            StepOrderError: if none was sent.
            ResetNeededError, ClosedError: as ``step``.
        """
        return _returned(self._group("recv", group).receive())

    def set_level_weights(self, weights: Any = None) -> None:
        """Let the episodes that begin from now on play each level as often as its weight says.

        Args:
            weights: one number of at least 0 for each of ``level_names``, or some by name (the others get 0); None
                for equal ones.

        Raises:
            UnknownLevelError: if a name is not one of ``level_names``.
            ConfigError: if the number of weights is wrong, one is negative or not finite, or all are 0.
            StepOrderError: while a step is sent and not received.
            ClosedError: after ``close``.
        """
        self._check_idle("set_level_weights")
        self._batch.set_weights(check_weights(weights, self.level_names))

    def assign_levels(self, levels: Any = None) -> None:
        """Let the episodes that begin from now on play a level of the environment's own.

        Args:
            levels: n names or indices, with None where levels are drawn; None: they are drawn everywhere.

        Raises:
            UnknownLevelError: if a level is not one of ``level_names``.
            ConfigError: if there are not n of them.
            StepOrderError: while a step is sent and not received.
            ClosedError: after ``close``.
        """
        self._check_idle("assign_levels")
        self._batch.episodes["own_level"] = check_assignment("levels", levels, self.level_names, self.num_envs)

    def get_state(self, index: int) -> bytes:
        """Return a snapshot of one environment, as bytes that can be stored.

        Raises:
            ConfigError: if there is no such environment.
            ResetNeededError: before the first ``reset``.
            ClosedError: after ``close``.
        """
        self._check_index("get_state", "index", index)
        return self._batch.get_state(index)

    def set_state(self, index: int, state: bytes) -> tuple[Buffers, dict[str, Any]]:
        """Make one environment what the one was that a snapshot was taken from; the same actions then do the same.

        Args:
            index: environment.
            state: from ``get_state`` of an environment, single or of a vector, with the same levels.

        Returns:
            Its observation and the values of the ``info`` columns.

        Raises:
            SnapshotError: if it is no snapshot, damaged, or of other levels or another version, or if its episode is
                over in same-step mode; nothing is changed.
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("set_state", "index", index)
        self._batch.set_state(index, state)
        return self._observed(index)

    def copy_world(self, source: int, target: int) -> tuple[Buffers, dict[str, Any]]:
        """Make one environment a copy of another, with its episode and random choices to come.

        Returns:
            Observation of the copy and the values of the ``info`` columns.

        Raises:
            ConfigError, ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_index("copy_world", "source", source)
        self._check_index("copy_world", "target", target)
        self._batch.copy(source, target)
        return self._observed(target)

    def gather(self, indices: Any, *, out: Mapping[str, np.ndarray] | None = None) -> tuple[Buffers, dict[str, Any]]:
        """Make environment i a copy of what environment ``indices[i]`` is now: survivors, or many futures of one.

        Args:
            indices: (n,) integers; any environment, any number of times.
            out: as in ``reset``.

        Returns:
            Observations and info of all, as ``reset``.

        Raises:
            ConfigError: if the indices have the wrong dtype, shape or range; nothing is changed.
            BufferError: if ``out`` does not fit.
            ResetNeededError, ClosedError: as ``get_state``.
        """
        self._check_begun("gather")
        chosen = check_indices(indices, self.num_envs)
        outputs = self._all.take(out)
        self._batch.gather(chosen)
        self._all.reset(~self._everyone, outputs)
        return outputs.observations, outputs.info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a tuple with the picture of the first environment, or show it in ``human`` mode."""
        self._check_begun("render")
        if self.render_mode is None:
            return None
        picture = self._viewer.render(self._batch)
        return None if picture is None else (picture,)

    def memory(self) -> MemoryNode:
        """Return the tree of all bytes this environment owns."""
        parts = [group.memory() for group in (self._all, *self._groups)]
        children = (self._batch.memory(), *(part for part in parts if part.total_bytes))
        return MemoryNode("vector environment", children=children)

    def close_extras(self, **kwargs: Any) -> None:
        """End threads and window (called once by ``close``); steps that were sent are waited for."""
        for group in self._groups:
            if group.pending:
                group.receive()
        self._viewer.close()
        self._batch.close()

    def _choose_levels(self, level: Any, mask: np.ndarray) -> None:
        if isinstance(level, (list, tuple, np.ndarray)):
            chosen = check_assignment("options['level']", level, self.level_names, self.num_envs)
            self._batch.episodes["next_level"][mask] = chosen[mask]
        elif level is not None:
            self._batch.choose_level(level, mask)

    def _group(self, call: str, group: int) -> Group:
        self._check_open(call)
        if not self._begun:
            raise ResetNeededError(f"{call}() was called before the first reset; call reset() to begin the episodes")
        check_integer("group", group, low=0, high=len(self._groups) - 1)
        return self._groups[group]

    def _seed(self, seed: int | list[int | None] | None, mask: np.ndarray) -> None:
        if not self._begun:
            self._batch.seed(np.random.SeedSequence().generate_state(self.num_envs, np.uint64), self._everyone)
        if seed is not None:
            bits, given = check_seeds(seed, self.num_envs)
            self._batch.seed(bits, given & mask)

    def _check_index(self, call: str, name: str, index: int) -> None:
        self._check_begun(call)
        check_integer(name, index, low=0, high=self.num_envs - 1)

    def _observed(self, index: int) -> tuple[Buffers, dict[str, Any]]:
        """Return copies of one environment's observation and ``info`` columns."""
        buffers = make_buffers(self._batch.specs, 1)
        self._batch.observe(index, buffers)
        row = {name: array[0] for name, array in buffers.items()}
        return row, {name: self._batch.results[name][index].item() for name in COLUMNS}

    def _check_begun(self, call: str) -> None:
        self._check_idle(call)
        if not self._begun:
            raise ResetNeededError(f"{call}() was called before the first reset; call reset() to begin the episodes")

    def _check_idle(self, call: str) -> None:
        self._check_open(call)
        for number, group in enumerate(self._groups):
            if group.pending:
                raise StepOrderError(f"{call}() was called while a step of group {number} is sent; call recv({number})")

    def _check_open(self, call: str) -> None:
        if self.closed:
            raise ClosedError(f"{call}() was called after close(); make a new environment")


def _returned(outputs: Outputs) -> Step:
    columns = outputs.columns
    return (
        outputs.observations,
        columns["rewards"],
        columns["terminations"],
        columns["truncations"],
        outputs.info,
    )


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode given as such or by its value.

    Raises:
        ConfigError: if there is no such mode; the message lists the values.
    """
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        listed = ", ".join(repr(known.value) for known in _MODES)
        raise ConfigError(f"autoreset_mode: expected an AutoresetMode or one of {listed}, got {mode!r}") from error
