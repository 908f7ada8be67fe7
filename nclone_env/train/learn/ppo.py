"""Proximal policy optimisation (Schulman et al., 2017): the update on a rollout."""

import numpy as np

from nclone_env.env import Chunks
from nclone_env.jit import kernel
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import splitmix
from nclone_env.train.learn.adam import Adam, sum_gradients
from nclone_env.train.learn.learner import LearnerParts, UpdateStatistics
from nclone_env.train.network.arrays import LossScaling

_SHUFFLE_STREAM = np.uint64(0x73687566666C6531)
"""Keeps the numbers of the shuffle apart from those of the sampled actions, which have the same seed."""


class PPO:
    """The algorithm: updates the parameters on a rollout; independent of the environments.

    A minibatch is split into parts of equal size. Threads compute the gradients of parts as they become free; the
    gradients are then added in the order of the parts, so the result does not depend on the number of threads.

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
        self._workers, self._chunks = workers, Chunks()
        self._ranks, self._envs = ranks, ranks.share(config.num_envs)
        self._advantages = storage.learning_fields.advantages
        self._order = np.zeros(config.batch_size, np.int64)
        self._own_counts = np.zeros(config.ppo.num_minibatches, np.int64)
        self._moment_parts = np.zeros((ranks.count, config.ppo.num_minibatches, 3))
        self._part_size, self._most_steps = part_size, min(config.minibatch_size, config.num_steps * len(self._envs))
        most_parts = self._part_count = count_parts(self._most_steps, part_size)
        self._gradients = np.zeros((most_parts, len(parameters.vector)), np.float32)
        self._sums = np.zeros((most_parts, 6))
        self._totals = np.zeros(7)
        self._rows, self._scaling = self._order[:0], LossScaling(*np.zeros(7, np.float32))

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters, as ``train.learn.learner.Learner`` describes."""
        config = self._config
        ppo = config.ppo
        numbers = 0, 0, 1 / config.minibatch_size, ppo.clip_coef, ppo.value_coef, entropy_coef, reference_coef
        self._scaling = LossScaling(*map(np.float32, numbers))
        self._totals[:] = 0
        for epoch in range(config.ppo.update_epochs):
            shuffle(self._order, config.seed, number, epoch)
            keep_own(
                self._order, config.minibatch_size, config.num_envs, self._envs.start, self._envs.stop, self._own_counts
            )
            for minibatch, (mean, deviation) in enumerate(self._advantage_moments().tolist()):
                self._descend(minibatch, mean, deviation, learning_rate)
        self._ranks.add_up(self._totals[:6])
        steps, descents = (
            config.batch_size * config.ppo.update_epochs,
            config.ppo.num_minibatches * config.ppo.update_epochs,
        )
        return UpdateStatistics._make([*(self._totals[:6] / steps).tolist(), float(self._totals[6] / descents)])

    def warm_up(self) -> None:
        """Compute the gradients of a minibatch with every thread's scratch, and throw them away."""
        shuffle(self._order, self._config.seed, 0, 0)
        keep_own(self._order, len(self._order), self._config.num_envs, 0, self._config.num_envs, self._own_counts)
        self._rows = np.arange(self._most_steps)
        moments(self._advantages, self._rows)
        self._part_count = len(self._gradients)
        for seat in range(self._workers.count):
            self._differentiate(seat, 0, self._part_count if seat == 0 else 1)
        sum_gradients(self._gradients)
        self.optimiser.warm_up()

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser, gradients and order."""
        gradient = array_group("first part", {"gradient": self._gradients[:1]}, shared=True)
        arrays: dict[str, np.ndarray] = {"gradients": self._gradients[1:], "order": self._order, "sums": self._sums}
        parts = array_group("parts of a minibatch", arrays, shared=False)  # as many as the steps need
        return MemoryNode("update", children=(self.optimiser.memory(), gradient, parts))

    def _advantage_moments(self) -> np.ndarray:
        """Return mean and standard deviation of the advantages of each minibatch over all ranks, (m, 2) float64."""
        self._moment_parts.fill(0)
        for minibatch, part in enumerate(self._moment_parts[self._ranks.number]):
            rows = self._own_rows(minibatch)
            if len(rows):
                part[0], (part[1], part[2]) = len(rows), moments(self._advantages, rows)
        self._ranks.add_up(self._moment_parts)
        return combine_moments(self._moment_parts)

    def _own_rows(self, minibatch: int) -> np.ndarray:
        """Return the steps of this rank in a minibatch, (n,) int64."""
        first = minibatch * self._config.minibatch_size
        return self._order[first : first + int(self._own_counts[minibatch])]

    def _descend(self, minibatch: int, mean: float, deviation: float, learning_rate: float) -> None:
        """Take one gradient step on a minibatch, given mean and standard deviation of its advantages."""
        config = self._config
        self._scaling = self._scaling._replace(mean=np.float32(mean), scale=np.float32(1 / (deviation + 1e-8)))
        self._rows = self._own_rows(minibatch)
        count = self._part_count = count_parts(len(self._rows), self._part_size)
        if count < len(self._gradients):  # with several ranks, when few of the steps are of this one
            self._gradients[count:] = 0
            self._sums[count:] = 0
        if count:
            self._workers.run(self._chunks, self._differentiate, 0, count)
        sum_gradients(self._gradients)
        gradient = self._gradients[0]
        self._ranks.add_up(gradient)
        norm = self.optimiser.step(self._parameters.vector, gradient, learning_rate, config.ppo.max_grad_norm)
        self._totals[:6] += self._sums.sum(axis=0)
        self._totals[6] += norm

    def _differentiate(self, seat: int, first: int, last: int) -> None:
        """Compute the gradients of the parts ``first`` to ``last - 1`` of the minibatch."""
        size, count = len(self._rows), self._part_count
        for part in range(first, last):
            rows = self._rows[size * part // count : size * (part + 1) // count]
            self._network.gradient(seat, rows, self._scaling, self._gradients[part], self._sums[part])


def count_parts(steps: int, part_size: int) -> int:
    """Return the number of parts of so many steps of a minibatch."""
    return -(-steps // part_size)


def combine_moments(parts: np.ndarray) -> np.ndarray:
    """Return mean and standard deviation, (m, 2) float64, of m sets of numbers; a single part is copied to the bit.

    ``parts``, (k, m, 3), are number of entries, mean and standard deviation of the parts of each set in k ranks.
    """
    counts, means, deviations = np.moveaxis(parts, 2, 0)
    shares = counts / counts.sum(axis=0)
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


@kernel
def keep_own(order, size, num_envs, first, last, counts):
    """Move the steps of environments ``first`` to ``last - 1`` to the beginning of each minibatch, in their order.

    Args:
        order: (b,) int64, numbers t * N + i of the steps of all N environments; those that are kept become
            t * n + i - first, with n = last - first; undefined after them.
        num_envs: N.
        counts: (b / size,) int64, written: steps of each minibatch that are kept.
    """
    alone = last - first == num_envs
    for minibatch in range(len(order) // size):
        start = minibatch * size
        end = start
        if alone:
            end += size
        else:
            for place in range(start, start + size):
                step, index = divmod(order[place], num_envs)
                if first <= index < last:
                    order[end] = step * (last - first) + index - first
                    end += 1
        counts[minibatch] = end - start


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
