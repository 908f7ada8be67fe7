"""The steps of the vector environment: many environments in one process, advanced by one compiled call per chunk."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from nclone_env.config import EnvironmentConfig, config_from
from nclone_env.env.arguments import (
    check_assignment,
    check_mask,
    check_options,
    check_seeds,
    find_level,
    per_environment,
)
from nclone_env.env.arrays.outputs import Outputs, gathered_info
from nclone_env.env.base import AFTER_RESET, BROKEN, NOT_CLOSED, RUNNING, BaseEnvironment, Lifecycle, Phase
from nclone_env.env.batch import Batch
from nclone_env.env.compiled import records
from nclone_env.env.compiled.passes import RewardFunction
from nclone_env.env.group import Group
from nclone_env.env.spaces import action_space, check_actions, observation_space
from nclone_env.errors import ConfigError, StepOrderError, check_integer, check_value, shortened

_MAX_ENVS, _MAX_THREADS, _MAX_RING = 1 << 24, 1024, 1024
Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
AUTORESET_CODES = {
    AutoresetMode.NEXT_STEP: records.NEXT_STEP,
    AutoresetMode.SAME_STEP: records.SAME_STEP,
    AutoresetMode.DISABLED: records.DISABLED,
}


class VectorSteps(BaseEnvironment, gymnasium.vector.VectorEnv[Any, np.ndarray, np.ndarray]):
    """Construction, ``reset``, ``step``, its halves ``send`` and ``recv``, and ``close`` of ``NPlusPlusVectorEnv``."""

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
        gymnasium_infos: bool = False,
        reward_function: RewardFunction | None = None,
        max_episode_steps: int | None = None,
        **fields: Any,
    ):
        self.closed = True  # for now: Gymnasium's __del__ closes environments that are not, even half-built ones
        self.config = config_from(config, fields)
        if max_episode_steps is not None:
            check_integer("max_episode_steps", max_episode_steps, low=1)
            frames = min(self.config.max_frames, int(max_episode_steps) * self.config.frame_skip)
            self.config = self.config.replace(max_frames=frames)
        check_integer("num_envs", num_envs, low=1, high=_MAX_ENVS)
        if num_threads is not None:
            check_integer("num_threads", num_threads, low=1, high=_MAX_THREADS)
        check_integer("ring", ring, low=1, high=_MAX_RING)
        check_integer("num_groups", num_groups, low=1, high=int(num_envs))
        if num_groups > 1 and self.config.observation.frame_stack > 1:
            raise ConfigError(f"num_groups: expected 1 with a frame_stack, got {num_groups}; stack in the learner")
        self.num_envs = num_envs = int(num_envs)
        check_value("copy", bool, copy)
        check_value("gymnasium_infos", bool, gymnasium_infos)
        self.gymnasium_infos = bool(gymnasium_infos)
        mode = autoreset_mode_of(autoreset_mode)
        self._batch = Batch(self.config, num_envs, AUTORESET_CODES[mode], num_threads, reward_function)
        self._all = Group(self._batch, 0, num_envs, None if copy else ring)
        self._groups = [self._all]
        if num_groups > 1:
            edges = [num_envs * group // num_groups for group in range(num_groups + 1)]
            self._groups = [Group(self._batch, *edge, None if copy else ring) for edge in itertools.pairwise(edges)]
        self._all_mask = np.ones(num_envs, dtype=np.bool_)
        self._all_mask.flags.writeable = False
        self._lifecycle = Lifecycle()
        self.autoreset_mode = mode
        self.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": self.config.frames_per_second,
            "autoreset_mode": mode,
        }
        self.render_mode = self.config.render_mode
        self._only = only = self.config.only_observation
        self.single_observation_space = observation_space(self._batch.specs, only)
        self.single_action_space = action_space(self.config.action_space)
        self.observation_space = observation_space(self._batch.specs, only, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
        out: Mapping[str, np.ndarray] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes.

        Args:
            seed: environment i gets ``seed + i``, or the i-th of a list; None continues the random sequence. Seeds
                that differ by a multiple of 2**64 are the same.
            options: ``{"level": name or index}`` plays that level; ``{"state": snapshot}`` begins in the world of the
                snapshot; either may be a list with one item per environment; ``{"reset_mask": (n,) bool}`` resets
                only those.
            out: arrays to write, by name: all observations, and any of rewards (float64 or float32), terminations,
                truncations and the columns of ``info``.

        Returns:
            Observations and info.

        Raises:
            ConfigError: if an option is unknown, the mask has the wrong shape or dtype, or a seed is not a whole
                number of at least 0.
            UnknownLevelError: if no episodes begin on the level.
            SnapshotError: if the snapshot is malformed, of other levels, over, or has no frame left.
            BufferError: if ``out`` does not fit; nothing is changed in any of these cases.
            StepOrderError: while a sent step has not been received.
            ClosedError: after ``close``.
        """
        self._lifecycle.check("reset", NOT_CLOSED)
        if self._lifecycle.phase is Phase.BROKEN:
            self._give_up()
        self._check_received("reset")
        chosen = check_options(options, ("level", "state", "reset_mask"))
        states = per_environment("options['state']", chosen["state"], self.num_envs) if "state" in chosen else {}
        starts = {index: self._batch.read_start(state) for index, state in states.items()}
        whole = self._lifecycle.phase in (Phase.NEW, Phase.BROKEN)
        mask = self._all_mask if whole else check_mask(chosen.get("reset_mask"), self.num_envs)
        levels = self._requested_levels(chosen.get("level"))
        seeds, seeded = self._seeds(seed)
        outputs = self._all.outputs.take(out)
        if "level" in chosen:
            self._batch.workers.begin_slowly()
        with self._lifecycle:
            self._batch.episodes["next_level"][mask] = levels[mask]
            self._batch.seed(seeds, seeded & mask)
            for index, start in starts.items():
                if mask[index]:
                    self._batch.begin_at(start, index)
            from_start = mask.copy()
            from_start[list(starts)] = False
            self._all.reset(from_start, outputs)
        return self._returned(self._all, outputs, mask)

    def step(self, actions: Any, *, out: Mapping[str, np.ndarray] | None = None) -> Step:
        """Advance every environment by one step.

        Args:
            actions: (n,) integers 0..5, or (n, 2) for ``multi_discrete``.
            out: as in ``reset``.

        Returns:
            Observations, rewards (n,) float64, terminations (n,) bool, truncations (n,) bool, info.

        Raises:
            ActionError: if the actions have the wrong dtype, shape or range; no environment is stepped then.
            BufferError: if ``out`` does not fit.
            ResetNeededError: before the first ``reset``.
            StepOrderError: while a sent step has not been received, or another thread is in a call.
            ClosedError: after ``close``.

        An error in the step itself, such as one that the reward function raises, and Ctrl-C leave some environments
        stepped and others not: the next call must be ``reset`` or ``close``.
        """
        self._check("step", AFTER_RESET)
        outputs = self._all.outputs.take(out)
        check_actions(actions, self.config.action_space, self._all.actions)
        lifecycle = self._lifecycle
        with lifecycle.changing:  # what ``with lifecycle`` does, in half a microsecond less
            lifecycle.phase = BROKEN
            self._all.step(outputs)
            lifecycle.phase = RUNNING
        return self._stepped(self._all, outputs)

    def send(self, actions: Any, group: int = 0, *, out: Mapping[str, np.ndarray] | None = None) -> None:
        """Begin a step of one group in the background and return at once; ``recv`` returns its results.

        Args:
            actions: (g,) integers 0..5 for the g environments of the group, or (g, 2) for ``multi_discrete``.
            group: 0 to ``num_groups - 1``; the groups are equal, consecutive ranges of environments.
            out: as in ``step``, with g rows.

        Raises:
            StepOrderError: if the last step of the group has not been received, or another thread is in a call.
            ActionError, BufferError, ResetNeededError, ClosedError: as ``step``.
        """
        chosen = self._group("send", group)
        with chosen:
            if chosen.pending:
                raise StepOrderError(f"send() was called twice for group {group}; call recv({group}) in between")
            outputs = chosen.outputs.take(out)
            check_actions(actions, self.config.action_space, chosen.actions, chosen.first)
            chosen.send(outputs)

    def recv(self, group: int = 0) -> Step:
        """Wait for the step sent for a group; return the results of ``step`` for that group.

        Raises:
            StepOrderError: if no step was sent, or it was sent before this process was forked.
            ResetNeededError, ClosedError: as ``step``.
        """
        chosen = self._group("recv", group)
        with chosen:
            if not chosen.pending:
                raise StepOrderError("recv() was called before send(); send the actions of the step first")
            try:
                outputs = chosen.receive()
            except Exception:
                self._lifecycle.phase = Phase.BROKEN
                raise
        return self._stepped(chosen, outputs)

    def close_extras(self, **kwargs: Any) -> None:
        """Give up sent steps, end the threads and close the window; called once by ``close``."""
        self._give_up()
        self._close_window()
        self._batch.close()
        self._lifecycle.phase = Phase.CLOSED

    def _give_up(self) -> None:
        for group in self._groups:
            group.give_up()

    def _requested_levels(self, level: Any) -> np.ndarray:
        """Return the level that each environment is asked to play next, (n,) int64, -1 for none."""
        if level is None:
            return np.full(self.num_envs, -1)
        if isinstance(level, (list, tuple, np.ndarray)):
            return check_assignment("options['level']", level, self._batch.drawn_names, self.num_envs)
        return np.full(self.num_envs, find_level(level, self._batch.drawn_names, "options['level']"))

    def _group(self, call: str, group: int) -> Group:
        self._lifecycle.check(call, AFTER_RESET)
        check_integer("group", group, low=0, high=len(self._groups) - 1)
        return self._groups[group]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return seeds, (n,) uint64, and the mask of the environments to seed; the first call seeds all."""
        bits, given = np.zeros(self.num_envs, np.uint64), ~self._all_mask
        if seed is not None:
            bits, given = check_seeds(seed, self.num_envs)
        if self._lifecycle.phase is not Phase.NEW:
            return bits, given
        random = np.random.SeedSequence().generate_state(self.num_envs, np.uint64)
        return np.where(given, bits, random), self._all_mask

    def _check(self, call: str, allowed: tuple[Phase, ...]) -> None:
        """Reject a call in other phases than the allowed ones, or while a step is in flight."""
        self._lifecycle.check(call, allowed)
        self._check_received(call)

    def _check_index(self, name: str, index: int) -> None:
        check_integer(name, index, low=0, high=self.num_envs - 1)

    def _check_received(self, call: str) -> None:
        for number, group in enumerate(self._groups):
            if group.pending:
                raise StepOrderError(f"{call}() was called while a step of group {number} is sent; call recv({number})")

    def _returned(self, group: Group, outputs: Outputs, mask: np.ndarray | None = None) -> tuple[Any, dict[str, Any]]:
        """Return observations and info of a call, those of the environments in ``mask``, (n,) bool; None: of all."""
        observations = outputs.observations if self._only is None else outputs.observations[self._only]
        if self.gymnasium_infos:
            ninjas = self._batch.worlds.ninjas[group.first : group.last]
            return observations, gathered_info(outputs, ninjas, self.level_names, self._only, mask)
        return observations, outputs.info

    def _stepped(self, group: Group, outputs: Outputs) -> Step:
        columns = outputs.columns
        observations, info = self._returned(group, outputs)
        return observations, columns["rewards"], columns["terminations"], columns["truncations"], info


def autoreset_mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode given as such or by its value.

    Raises:
        ConfigError: if there is no such mode; the message lists the values.
    """
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        listed = ", ".join(repr(known.value) for known in AUTORESET_CODES)
        raise ConfigError(
            f"autoreset_mode: expected an AutoresetMode or one of {listed}, got {shortened(mode)}"
        ) from error
