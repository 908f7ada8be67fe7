"""The learners by name, and PPO on a device.

To add a learner, put a function that makes it into ``LEARNERS`` and name it by ``learner``. A package that is installed
may bring others, as entry points of the group ``nclone_env.learners``; no checkpoint can name code of any other place.

An update on a device does not wait for it from the first minibatch to the last. Observations, actions and log
probabilities of the rollout are copied to the device once per update. Advantages and returns are computed in host
memory before: rewards and values are there anyway, because the environments wrote the former and each step of the
collection fetched the latter for the bootstrap, and the whole recursion takes a compiled loop less time than the
launches of a kernel for each of its T steps. An update begins from parameters and moments in host memory, and ends by
copying them back together with its statistics: that is its only synchronisation. Minibatches are those of
``train.learn.ppo``.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import ConfigError, NcloneError, shortened
from nclone_env.memory import MemoryNode, array_group, array_node
from nclone_env.train.collect.rollout import NOT_STACKED, RolloutStorage, stacked_rows
from nclone_env.train.learn.adam import Adam, descend
from nclone_env.train.learn.learner import Learner, LearnerParts, UpdateStatistics
from nclone_env.train.learn.ppo import PPO, shuffle
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.device import fetch, host_zeros, is_pinned, send
from nclone_env.train.policies.torch_network import TorchNetwork, flat_gradient, module_loss


def make_learner(parts: LearnerParts) -> Learner:
    """Return the learner that the configuration names."""
    name = parts.config.learner
    if parts.config.recurrent_size and name != "ppo":
        raise ConfigError(
            f"learner: expected ppo with recurrent_size, as others learn from single steps, got {shortened(name)}"
        )
    if name in LEARNERS:
        return LEARNERS[name](parts) if name == OWN else OtherLearner(name, LEARNERS[name], parts)
    (found, *_) = entry_points(group=GROUP, name=name) or (None,)
    if found is None:
        raise ConfigError(
            f"learner: expected one of {', '.join(learner_names())}, got {shortened(name)}; add a function that makes "
            f"it to nclone_env.train.learn.learners.LEARNERS, or to the entry points {GROUP} of your package"
        )
    with _naming(name, f"loading {found.value}"):
        make = found.load()
    return OtherLearner(name, make, parts)


def learner_names() -> list[str]:
    """Return the names of the learners here and in other packages."""
    return [*LEARNERS, *sorted(entry_points(group=GROUP).names)]


GROUP = "nclone_env.learners"
OWN = "ppo"
LEARNERS: dict[str, Callable[[LearnerParts], Learner]] = {
    OWN: lambda parts: PPO(parts) if parts.device is None else DevicePPO(parts)
}
"""Name to what makes the learner."""


class OtherLearner:
    """A learner of another place: one line names it where it fails, or returns what a run cannot use.

    Args:
        name: its name.
        make: makes it.
    """

    def __init__(self, name: str, make: Callable[[LearnerParts], Learner], parts: LearnerParts):
        self._name = name
        with _naming(name, "making it"):
            self._learner = make(parts)

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters; return statistics that are numbers of Python."""
        with _naming(self._name, "update"):
            found = self._learner.update(number, learning_rate, entropy_coef, reference_coef)
            values = found if isinstance(found, tuple) else ()
            if len(values) != len(UpdateStatistics._fields) or not all(isinstance(value, Real) for value in values):
                raise TypeError(f"expected numbers for {', '.join(UpdateStatistics._fields)}, got {shortened(found)}")
            return UpdateStatistics(*map(float, values))

    def warm_up(self) -> None:
        """Prepare for updates."""
        with _naming(self._name, "warm_up"):
            self._learner.warm_up()

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser and scratch."""
        with _naming(self._name, "memory"):
            found = self._learner.memory()
            if not isinstance(found, MemoryNode):
                raise TypeError(f"expected a MemoryNode, got {shortened(found)}")
            return found

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps, as one that can be read again holds it."""
        with _naming(self._name, "state"):
            found = self._learner.state()
            if not isinstance(found, Mapping):
                raise TypeError(f"expected values by name, got {shortened(found)}")
            return {str(name): _kept(value) for name, value in found.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from such a state."""
        with _naming(self._name, "restore"):
            self._learner.restore(state)


@contextmanager
def _naming(name: str, where: str) -> Iterator[None]:
    """Name a learner in its errors, and the line of its code that raised them."""
    try:
        yield
    except NcloneError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        at = f"{Path(frame.filename).name}, line {frame.lineno}"
        said = shortened(str(error), 200)[1:-1]
        raise ConfigError(
            f"learner: expected one that works, got {shortened(name)}: {where}: {type(error).__name__}: {said} ({at})"
        ) from error


def _kept(value: Any) -> Any:
    """Return a value of a state as checkpoints hold it: tensors for arrays, values of Python for scalars of NumPy."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, Mapping):
        return {key: _kept(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_kept, value)]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or type(value) in (bool, int, float, str, bytes, Tensor):
        return value
    raise TypeError(f"expected arrays, numbers and texts, got {shortened(value)}")


class DevicePPO:
    """The algorithm of ``train.learn.ppo.PPO`` on a device, for a single process."""

    def __init__(self, parts: LearnerParts):
        config, _, parameters, storage, network, *_ = parts
        assert isinstance(network, TorchNetwork)
        device, size = network.vector.device, len(parameters.vector)
        self.optimiser = Adam(size)
        self.state, self.restore = self.optimiser.state, self.optimiser.restore
        self._network, self._parameters, self._config = network, parameters, config
        self._rollout = DeviceRollout(storage, device)
        self._mean, self._square = (torch.zeros(size, dtype=torch.float32, device=device) for _ in range(2))
        self._totals = torch.zeros(7, dtype=torch.float64, device=device)
        descents = config.ppo.update_epochs * config.ppo.num_minibatches
        pinned = is_pinned(device)
        self._order = host_zeros((config.ppo.update_epochs, config.batch_size), np.int64, pinned)
        self._numbers = host_zeros((descents, 4), np.float32, pinned)
        self._results = host_zeros((3 * size + 7,), np.float32, pinned)
        self._device_order = torch.zeros(descents, config.minibatch_size, dtype=torch.int64, device=device)
        self._device_numbers = torch.zeros(descents, 4, dtype=torch.float32, device=device)

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters, as ``train.learn.learner.Learner`` describes."""
        config = self._config
        self._send(number, learning_rate, entropy_coef, reference_coef)
        self._totals.zero_()
        descents = len(self._numbers)
        for index in range(descents):
            self._descend(index, reference_coef > 0)
        self._fetch()
        self.optimiser.count += descents
        totals = self._results[-7:].astype(np.float64)
        steps = config.batch_size * config.ppo.update_epochs
        return UpdateStatistics._make([*(totals[:6] / steps).tolist(), float(totals[6] / descents)])

    def warm_up(self) -> None:
        """Take a step of size 0 with and without a reference, and forget it."""
        for has_reference in (False, True) if self._config.keeps_clone else (False,):
            self._send(0, 0.0, 0.0, float(has_reference))
            self._descend(0, has_reference)
            fetch(self._totals.float(), self._results[-7:])

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser, order and results, and of everything on the device."""
        tensors = self._mean, self._square, self._totals, self._device_numbers
        return MemoryNode(
            "update",
            children=(
                self.optimiser.memory(),
                array_group("host", {"numbers": self._numbers, "results": self._results}, shared=True),
                MemoryNode("optimiser on the device", sum(tensor.nbytes for tensor in tensors), shared=True),
                array_node("order", self._order, shared=False),
                MemoryNode("rollout and order on the device", self._rollout.nbytes + self._device_order.nbytes),
            ),
        )

    def _send(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> None:
        """Begin to copy everything that an update reads to the device."""
        config, optimiser = self._config, self.optimiser
        for epoch, order in enumerate(self._order):
            shuffle(order, config.seed, number, epoch)
        for index, row in enumerate(self._numbers):
            row[:] = *optimiser.rates(learning_rate, optimiser.count + index + 1), entropy_coef, reference_coef
        self._network.load()
        send(optimiser.mean, self._mean)
        send(optimiser.square, self._square)
        send(self._order.reshape(len(self._numbers), -1), self._device_order)
        send(self._numbers, self._device_numbers)
        self._rollout.load(reference_coef > 0)

    def _descend(self, index: int, has_reference: bool) -> None:
        """Take one gradient step on a minibatch."""
        config, steps = self._config, self._device_order[index]
        rate, correction, entropy_coef, reference_coef = self._device_numbers[index].unbind()
        fields = LearningFields(*(field.index_select(0, steps) for field in self._rollout.fields))
        advantages = fields.advantages.double()
        mean, scale = advantages.mean(), 1 / (advantages.std(correction=0) + 1e-8)
        share = 1 / config.minibatch_size
        coefficients = config.ppo.clip_coef, config.ppo.value_coef, entropy_coef, reference_coef
        observations = self._rollout.gather(steps)
        loss, terms = module_loss(
            self._network.module(observations),
            observations,
            fields,
            LossScaling(mean.float(), scale.float(), share, *coefficients),
            self._rollout.reference.index_select(0, steps) if has_reference else None,
        )
        gradient = flat_gradient(loss, self._network.module)
        moments = self._mean, self._square
        norm = descend(self._network.vector, gradient, *moments, rate, correction, config.ppo.max_grad_norm)
        self._totals[:6] += terms
        self._totals[6] += norm

    def _fetch(self) -> None:
        """Copy the new state and the statistics to host memory: the only wait of an update."""
        state = torch.cat((self._network.vector, self._mean, self._square, self._totals.float()))
        fetch(state, self._results)
        size = len(self._mean)
        self._parameters.vector[:] = self._results[:size]
        self.optimiser.mean[:] = self._results[size : 2 * size]
        self.optimiser.square[:] = self._results[2 * size : 3 * size]


class DeviceRollout:
    """A copy of a rollout on a device.

    Attributes:
        fields: what the loss reads besides observations, (T * N,) each.
        reference: (T * N, a) float32, probabilities of a reference policy, or (0, a).
    """

    def __init__(self, storage: RolloutStorage, device: torch.device):
        self._storage = storage

        def like(array: np.ndarray) -> Tensor:
            return torch.zeros(array.shape, dtype=torch.from_numpy(array).dtype, device=device)

        self._observations = {name: like(array) for name, array in storage.flat_observations.items()}
        self._episode_starts = like(storage.episode_starts)
        self.fields: LearningFields[Tensor] = LearningFields(*map(like, storage.learning_fields))
        self.reference = like(storage.reference)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        tensors = (*self._observations.values(), self._episode_starts, *self.fields, self.reference)
        return sum(tensor.nbytes for tensor in tensors)

    def load(self, has_reference: bool) -> None:
        """Begin to copy the rollout: one transfer for each array."""
        storage = self._storage
        for name, target in self._observations.items():
            send(storage.flat_observations[name], target)
        for source, target in zip(storage.learning_fields, self.fields, strict=True):
            send(source, target)
        if storage.frame_stack > 1:
            send(storage.episode_starts, self._episode_starts)
        if has_reference:
            send(storage.reference, self.reference)

    def gather(self, steps: Tensor) -> dict[str, Tensor]:
        """Return the observations of b steps, (b,) int64, or stacks of them, by name."""
        depth = self._storage.frame_stack
        newest = steps + (depth - 1) * self._storage.num_envs
        if depth == 1:
            return {name: rows.index_select(0, newest) for name, rows in self._observations.items()}
        stacks = stacked_rows(self._episode_starts, steps, depth)
        return {
            name: rows.index_select(0, newest)
            if name in NOT_STACKED
            else rows.index_select(0, stacks.flatten()).view(*stacks.shape, *rows.shape[1:])
            for name, rows in self._observations.items()
        }
