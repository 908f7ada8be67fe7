"""Proximal policy optimisation (Schulman et al., 2017): the update on a rollout.

The gradient steps of an epoch are compiled code: threads go from minibatch to minibatch without the interpreter. A
minibatch takes half a millisecond. Two threads that Python hands its parts to take a sixth longer: they wait for each
other's interpreter lock, and a thread that sleeps needs 25 microseconds to wake up. So a thread that waits here first
looks at a counter for a while, which costs 6 % more processor time where other processes want the cores.
"""

from collections.abc import Sequence
from time import sleep
from typing import NamedTuple

import numpy as np

from nclone_env.jit import kernel, next_number, numeric_kernel, read_number, specialised_at_first
from nclone_env.memory import MemoryNode, array_group, arrays_node
from nclone_env.sim import splitmix
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.learn.adam import Adam, clipped_step, sum_gradients
from nclone_env.train.learn.learner import LearnerParts, UpdateStatistics
from nclone_env.train.policies.arrays import LossScaling, PassArrays
from nclone_env.train.policies.device import DeviceNetwork
from nclone_env.train.policies.mlp_kernels import gather_rows, gradient

_SHUFFLE_STREAM = np.uint64(0x73687566666C6531)
"""Keeps the numbers of the shuffle apart from those of the sampled actions, which have the same seed."""


class Progress(NamedTuple):
    """Counters that the threads share, of m minibatches of k parts."""

    claimed: np.ndarray
    """(m,) int64, parts that a thread has begun; may exceed k."""
    computed: np.ndarray
    """(m,) int64, parts whose gradient is computed."""
    steps: np.ndarray
    """(1,) int64, steps taken, which is the number of the minibatch to work on."""

    def begin(self, number: int) -> None:
        """Go back to a minibatch; no thread works on one."""
        self.claimed.fill(0)
        self.computed.fill(0)
        self.steps.fill(number)


class EpochArrays(NamedTuple):
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


