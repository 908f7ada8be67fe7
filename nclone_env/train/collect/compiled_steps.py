"""The steps of a rollout in compiled code: a thread plays its environments without the interpreter.

A step of a hundred environments takes a tenth of a millisecond. Threads that run Python code in each step wait for each
other's interpreter lock, longer with every further thread.
"""

import time
from typing import NamedTuple

import numpy as np

from nclone_env.env import Buffers, KernelSteps, NPlusPlusVectorEnv, step_all
from nclone_env.jit import called_kernel, kernel, specialised_at_first
from nclone_env.train.collect.episodes import log_episodes
from nclone_env.train.collect.rollout import RolloutStorage, StepFields
from nclone_env.train.network.arrays import PassArrays, Seen
from nclone_env.train.network.mlp import MLP
from nclone_env.train.network.mlp_kernels import gather_rows, outputs
from nclone_env.train.network.sampling import sample_actions

_STEPS_OF_CALL = 8
"""Steps of a compiled call: a millisecond, beside which Python costs little and after which Ctrl-C is noticed."""


class GroupArrays(NamedTuple):
    """What a group of n environments writes besides observations."""

    fields: StepFields
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

    Args:
        network: for the stored observations.
        finals: the last observations of episodes.
        count: episodes that are logged before.

    Returns:
        Those that are logged afterwards.
    """
    for number in range(begin, end):
        _choose(network, group, numbers, step, number)
        _step(envs, group, numbers, number)
        count = _log(envs.arrays.results, group, number, count)
        _evaluate_truncations(network, finals, group, numbers, number)
    if end == len(group.fields.actions):
        _evaluate(network, group, numbers, end)
        for i in range(len(group.levels)):
            group.levels[i] = envs.arrays.results[i]["level"]
    return count


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
    """Step the environments and record the results."""
    arrays, fields, count = envs.arrays, group.fields, len(group.rows)
    for i in range(count):
        arrays.actions[i] = fields.actions[number, numbers.column + i]
    step_all(envs, (number + 1) * fields.actions.shape[1] + numbers.column)
    for i in range(count):
        result, column = arrays.results[i], numbers.column + i
        fields.rewards[number, column] = result["reward"]
        fields.terminated[number, column], fields.truncated[number, column] = result["terminated"], result["truncated"]
        group.ended[i] = result["terminated"] or result["truncated"]


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


class CompiledSteps:
    """Plays the rollouts of a group in a few calls of compiled code.

    Args:
        network: has ``pass_arrays``.
        storage: that of the rollouts.
        finals: room for the last observations of episodes, (n, ...) by name.
        group: arrays of the group.
    """

    def __init__(
        self,
        envs: NPlusPlusVectorEnv,
        network: MLP,
        storage: RolloutStorage,
        finals: Buffers,
        group: GroupArrays,
        numbers: GroupNumbers,
    ):
        self._envs, self._network, self._group, self._numbers = envs, network, group, numbers
        self._observations, self._finals = storage.flat_observations, finals
        self._kernel = specialised_at_first(play_steps)

    def play(self, seat: int, step: int, seconds: np.ndarray) -> int | None:
        """Play a rollout whose first step is number ``step`` of the run.

        Args:
            seconds: (T,) float64, written: the time of each step, in the mean of those that one call plays.

        Returns:
            The number of episodes that ended; None, and nothing is played, if the environments need Python.
        """
        envs, network = self._envs.kernel_steps(self._observations, self._finals), self._network.pass_arrays(seat)
        if envs is None:
            return None
        finals, count = self._network.seen(self._finals), 0
        for begin in range(0, len(seconds), _STEPS_OF_CALL):
            end, began = min(begin + _STEPS_OF_CALL, len(seconds)), time.perf_counter()
            count = self._kernel(envs, network, finals, self._group, self._numbers, step, begin, end, count)
            seconds[begin:end] = (time.perf_counter() - began) / (end - begin)
        return count
