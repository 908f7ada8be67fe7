"""Proximal policy optimisation (Schulman et al., 2017): the update on a rollout."""

from collections.abc import Sequence

import numpy as np

from nclone_env.jit import kernel
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import splitmix
from nclone_env.train.learn.adam import Adam, sum_gradients
from nclone_env.train.learn.descents import CompiledDescents
from nclone_env.train.learn.learner import LearnerParts, UpdateStatistics
from nclone_env.train.network.arrays import LossScaling

_SHUFFLE_STREAM = np.uint64(0x73687566666C6531)
"""Keeps the numbers of the shuffle apart from those of the sampled actions, which have the same seed."""


class PPO:
    """The algorithm: updates the parameters on a rollout; independent of the environments.

    A minibatch is split into parts of equal size. Threads compute the gradients of parts as they become free; the
    gradients are then added in the order of the parts, so the result does not depend on the number of threads. All of
    an epoch is compiled code (``train.learn.descents``), unless the network or other ranks need Python in between.

    Every rank computes the same order of the steps of all ranks, differentiates those of its own environments in each
    minibatch, and adds up the gradients with the others. So K ranks take the same minibatches as one: only sums of
    floats are in another order.

    Attributes:
        optimiser: the state of Adam.

    """

    def __init__(self, parts: LearnerParts):
        config, _, parameters, storage, network, workers, part_size, ranks, _ = parts
        self.optimiser = Adam(len(parameters.vector))
        self.state, self.restore = self.optimiser.state, self.optimiser.restore
        self._network, self._parameters, self._config = network, parameters, config
        self._workers = workers
        self._ranks, self._envs = ranks, ranks.share(config.num_envs)
        self._advantages = storage.learning_fields.advantages
        self._order = np.zeros(config.batch_size, np.int64)
        self._part_size, self._most_steps = part_size, min(config.minibatch_size, config.num_steps * len(self._envs))
        most_parts = count_parts(self._most_steps, part_size)
        self._gradients = np.zeros((most_parts, len(parameters.vector)), np.float32)
        self._sums = np.zeros((most_parts, 6))
        self._totals = np.zeros(7)
        self._rows, self._scaling = self._order[:0], LossScaling(*np.zeros(7, np.float32))
        self._compiled: CompiledDescents | None = None
        if ranks.count == 1 and network.pass_arrays(0) is not None:
            arrays = self._order.reshape(config.ppo.num_minibatches, -1), self._gradients, self._sums, self._totals
            self._compiled = CompiledDescents(parts, self.optimiser, *arrays)

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
            if self._compiled is not None:
                self._compiled.run(advantages, learning_rate, self._scaling)
            else:
                for rows, (mean, deviation) in zip(minibatches, advantages, strict=True):
                    self._descend(rows, mean, deviation, learning_rate)
        self._ranks.add_up(self._totals[:6])
        steps, descents = config.batch_size * ppo.update_epochs, ppo.num_minibatches * ppo.update_epochs
        return UpdateStatistics._make([*(self._totals[:6] / steps).tolist(), float(self._totals[6] / descents)])

    def warm_up(self) -> None:
        """Compute the gradients of a minibatch with every thread's scratch, and throw them away."""
        shuffle(self._order, self._config.seed, 0, 0)
        self._rows = np.arange(self._most_steps)
        moments(self._advantages, self._rows)
        if self._compiled is not None:
            self._compiled.warm_up()
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
        compiled = (self._compiled.memory(),) if self._compiled is not None else ()
        return MemoryNode("update", children=(self.optimiser.memory(), gradient, parts, *compiled))

    def _advantage_moments(self, minibatches: Sequence[np.ndarray]) -> list[list[float]]:
        """Return mean and standard deviation of the advantages of each minibatch over all ranks."""
        parts = np.zeros((self._ranks.count, len(minibatches), 3))
        for part, rows in zip(parts[self._ranks.number], minibatches, strict=True):
            if len(rows):
                part[:] = len(rows), *moments(self._advantages, rows)
        self._ranks.add_up(parts)
        return combine_moments(parts).tolist()

    def _descend(self, rows: np.ndarray, mean: float, deviation: float, learning_rate: float) -> None:
        """Take one gradient step on a minibatch, given the steps of this rank, and moments of the advantages of all."""
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

    Args:
        minibatches: (m, b) int64, numbers t * N + i of the steps of all N environments.
        num_envs: N.
        envs: those of the rank. Their steps are numbered t * n + i - first, with n of them from ``first`` on.
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
