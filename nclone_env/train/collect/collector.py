"""Collection: a group of environments plays its part of the rollout, on one thread and without waiting for others.

Our environments and the hand-written network play in compiled code, without the interpreter. A step of a hundred
environments takes a tenth of a millisecond, and threads that run Python code in each step wait for each other's
interpreter lock, longer with every further thread.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nclone_env.env import Buffers, KernelSteps, NPlusPlusVectorEnv, step_all
from nclone_env.jit import called_kernel, kernel, specialised_at_first
from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.collect.environments import VectorEnvironment
from nclone_env.train.collect.episodes import EpisodeLog, log_episodes
from nclone_env.train.collect.rollout import RolloutColumns, StepFields
from nclone_env.train.policies.arrays import PassArrays, Seen
from nclone_env.train.policies.mlp import MLP, Network
from nclone_env.train.policies.mlp_kernels import gather_rows, outputs
from nclone_env.train.policies.network import NO_MASKS
from nclone_env.train.policies.sampling import sample_actions


class Collector:
    """Plays a group of n environments, with same-step autoreset.

    Attributes:
        columns: their part of the rollout.
        first: number of the first of them, counted over all ranks; ``offset`` are those of the ranks before this one.
        episodes: the episodes that ended in it.
        levels: (n,) int32, index of the level that each environment played in its last step.
        step_seconds: (T,) float64, times of the steps of the last rollout, in any order.
    """

    def __init__(self, envs: VectorEnvironment, columns: RolloutColumns, network: Network, seed: int, offset: int = 0):
        self.envs, self.columns, self.first = envs, columns, offset + columns.first
        count, storage = columns.num_envs, columns.storage
        self.episodes = EpisodeLog(count * storage.num_steps)
        self.levels = np.zeros(count, np.int32)
        self.step_seconds = np.zeros(storage.num_steps)
        self._network, self._seed = network, seed
        self._finals: Buffers = {
            name: np.zeros(array.shape, array.dtype)
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
        self._numbers = GroupNumbers(columns.first, self.first, seed)
        self._kernel = specialised_at_first(play_steps)

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

    def finish(self) -> None:
        """Do nothing: the episodes of a rollout are logged once it is played."""

    def warm_up(self, seat: int) -> None:
        """Play a rollout of new episodes, and load the kernels that only episodes that end would need."""
        self.reset(0)
        if self._play_compiled(seat, 0):
            return
        info, none_ended = self._play_in_python(seat, 0), np.zeros(self.columns.num_envs, np.bool_)
        self.episodes.add(none_ended, info, 0)
        self._evaluate_truncations(seat, none_ended, none_ended, {})

    def states(self) -> list[bytes]:
        """Return the snapshot of each environment."""
        return [self.envs.get_state(index) for index in range(self.envs.num_envs)]

    def restore(self, states: Sequence[bytes]) -> None:
        """Restore all environments from snapshots."""
        for index, state in enumerate(states):
            self.envs.set_state(index, state)

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
        """Play all steps in compiled code; return False, and play none, if environments or network need Python.

        The time of a step is the mean of those that one call plays.
        """
        envs, network, seconds, count = self.envs, self._network, self.step_seconds, 0
        # Not for subclasses of the environment, which may make steps of their own.
        if type(envs) is not NPlusPlusVectorEnv or not isinstance(network, MLP):
            return False
        arrays = network.pass_arrays(seat)
        steps = None if arrays is None else envs.kernel_steps(self.columns.storage.flat_observations, self._finals)
        if steps is None:
            return False
        finals, begin = network.seen(self._finals), 0
        while begin < len(seconds):
            end, began = min(begin + _STEPS_OF_CALL, len(seconds)), time.perf_counter()
            made, count = self._kernel(steps, arrays, finals, self._arrays, self._numbers, step, begin, end, count)
            seconds[begin:made] = (time.perf_counter() - began) / max(made - begin, 1)
            if made < end:  # the worlds need larger arrays
                steps = envs.kernel_steps(self.columns.storage.flat_observations, self._finals)
            begin = made
        self.episodes.count = count
        return True

    def _play_in_python(self, seat: int, step: int) -> dict[str, Any]:
        """Play all steps by calls of the environments and the network; return the last ``info``."""
        columns = self.columns
        while not columns.full:
            number, started = columns.cursor, time.perf_counter()
            info = self._step(seat, step + number)
            self.step_seconds[number] = time.perf_counter() - started
        states = columns.begin_states().copy()  # the next rollout begins with this observation
        columns.row("values")[:] = self._network.outputs(seat, columns.observation(), states)[1]
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
        logits, values = self._network.outputs(seat, observations, columns.begin_states())
        actions = columns.row("actions")
        masks = observations.get("action_mask", NO_MASKS)
        draw = (self._seed, self.first, step, self._arrays.probabilities, actions, columns.row("log_probs"))
        sample_actions(logits, masks, *draw)
        columns.row("values")[:] = values
        return actions

    def _evaluate_truncations(
        self, seat: int, truncated: np.ndarray, ended: np.ndarray, finals: Mapping[str, np.ndarray]
    ) -> None:
        """Record the values of the last observations of the episodes that the step at the cursor truncated, (n,) bool.

        ``finals`` are those of all that ``ended``, (k, ...) by name.
        """
        indices, places = self._arrays.indices, self._arrays.rows
        count = list_truncated(truncated, ended, indices, places)
        if not count:
            return
        rows = padded(count, len(truncated))
        for name, target in self._finals.items():
            np.take(finals[name], places[:rows], axis=0, out=target[:rows], mode="clip")
        chosen = {name: target[:rows] for name, target in self._finals.items()}
        seen, states = self.columns.stacked_finals(indices[:rows], chosen), self.columns.states[indices[:rows]]
        _, values = self._network.outputs(seat, seen, states)
        self.columns.row("final_values")[indices[:count]] = values[:count]


_STEPS_OF_CALL = 8
"""Steps of a compiled call: a millisecond, beside which Python costs little and after which Ctrl-C is noticed."""


class GroupArrays(NamedTuple):
    """What a group of n environments writes besides observations."""

    fields: StepFields[np.ndarray]
    """Those of the whole rollout."""
    records: np.ndarray
    """(c,) ``FINISHED``, the episodes that end in it."""
    places: np.ndarray
    """(c, 2) uint16, where they end."""
    levels: np.ndarray
    """(n,) int32, the levels of the last step."""
    ended: np.ndarray
    """(n,) bool, scratch."""
    rows: np.ndarray
    """(n,) int64, scratch."""
    indices: np.ndarray
    """(n,) int64, scratch."""
    probabilities: np.ndarray
    """(n, a) float32, scratch."""


class GroupNumbers(NamedTuple):
    """Numbers of a group."""

    column: int
    """Column of its first environment in the rollout."""
    first: int
    """Number of its first environment in the run."""
    seed: int
    """Seed of the sampled actions."""


@kernel
def play_steps(
    envs: KernelSteps, network: PassArrays, finals: Seen, group: GroupArrays, numbers: GroupNumbers,
    step, begin, end, count,
):  # fmt: skip
    """Play steps ``begin`` to ``end - 1`` of a rollout whose first is number ``step`` of the run.

    ``finals`` are the last observations of episodes, ``count`` episodes are logged before. Return the first step that
    was not played, before ``end`` if the worlds need larger arrays, and how many episodes are logged then.
    """
    for number in range(begin, end):
        _choose(network, group, numbers, step, number)
        if not _step(envs, group, numbers, number):
            return number, count
        count = _log(envs.arrays.results, group, number, count)
        _evaluate_truncations(network, finals, group, numbers, number)
    if end == len(group.fields.actions):
        _evaluate(network, group, numbers, end)
        for i in range(len(group.levels)):
            group.levels[i] = envs.arrays.results[i]["level"]
    return end, count


@kernel
def _evaluate(network: PassArrays, group: GroupArrays, numbers: GroupNumbers, number):
    """Compute the outputs of the network for the observations of a step, and record the values."""
    rows, values = group.rows, group.fields.values
    first = number * values.shape[1] + numbers.column
    for i in range(len(rows)):
        rows[i] = first + i
    _compute_outputs(network, network.seen, rows)
    for i in range(len(rows)):
        values[number, numbers.column + i] = network.scratch.values[i, 0]


@called_kernel  # in three places
def _compute_outputs(network: PassArrays, seen: Seen, rows):
    """Compute the outputs of the network for rows of observations."""
    inputs = network.scratch.inputs
    for source, width, offset in seen.sources:
        gather_rows(source, width, rows, network.input_bytes, offset, 4 * inputs.shape[1])
    outputs(rows, seen.sets, network.layout, inputs, network.scratch)


@kernel
def _choose(network: PassArrays, group: GroupArrays, numbers: GroupNumbers, step, number):
    """Record actions, their log probabilities and the values of a step."""
    _evaluate(network, group, numbers, number)
    fields, first, last = group.fields, numbers.column, numbers.column + len(group.rows)
    actions, log_probs = fields.actions[number, first:last], fields.log_probs[number, first:last]
    logits, masks = network.scratch.logits[: len(group.rows)], network.steps.masks
    sample_actions(
        logits, masks, numbers.seed, numbers.first, step + number, group.probabilities, actions, log_probs
    )  # fmt: skip


@kernel
def _step(envs: KernelSteps, group: GroupArrays, numbers: GroupNumbers, number):
    """Step the environments and record the results; return whether the worlds had room for it."""
    arrays, fields, count = envs.arrays, group.fields, len(group.rows)
    for i in range(count):
        arrays.actions[i] = fields.actions[number, numbers.column + i]
    if not step_all(envs, (number + 1) * fields.actions.shape[1] + numbers.column):
        return False
    for i in range(count):
        result, column = arrays.results[i], numbers.column + i
        fields.rewards[number, column] = result["reward"]
        fields.terminated[number, column], fields.truncated[number, column] = result["terminated"], result["truncated"]
        group.ended[i] = result["terminated"] or result["truncated"]
    return True


@kernel
def _log(results, group: GroupArrays, number, count):
    """Log the episodes that ended in a step; return how many are logged."""
    levels, starts, outcomes = results["level"], results["start"], results["outcome"]
    returns, frames = results["episode_return"], results["episode_frames"]
    return log_episodes(
        group.ended, levels, starts, outcomes, returns, frames, number, group.records, group.places, count
    )


@kernel
def _evaluate_truncations(network: PassArrays, finals: Seen, group: GroupArrays, numbers: GroupNumbers, number):
    """Record the values of the last observations of the episodes that a step truncated."""
    first, last = numbers.column, numbers.column + len(group.rows)
    truncated, rows, indices = group.fields.truncated[number, first:last], group.rows, group.indices
    count = list_truncated(truncated, group.ended, indices, rows)
    if count == 0:
        return
    _compute_outputs(network, finals, rows[: padded(count, len(rows))])
    for i in range(count):
        group.fields.final_values[number, first + indices[i]] = network.scratch.values[i, 0]


@kernel
def list_truncated(truncated, ended, indices, places):
    """List the truncated episodes; return their number.

    Args:
        truncated: (n,) bool.
        ended: (n,) bool; all truncated ones and more.
        indices: (n,) int64, written: their environments.
        places: (n,) int64, written: how many of the environments before each of them ended; then the first again.
    """
    count, place = 0, 0
    for index in range(len(ended)):
        if truncated[index]:
            indices[count], places[count] = index, place
            count += 1
        if ended[index]:
            place += 1
    if count:
        places[count:] = places[0]
    return count


@kernel
def padded(count, most):
    """Return the next power of 2, at most ``most``: rows of a call, so that calls have few different sizes."""
    rows = 1
    while rows < count:
        rows *= 2
    return min(rows, most)
