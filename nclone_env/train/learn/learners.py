"""The learners by name, and PPO on a device.

To add a learner, put a function that makes it into ``LEARNERS`` and name it by ``learner``. A package that is installed
may bring others, as entry points of the group ``nclone_env.learners``; no checkpoint can name code of any other place.

On a device, rollout, order of the steps, parameters and moments are there. An update ends by copying parameters and
moments to the host, together with its statistics: the only wait since the update before.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import entry_points
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import ConfigError, NcloneError, did_you_mean, shortened
from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.collect.device import DeviceRollout
from nclone_env.train.learn.adam import Adam, descend
from nclone_env.train.learn.learner import Learner, LearnerParts, UpdateStatistics
from nclone_env.train.learn.ppo import PPO
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.device import DeviceNetwork, Repeated, fetch, hashed, host_zeros, send
from nclone_env.train.policies.torch_network import flat_gradient, module_loss


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
        names = [*LEARNERS, *sorted(entry_points(group=GROUP).names)]
        fix = did_you_mean(name, names) or (
            f"; add a function that makes it to {__name__}.LEARNERS, or to the entry points {GROUP} of your package"
        )
        raise ConfigError(f"learner: expected one of {', '.join(names)}, got {shortened(name)}{fix}")
    with _naming(name, f"loading {found.value}"):
        make = found.load()
    return OtherLearner(name, make, parts)


GROUP = "nclone_env.learners"
OWN = "ppo"
LEARNERS: dict[str, Callable[[LearnerParts], Learner]] = {
    OWN: lambda parts: PPO(parts) if parts.device is None else DevicePPO(parts)
}
"""Name to what makes the learner."""


class OtherLearner:
    """A learner of another place: one line names it where it fails, or returns what a run cannot use."""

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
    """The algorithm of ``train.learn.ppo.PPO`` on a device.

    Every rank has a device, and takes an equal share of each minibatch from the steps of its own environments; the
    gradients are added up there. Alone, all of an update is one CUDA graph, with others what lies between those sums.
    """

    def __init__(self, parts: LearnerParts):
        config, _, parameters, storage, network, _, _, self._ranks, _ = parts
        assert isinstance(storage, DeviceRollout)
        assert isinstance(network, DeviceNetwork)
        place, size = storage.place, len(parameters.vector)
        self.optimiser = Adam(size)
        self._network, self._parameters, self._rollout, self._config = network, parameters, storage, config
        descents, rows = config.ppo.update_epochs * config.ppo.num_minibatches, self._own_rows()
        self._host_number = host_zeros((1,), np.int64, place)
        self._host_rates = host_zeros((descents, 4), np.float32, place)
        self._results = host_zeros((3 * size + 7,), np.float32, place)

        def zeros(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=place)

        self._mean, self._square, self._gradient = (zeros(torch.float32, size) for _ in range(3))
        self._totals, self._number = zeros(torch.float64, 7), zeros(torch.int64, 1)
        self._rates, self._order = zeros(torch.float32, descents, 4), zeros(torch.int64, descents, rows)
        self._moments = zeros(torch.float64, self._ranks.count, descents, 2)
        # Those of the step in work.
        self._own_steps, self._own_rates = zeros(torch.int64, rows), zeros(torch.float32, 4)
        self._own_moments = zeros(torch.float64, self._ranks.count, 2)
        self._learn = {kind: self._repeated(kind) for kind in (False, True)}

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters, as ``train.learn.learner.Learner`` describes."""
        config, descents = self._config, len(self._rates)
        self._begin(number, learning_rate, entropy_coef, reference_coef)
        self._fetch()
        self.optimiser.count += descents
        totals = self._results[-7:].astype(np.float64)
        steps = config.batch_size * config.ppo.update_epochs
        return UpdateStatistics._make([*(totals[:6] / steps).tolist(), float(totals[6] / descents)])

    def warm_up(self) -> None:
        """Make an update of size 0 with and without a reference, and forget it."""
        for reference_coef in (0.0, 1.0) if self._config.keeps_clone else (0.0,):
            self._begin(0, 0.0, 0.0, reference_coef)
            fetch(self._totals.float(), self._results[-7:])
        self._network.load()
        self._load()

    def state(self) -> dict[str, Any]:
        """Return moments and number of steps, for a checkpoint."""
        return self.optimiser.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from such a state."""
        self.optimiser.restore(state)
        self._load()

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser and results, and of everything on the device but what an update frees."""
        state = self._mean, self._square, self._gradient, self._totals, self._number
        numbers = self._rates, self._moments, self._own_rates, self._own_moments
        host = {"rates": self._host_rates, "results": self._results, "number": self._host_number}
        return MemoryNode(
            "update",
            children=(
                self.optimiser.memory(),
                array_group("host", host, shared=True),
                MemoryNode("optimiser on the device", sum(tensor.nbytes for tensor in state + numbers), shared=True),
                MemoryNode("order on the device", self._order.nbytes + self._own_steps.nbytes),
            ),
        )

    def _own_rows(self) -> int:
        """Return the steps of this rank in a minibatch."""
        config, count = self._config, self._ranks.count
        if config.minibatch_size % count:
            fitting = count * config.ppo.num_minibatches
            raise ConfigError(
                f"num_envs: expected a multiple of {fitting}, as each of the {count} ranks takes an equal share of the "
                f"{config.ppo.num_minibatches} minibatches, got {config.num_envs}; "
                f"pass --num-envs {-(-config.num_envs // fitting) * fitting}"
            )
        return config.minibatch_size // count

    def _repeated(self, has_reference: bool) -> Callable[[], None]:
        """Return what takes the gradient steps of an update: as one graph, or between the sums over the ranks."""
        parts = self._look, partial(self._differentiate, has_reference), self._step
        if self._ranks.count == 1:
            return Repeated(partial(self._descend_all, *parts), self._rollout.place)
        return partial(self._descend_all, *(Repeated(part, self._rollout.place) for part in parts))

    def _load(self) -> None:
        """Take over the moments in host memory."""
        send(self.optimiser.mean, self._mean)
        send(self.optimiser.square, self._square)

    def _begin(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> None:
        """Hand an update to the device."""
        config, optimiser = self._config, self.optimiser
        self._host_number[:] = number
        for index, row in enumerate(self._host_rates):
            row[:] = *optimiser.rates(learning_rate, optimiser.count + index + 1), entropy_coef, reference_coef
        send(self._host_number, self._number)
        send(self._host_rates, self._rates)
        shape = config.ppo.update_epochs, self._order.numel() // config.ppo.update_epochs
        # A graph of everything else: sorting may not be recordable.
        self._order.view(shape).copy_(minibatch_orders(config.seed, self._number, *shape))
        self._learn[reference_coef > 0]()

    def _descend_all(
        self, look: Callable[[], None], differentiate: Callable[[], None], step: Callable[[], None]
    ) -> None:
        """Take the gradient steps of an update, by its parts."""
        look()
        self._ranks.add_up(self._moments)
        for steps, rates, moments in zip(self._order, self._rates, self._moments.unbind(1), strict=True):
            self._own_steps.copy_(steps)
            self._own_rates.copy_(rates)
            self._own_moments.copy_(moments)
            differentiate()
            self._ranks.add_up(self._gradient)
            step()
        self._ranks.add_up(self._totals[:6])

    def _look(self) -> None:
        """Measure mean and standard deviation of the advantages of this rank in each minibatch."""
        self._totals.zero_()
        self._moments.zero_()
        for steps, moments in zip(self._order, self._moments[self._ranks.number], strict=True):
            advantages = self._rollout.learning_fields.advantages.index_select(0, steps).double()
            moments[0], moments[1] = advantages.mean(), advantages.std(correction=0)

    def _differentiate(self, has_reference: bool) -> None:
        """Compute the gradient of the steps of this rank in the minibatch."""
        config, rollout, steps = self._config, self._rollout, self._own_steps
        _, _, entropy_coef, reference_coef = self._own_rates.unbind()
        fields = LearningFields(*(field.index_select(0, steps) for field in rollout.learning_fields))
        means, deviations = self._own_moments.unbind(1)
        mean = means.mean()
        scale = 1 / ((deviations.square() + (means - mean).square()).mean().sqrt() + 1e-8)
        coefficients = config.ppo.clip_coef, config.ppo.value_coef, entropy_coef, reference_coef
        observations = rollout.gather(steps)
        loss, terms = module_loss(
            self._network.module(observations),
            observations,
            fields,
            LossScaling(mean.float(), scale.float(), 1 / config.minibatch_size, *coefficients),
            rollout.reference.index_select(0, steps) if has_reference else None,
        )
        self._gradient.copy_(flat_gradient(loss, self._network.module))
        self._totals[:6] += terms

    def _step(self) -> None:
        """Take the gradient step of the minibatch."""
        rate, correction, _, _ = self._own_rates.unbind()
        state = self._network.vector, self._gradient, self._mean, self._square
        self._totals[6] += descend(*state, rate, correction, self._config.ppo.max_grad_norm)

    def _fetch(self) -> None:
        """Copy the new state and the statistics to host memory: the only wait of an update."""
        fetch(torch.cat((self._network.vector, self._mean, self._square, self._totals.float())), self._results)
        size = len(self._mean)
        self._parameters.vector[:] = self._results[:size]
        self.optimiser.mean[:] = self._results[size : 2 * size]
        self.optimiser.square[:] = self._results[2 * size : 3 * size]


def minibatch_orders(seed: int, number: Tensor, epochs: int, count: int) -> Tensor:
    """Return a random permutation of ``count`` steps for each epoch, (e, c) int64, in the order of random numbers.

    They depend on the seed and the ``number`` of the update, (1,) int64, alone, and are others than those of
    ``train.learn.ppo.shuffle``, which needs one step after another.
    """
    of_update = hashed(hashed(torch.full_like(number, seed ^ _ORDER_STREAM)) ^ number)
    of_epochs = hashed(of_update ^ torch.arange(epochs, device=number.device))
    return hashed(of_epochs[:, None] ^ torch.arange(count, device=number.device)).argsort(dim=1, stable=True)


_ORDER_STREAM = 0x6F72646572
"""Keeps these numbers apart from those of the sampled actions, which have the same seed."""
