"""The gradient steps of an epoch in compiled code: threads go from minibatch to minibatch without the interpreter.

A minibatch takes half a millisecond. Two threads that Python hands its parts to take a sixth longer: they wait for each
other's interpreter lock, and a thread that sleeps needs 25 microseconds to wake up. So a thread that waits here first
looks at a counter for a while, which costs 6 % more processor time where other processes want the cores.
"""

from collections.abc import Sequence
from time import sleep
from typing import NamedTuple

import numpy as np

from nclone_env.jit import next_number, numeric_kernel, read_number, specialised_at_first
from nclone_env.memory import MemoryNode, arrays_node
from nclone_env.train.learn.adam import Adam, clipped_step, sum_gradients
from nclone_env.train.learn.learner import LearnerParts
from nclone_env.train.network.arrays import LossScaling, PassArrays
from nclone_env.train.network.mlp_kernels import gather_rows, gradient

_MOST_PARTS = 64  # of a call: tens of milliseconds, so that Ctrl-C is noticed
_SPINS = 400_000  # looks at a counter before a thread sleeps: 60 microseconds, twice the time to wake up
_MOMENT = 0.0001  # seconds
_FINISHED = -1


class Progress(NamedTuple):
    """Counters that the threads share, of m minibatches of k parts."""

    claimed: np.ndarray
    """(m,) int64, parts that a thread has begun; may exceed k."""
    computed: np.ndarray
    """(m,) int64, parts whose gradient is computed."""
    descents: np.ndarray
    """(1,) int64, steps taken, which is the number of the minibatch to work on."""


class Descents(NamedTuple):
    """What the threads read and write besides the network."""

    order: np.ndarray
    """(m, b) int64, the steps of each minibatch."""
    moments: np.ndarray
    """(m, 2) float32: mean of the advantages of each minibatch, and the reciprocal of their deviation."""
    rates: np.ndarray
    """(m, 2) float32: ``Adam.rates`` of each step."""
    mean: np.ndarray
    """(p,) float32: ``Adam.mean``."""
    square: np.ndarray
    """(p,) float32: ``Adam.square``."""
    gradients: np.ndarray
    """(k, p) float32, the gradient of each part."""
    sums: np.ndarray
    """(k, 6) float64, sums of each part for the statistics."""
    totals: np.ndarray
    """(7,) float64: those over all parts of the update so far, and the sum of the norms of the gradients."""
    progress: Progress


@numeric_kernel
def descend(network: PassArrays, descents: Descents, scaling: LossScaling, max_norm):
    """Work on minibatches with the other threads; the one that computes the last part of a minibatch takes the step.

    Returns:
        Parts computed in this call, 0 if it has waited in vain, ``_FINISHED`` if there is nothing left to do.
    """
    progress, parts, most = descents.progress, len(descents.gradients), len(descents.order)
    computed = 0
    while computed < _MOST_PARTS:
        number = read_number(progress.descents)
        if number == most:
            return _FINISHED
        part = next_number(progress.claimed[number:])
        if part < parts:
            _differentiate(network, descents, scaling, number, part)
            computed += 1
            if next_number(progress.computed[number:]) == parts - 1:
                _step(network, descents, max_norm, number)
                next_number(progress.descents)
        elif not _await(progress.descents, number):
            break
    return computed


@numeric_kernel
def _await(counter, number):
    """Return whether a counter leaves a number while this thread looks at it."""
    for _ in range(_SPINS):  # noqa: SIM110 - kernels have no generators
        if read_number(counter) != number:
            return True
    return False


