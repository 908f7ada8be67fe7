"""Proximal policy optimisation (Schulman et al., 2017): the update on a rollout."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.env.threads import Job, Workers
from nclone_env.jit import kernel
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.train.adam import Adam, sum_gradients
from nclone_env.train.config import TrainConfig
from nclone_env.train.network import LossScaling, Network
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.rollout import RolloutStorage
from nclone_env.train.sampling import mix


class UpdateStatistics(NamedTuple):
    """Means over the steps of one update."""

    policy_loss: float
    """Clipped surrogate loss."""
    value_loss: float
    """Half the mean squared error of the values."""
    entropy: float
    """Entropy of the policy, in nats."""
    approx_kl: float
    """Estimate of the KL divergence from the policy that collected the rollout."""
    clip_fraction: float
    """Fraction of probability ratios outside the clipping range."""
    clone_kl: float
    """KL divergence of the policy from the clone of a warm start, KL(clone || policy); 0 where it is not used."""
    grad_norm: float
    """Norm of the gradient before clipping, mean over the minibatches."""


class PPO:
    """The algorithm: updates the parameters on a rollout; independent of the environments.

    A minibatch is split into parts of equal size. Threads compute the gradients of parts as they become free; the
    gradients are then added in the order of the parts, so the result does not depend on the number of threads.

    Attributes:
        optimiser: the state of Adam.

    Args:
        network: computes gradients.
        parameters: the parameters to train.
        storage: the rollout to read; its advantages and returns have been computed before an update.
        config: hyperparameters.
        workers: the threads.
        part_size: largest number of steps of a part.
    """

    def __init__(
        self,
        network: Network,
        parameters: FlatParameters,
        storage: RolloutStorage,
        config: TrainConfig,
        workers: Workers,
        part_size: int,
    ):
        self.optimiser = Adam(len(parameters.vector))
        self._network, self._parameters, self._config = network, parameters, config
        self._workers, self._job = workers, Job()
        self._advantages = storage.learning_fields.advantages
        self._order = np.zeros(config.batch_size, np.int64)
        self._part_count = count_parts(config, part_size)
        self._gradients = np.zeros((self._part_count, len(parameters.vector)), np.float32)
        self._sums = np.zeros((self._part_count, 6))
        self._totals = np.zeros(7)
        self._reference_coef = 0.0
        self._rows, self._scaling = self._order[:0], LossScaling(*np.zeros(7, np.float32))

    def update(self, number: int, learning_rate: float, reference_coef: float = 0.0) -> UpdateStatistics:
        """Update the parameters.

        Args:
            number: number of the update, which selects the order of the steps.
            learning_rate: step size of the optimiser.
            reference_coef: coefficient of the KL divergence from the reference probabilities in the storage.
        """
        self._reference_coef = reference_coef
        config, size = self._config, self._config.minibatch_size
        self._totals[:] = 0
        for epoch in range(config.update_epochs):
            shuffle(self._order, config.seed, number, epoch)
            for first in range(0, config.batch_size, size):
                self._descend(self._order[first : first + size], learning_rate)
        steps, minibatches = config.batch_size * config.update_epochs, config.num_minibatches * config.update_epochs
        return UpdateStatistics._make([*(self._totals[:6] / steps).tolist(), float(self._totals[6] / minibatches)])

    def warm_up(self) -> None:
        """Compute the gradients of a minibatch with every thread's scratch, and throw them away."""
        shuffle(self._order, self._config.seed, 0, 0)
        self._rows = self._order[: self._config.minibatch_size]
        moments(self._advantages, self._rows)
        for seat in range(self._workers.count):
            self._differentiate(seat, 0, self._part_count if seat == 0 else 1)
        sum_gradients(self._gradients)
        self.optimiser.warm_up()

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser, gradients and order."""
        arrays: dict[str, np.ndarray] = {"gradients": self._gradients, "order": self._order, "sums": self._sums}
        return MemoryNode("update", children=(self.optimiser.memory(), array_group("parts", arrays, shared=False)))

    def _descend(self, rows: np.ndarray, learning_rate: float) -> None:
        """Take one gradient step on the steps of a minibatch, (m,) int64."""
        config = self._config
        mean, deviation = moments(self._advantages, rows)
        coefficients = config.clip_coef, config.value_coef, config.entropy_coef, self._reference_coef
        numbers = mean, 1 / (deviation + 1e-8), 1 / len(rows), *coefficients
        self._rows, self._scaling = rows, LossScaling(*map(np.float32, numbers))
        self._workers.run(self._job, self._differentiate, 0, self._part_count)
        sum_gradients(self._gradients)
        norm = self.optimiser.step(self._parameters.vector, self._gradients[0], learning_rate, config.max_grad_norm)
        self._totals[:6] += self._sums.sum(axis=0)
        self._totals[6] += norm

    def _differentiate(self, seat: int, first: int, last: int) -> None:
        """Compute the gradients of the parts ``first`` to ``last - 1`` of the minibatch."""
        size, count = len(self._rows), self._part_count
        for part in range(first, last):
            rows = self._rows[size * part // count : size * (part + 1) // count]
            self._network.gradient(seat, rows, self._scaling, self._gradients[part], self._sums[part])


def count_parts(config: TrainConfig, part_size: int) -> int:
    """Return the number of parts of a minibatch."""
    return -(-config.minibatch_size // part_size)


@kernel
def shuffle(order, seed, update, epoch):
    """Fill ``order``, (b,) int64, with a random permutation of 0 to b - 1 that depends on the three numbers alone."""
    count = len(order)
    for i in range(count):
        order[i] = i
    state = mix(mix(mix(np.uint64(seed)) ^ np.uint64(update)) ^ np.uint64(epoch))
    for i in range(count - 1, 0, -1):
        state = mix(state)
        j = np.int64((state >> np.uint64(32)) * np.uint64(i + 1) >> np.uint64(32))  # bias below i / 2**32
        order[i], order[j] = order[j], order[i]


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