class PPO:
    """The algorithm: updates the parameters on a rollout; independent of the environments.

    A minibatch is split into parts of equal size. Threads compute the gradients of parts as they become free; the
    gradients are then added in the order of the parts, so the result does not depend on the number of threads. All of
    an epoch is compiled code, unless the network or other ranks need Python in between.

    Every rank computes the same order of the steps of all ranks, differentiates those of its own environments in each
    minibatch, and adds up the gradients with the others. So K ranks take the same minibatches as one: only sums of
    floats are in another order.

    A policy with memory learns from whole sequences, all steps of an environment in the rollout: minibatches and parts
    consist of those, numbered by their environments, instead of steps.
    """

    def __init__(self, parts: LearnerParts):
        config, _, parameters, storage, network, workers, part_size, ranks, _ = parts
        assert isinstance(storage, RolloutStorage)
        assert not isinstance(network, DeviceNetwork)
        self.optimiser = Adam(len(parameters.vector))
        self.state, self.restore = self.optimiser.state, self.optimiser.restore
        self._network, self._parameters, self._config = network, parameters, config
        self._workers = workers
        self._ranks, self._envs = ranks, ranks.share(config.num_envs)
        self._advantages = storage.learning_fields.advantages
        self._length = config.num_steps if config.recurrent_size else 1  # steps of a row of a minibatch
        self._order = np.zeros(config.batch_size // self._length, np.int64)
        self._part_size = part_size // self._length
        self._most_rows = min(config.minibatch_size, config.num_steps * len(self._envs)) // self._length
        most_parts = count_parts(self._most_rows, self._part_size)
        self._gradients = np.zeros((most_parts, len(parameters.vector)), np.float32)
        self._sums = np.zeros((most_parts, 6))
        self._totals = np.zeros(7)
        self._rows, self._scaling = self._order[:0], LossScaling(*np.zeros(7, np.float32))
        self._epoch: EpochArrays | None = None
        if ranks.count == 1 and network.pass_arrays(0) is not None:
            self._epoch = self._make_epoch()
            self._kernel = specialised_at_first(learn_epoch)

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters, as ``train.learn.learner.Learner`` describes."""
        config = self._config
        ppo = config.ppo
        numbers = 0, 0, 1 / config.minibatch_size, ppo.clip_coef, ppo.value_coef, entropy_coef, reference_coef
        self._scaling = LossScaling(*map(np.float32, numbers))
        self._totals[:] = 0
        for epoch in range(ppo.update_epochs):
            shuffle(self._order, config.seed, number, epoch)
            minibatches = own_steps(self._order.reshape(ppo.num_minibatches, -1), config.num_envs, self._envs)
            advantages = self._advantage_moments(minibatches)
            if self._epoch is not None:
                self._learn_compiled(self._epoch, advantages, learning_rate)
            else:
                for rows, (mean, deviation) in zip(minibatches, advantages, strict=True):
                    self._descend(rows, mean, deviation, learning_rate)
        self._ranks.add_up(self._totals[:6])
        steps, descents = config.batch_size * ppo.update_epochs, ppo.num_minibatches * ppo.update_epochs
        return UpdateStatistics._make([*(self._totals[:6] / steps).tolist(), float(self._totals[6] / descents)])

    def warm_up(self) -> None:
        """Compute the gradients of a minibatch with every thread's scratch, and throw them away."""
        shuffle(self._order, self._config.seed, 0, 0)
        self._rows = np.arange(self._most_rows)
        moments(self._advantages, self._steps(self._rows))
        if self._epoch is not None:
            self._warm_up_compiled(self._epoch)
            return
        for seat in range(self._workers.count):
            self._differentiate(seat, 0, len(self._gradients) if seat == 0 else 1)
        sum_gradients(self._gradients)
        self.optimiser.warm_up()

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser, gradients and order."""
        gradient = array_group("first part", {"gradient": self._gradients[:1]}, shared=True)
        arrays: dict[str, np.ndarray] = {"gradients": self._gradients[1:], "order": self._order, "sums": self._sums}
        parts = array_group("parts of a minibatch", arrays, shared=False)  # as many as the steps need
        epoch = self._epoch
        compiled = () if epoch is None else (epoch.moments, epoch.rates, *epoch.progress)
        numbers = (arrays_node("epoch", compiled, shared=False),) if compiled else ()
        return MemoryNode("update", children=(self.optimiser.memory(), gradient, parts, *numbers))

    def _advantage_moments(self, minibatches: Sequence[np.ndarray]) -> list[list[float]]:
        """Return mean and standard deviation of the advantages of each minibatch over all ranks."""
        parts = np.zeros((self._ranks.count, len(minibatches), 3))
        for part, rows in zip(parts[self._ranks.number], minibatches, strict=True):
            if len(rows):
                part[:] = len(rows), *moments(self._advantages, self._steps(rows))
        self._ranks.add_up(parts)
        return combine_moments(parts).tolist()

    def _steps(self, rows: np.ndarray) -> np.ndarray:
        """Return the steps of rows of a minibatch."""
        if self._length == 1:
            return rows
        return (np.arange(self._length)[:, None] * len(self._envs) + rows).ravel()

    def _descend(self, rows: np.ndarray, mean: float, deviation: float, learning_rate: float) -> None:
        """Take one gradient step on a minibatch, given the rows of this rank, and moments of the advantages of all."""
        config = self._config
        self._scaling = self._scaling._replace(mean=np.float32(mean), scale=np.float32(1 / (deviation + 1e-8)))
        self._rows = rows
        count = count_parts(len(rows), self._part_size)
        if count < len(self._gradients):  # with several ranks, when few of the steps are of this one
            self._gradients[count:] = 0
            self._sums[count:] = 0
        if count:
            self._workers.run(self._differentiate, 0, count)
        sum_gradients(self._gradients)
        gradient = self._gradients[0]
        self._ranks.add_up(gradient)
        norm = self.optimiser.step(self._parameters.vector, gradient, learning_rate, config.ppo.max_grad_norm)
        self._totals[:6] += self._sums.sum(axis=0)
        self._totals[6] += norm

    def _differentiate(self, seat: int, first: int, last: int) -> None:
        """Compute the gradients of the parts ``first`` to ``last - 1`` of the minibatch."""
        size, count = len(self._rows), count_parts(len(self._rows), self._part_size)
        for part in range(first, last):
            rows = self._rows[size * part // count : size * (part + 1) // count]
            self._network.gradient(seat, rows, self._scaling, self._gradients[part], self._sums[part])

    def _make_epoch(self) -> EpochArrays:
        """Return what the threads share in an epoch of compiled code."""
        order, optimiser = self._order.reshape(self._config.ppo.num_minibatches, -1), self.optimiser
        count = len(order)
        counters = Progress(*(np.zeros(size, np.int64) for size in (count, count, 1)))
        moments, rates = np.zeros((2, count, 2), np.float32)
        shared = self._gradients, self._sums, self._totals
        return EpochArrays(order, moments, rates, optimiser.mean, optimiser.square, *shared, counters)

    def _learn_compiled(self, epoch: EpochArrays, advantages: Sequence[Sequence[float]], learning_rate: float) -> None:
        """Take a step on each minibatch, given moments of the advantages."""
        for number, (mean, deviation) in enumerate(advantages):
            self.optimiser.count += 1
            epoch.moments[number] = mean, 1 / (deviation + 1e-8)
            epoch.rates[number] = self.optimiser.rates(learning_rate, self.optimiser.count)
        epoch.progress.begin(0)
        self._workers.run(self._work, 0, self._workers.count)

    def _warm_up_compiled(self, epoch: EpochArrays) -> None:
        """Compile the kernel and use the scratch of every thread, and leave parameters and optimiser as at first."""
        before = self._parameters.vector.copy()
        for seat in range(self._workers.count):
            epoch.progress.begin(len(epoch.order) - 1)
            self._work(seat, 0, 1)
        self._parameters.vector[:] = before
        for changed in (epoch.mean, epoch.square, epoch.totals):
            changed.fill(0)

    def _work(self, seat: int, first: int, last: int) -> None:
        """Work on the epoch until nothing is left to do; a thread that comes late finds nothing."""
        arrays, most = self._network.pass_arrays(seat), self._config.ppo.max_grad_norm
        while (computed := self._kernel(arrays, self._epoch, self._scaling, most)) != _FINISHED:
            if not computed:
                sleep(_MOMENT)


def count_parts(steps: int, part_size: int) -> int:
    """Return the number of parts of so many steps of a minibatch."""
    return -(-steps // part_size)


def combine_moments(parts: np.ndarray) -> np.ndarray:
    """Return mean and standard deviation, (m, 2) float64, of m sets of numbers; of one rank they are given.

    ``parts``, (k, m, 3), are number of entries, mean and standard deviation of the parts of each set in k ranks.
    """
    if len(parts) == 1:
        return parts[0, :, 1:]
    counts, means, deviations = np.moveaxis(parts, 2, 0)
    shares = counts / counts.sum(axis=0)
    with np.errstate(all="ignore"):  # the run looks for what is not finite after the update
        mean = (shares * means).sum(axis=0)
        variance = (shares * (deviations**2 + (means - mean) ** 2)).sum(axis=0)
    return np.column_stack((mean, np.sqrt(variance)))


@kernel
def shuffle(order, seed, update, epoch):
    """Fill ``order``, (b,) int64, with a random permutation of 0 to b - 1 that depends on the three numbers alone."""
    count = len(order)
    for i in range(count):
        order[i] = i
    state = splitmix(splitmix(splitmix(np.uint64(seed) ^ _SHUFFLE_STREAM) ^ np.uint64(update)) ^ np.uint64(epoch))
    for i in range(count - 1, 0, -1):
        state = splitmix(state)
        j = np.int64((state >> np.uint64(32)) * np.uint64(i + 1) >> np.uint64(32))  # bias below i / 2**32
        order[i], order[j] = order[j], order[i]


def own_steps(minibatches: np.ndarray, num_envs: int, envs: range) -> Sequence[np.ndarray]:
    """Return the steps of the environments of a rank in each minibatch, in their order.

    Minibatches, (m, b) int64, have numbers t * N + i of the steps of all N environments. The n ones of the rank, from
    ``first`` on, number theirs t * n + i - first.
    """
    if len(envs) == num_envs:
        return [*minibatches]
    times, places = np.divmod(minibatches, num_envs)
    places -= envs.start
    own = (places >= 0) & (places < len(envs))
    return [(t * len(envs) + i)[chosen] for t, i, chosen in zip(times, places, own, strict=True)]


@kernel
def moments(values, rows):
    """Return mean and standard deviation of ``values[rows]``, summed in float64."""
    total = 0.0
    for i in range(len(rows)):
        total += values[rows[i]]
    mean = total / len(rows)
    squares = 0.0
    for i in range(len(rows)):
        squares += (values[rows[i]] - mean) ** 2
    return mean, np.sqrt(squares / len(rows))


_MOST_PARTS = 64  # of a call: tens of milliseconds, so that Ctrl-C is noticed
_SPINS = 400_000  # looks at a counter before a thread sleeps: 60 microseconds, twice the time to wake up
_MOMENT = 0.0001  # seconds
_FINISHED = -1


@numeric_kernel
def learn_epoch(network: PassArrays, epoch: EpochArrays, scaling: LossScaling, max_norm):
    """Work on minibatches with the other threads; the one that computes the last part of a minibatch takes the step.

    Returns:
        Parts computed in this call, 0 if it has waited in vain, ``_FINISHED`` if there is nothing left to do.
    """
    progress, parts, most = epoch.progress, len(epoch.gradients), len(epoch.order)
    computed = 0
    while computed < _MOST_PARTS:
        number = read_number(progress.steps)
        if number == most:
            return _FINISHED
        part = next_number(progress.claimed[number:])
        if part < parts:
            _differentiate(network, epoch, scaling, number, part)
            computed += 1
            if next_number(progress.computed[number:]) == parts - 1:
                _step(network, epoch, max_norm, number)
                next_number(progress.steps)
        elif not _await(progress.steps, number):
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
def _differentiate(network: PassArrays, epoch: EpochArrays, scaling: LossScaling, number, part):
    """Compute the gradient of a part of a minibatch."""
    size, parts = epoch.order.shape[1], len(epoch.gradients)
    rows = epoch.order[number, size * part // parts : size * (part + 1) // parts]
    inputs = network.scratch.inputs
    for source, width, offset in network.seen.sources:
        gather_rows(source, width, rows, network.input_bytes, offset, 4 * inputs.shape[1])
    mean, scale = epoch.moments[number]
    of_loss = LossScaling(
        mean, scale, scaling.share, scaling.clip_coef, scaling.value_coef, scaling.entropy_coef, scaling.reference_coef
    )
    gradient(
        rows, rows, network.seen.sets, network.steps, of_loss, network.layout, network.scratch,
        epoch.gradients[part], epoch.sums[part],
    )  # fmt: skip


@numeric_kernel
def _step(network: PassArrays, epoch: EpochArrays, max_norm, number):
    """Take the gradient step of a minibatch."""
    gradients, sums, totals = epoch.gradients, epoch.sums, epoch.totals
    sum_gradients(gradients)
    rate, correction = epoch.rates[number]
    norm = clipped_step(network.layout.parameters, gradients[0], epoch.mean, epoch.square, max_norm, rate, correction)
    for j in range(sums.shape[1]):
        total = sums[0, j]
        for part in range(1, len(sums)):
            total += sums[part, j]
        totals[j] += total
    totals[sums.shape[1]] += norm