@numeric_kernel
def _differentiate(network: PassArrays, descents: Descents, scaling: LossScaling, number, part):
    """Compute the gradient of a part of a minibatch."""
    size, parts = descents.order.shape[1], len(descents.gradients)
    rows = descents.order[number, size * part // parts : size * (part + 1) // parts]
    inputs = network.scratch.inputs
    for source, width, offset in network.seen.sources:
        gather_rows(source, width, rows, network.input_bytes, offset, 4 * inputs.shape[1])
    mean, scale = descents.moments[number]
    of_loss = LossScaling(
        mean, scale, scaling.share, scaling.clip_coef, scaling.value_coef, scaling.entropy_coef, scaling.reference_coef
    )
    gradient(
        rows, rows, network.seen.sets, network.steps, of_loss, network.layout, network.scratch,
        descents.gradients[part], descents.sums[part],
    )  # fmt: skip


@numeric_kernel
def _step(network: PassArrays, descents: Descents, max_norm, number):
    """Take the gradient step of a minibatch."""
    gradients, sums, totals = descents.gradients, descents.sums, descents.totals
    sum_gradients(gradients)
    rate, correction = descents.rates[number]
    norm = clipped_step(
        network.layout.parameters, gradients[0], descents.mean, descents.square, max_norm, rate, correction
    )
    for j in range(sums.shape[1]):
        total = sums[0, j]
        for part in range(1, len(sums)):
            total += sums[part, j]
        totals[j] += total
    totals[sums.shape[1]] += norm


class CompiledDescents:
    """Takes the gradient steps of an epoch, for networks with ``pass_arrays``; arrays as of :class:`Descents`."""

    def __init__(
        self,
        parts: LearnerParts,
        optimiser: Adam,
        order: np.ndarray,
        gradients: np.ndarray,
        sums: np.ndarray,
        totals: np.ndarray,
    ):
        self._network, self._parameters = parts.network, parts.parameters.vector
        self._workers = parts.workers
        self._optimiser, self._max_norm = optimiser, parts.config.ppo.max_grad_norm
        count = len(order)
        counters = Progress(*(np.zeros(size, np.int64) for size in (count, count, 1)))
        moments, rates = np.zeros((2, count, 2), np.float32)
        self._descents = Descents(
            order, moments, rates, optimiser.mean, optimiser.square, gradients, sums, totals, counters
        )
        self._scaling = LossScaling(*np.zeros(7, np.float32))
        self._kernel = specialised_at_first(descend)

    def run(self, moments: Sequence[Sequence[float]], learning_rate: float, scaling: LossScaling) -> None:
        """Take a step on each minibatch.

        Args:
            moments: mean and standard deviation of the advantages of each.
            scaling: the other numbers of the loss.
        """
        optimiser, descents = self._optimiser, self._descents
        for number, (mean, deviation) in enumerate(moments):
            optimiser.count += 1
            descents.moments[number] = mean, 1 / (deviation + 1e-8)
            descents.rates[number] = optimiser.rates(learning_rate, optimiser.count)
        self._scaling = scaling
        self._begin(0)
        self._workers.run(self._work, 0, self._workers.count)

    def warm_up(self) -> None:
        """Compile the kernel and use the scratch of every thread, and leave parameters and optimiser as at first."""
        before = self._parameters.copy()
        for seat in range(self._workers.count):
            self._begin(len(self._descents.order) - 1)
            self._work(seat, 0, 1)
        self._parameters[:] = before
        for changed in (self._optimiser.mean, self._optimiser.square, self._descents.totals):
            changed.fill(0)

    def memory(self) -> MemoryNode:
        """Return the bytes of the counters and of the numbers of each step."""
        descents = self._descents
        return arrays_node("descents", (descents.moments, descents.rates, *descents.progress), shared=False)

    def _begin(self, number: int) -> None:
        """Go back to a minibatch; no thread works on one."""
        progress = self._descents.progress
        progress.claimed.fill(0)
        progress.computed.fill(0)
        progress.descents.fill(number)

    def _work(self, seat: int, first: int, last: int) -> None:
        """Work until nothing is left to do; a thread that comes late finds nothing."""
        arrays = self._network.pass_arrays(seat)
        while (computed := self._kernel(arrays, self._descents, self._scaling, self._max_norm)) != _FINISHED:
            if not computed:
                sleep(_MOMENT)
