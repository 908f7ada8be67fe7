"""Policies with memory: the recurrent layer over whole sequences by hand, the rest of the network through torch.

The layer is a gated recurrent unit (GRU; Cho et al., 2014). With x the features, h the state before and h' that after a
step, weights and biases as in ``torch.nn.GRUCell``, and * by elements:

    r = sigmoid(x_r + h_r),  z = sigmoid(x_z + h_z),  c = tanh(x_c + r * h_c),  h' = (1 - z) * c + z * h

where x_r, x_z and x_c are the parts of W x + a, computed for all steps at once, and h_r, h_z and h_c those of U h + b.
Torch would take a dozen calls for each step, and as many for its gradient: eight times as long.

T are the steps, n the environments, h the units. All arrays are float32 unless stated, and C-contiguous.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.jit import numeric_kernel, specialised_at_first
from nclone_env.jit.products import add_multiply, multiply_transposed
from nclone_env.memory import MemoryNode, arrays_node
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.network import NO_STATES, ActorCritic, FlatParameters, Observations
from nclone_env.train.policies.torch_network import StoredSequences, TorchNetwork, flat_gradient, module_loss

_ZERO, _ONE = np.float32(0), np.float32(1)


@numeric_kernel
def unroll(projected, starts, states, weight, bias, before, gates, after):
    """Compute the states after each of T steps of n environments.

    Args:
        projected: (T, n, 3 h): x_r, x_z and x_c.
        starts: (T, n) bool, whether a step is the first of its episode.
        states: (n, h), before step 0.
        weight: (3 h, h), U.
        bias: (3 h,), b.
        before: (T, n, h), written: the states before each step, 0 where an episode begins.
        gates: (T, n, 4 h), written: c, r, z and h_c.
        after: (T, n, h), written.
    """
    units = states.shape[1]
    for t in range(projected.shape[0]):
        for i in range(projected.shape[1]):
            for j in range(units):
                state = states[i, j] if t == 0 else after[t - 1, i, j]
                before[t, i, j] = _ZERO if starts[t, i] else state
        multiply_transposed(before[t], weight, gates[t][:, units:])
        for i in range(projected.shape[1]):
            seen, row = projected[t, i], gates[t, i]
            for j in range(units):
                reset, update, candidate = units + j, 2 * units + j, 3 * units + j
                row[reset] = _sigmoid(seen[j] + row[reset] + bias[j])
                row[update] = _sigmoid(seen[reset] + row[update] + bias[reset])
                row[candidate] += bias[update]
                row[j] = _tanh(seen[update] + row[reset] * row[candidate])
                after[t, i, j] = row[j] + row[update] * (before[t, i, j] - row[j])


@numeric_kernel
def unroll_gradient(delta_after, starts, weight, before, gates, delta, delta_projected, delta_recurrent):
    """Compute the gradients in ``projected`` and in U h + b of all steps, given those in the states after them.

    Args:
        delta_after: (T, n, h), gradients in the states as what the hidden layers see.
        starts: (T, n) bool; no gradient goes back beyond the first step of an episode, or of the sequence.
        weight: (3 h, h), U.
        before: (T, n, h), as :func:`unroll` wrote them.
        gates: (T, n, 4 h), likewise.
        delta: (n, h), overwritten.
        delta_projected: (T, n, 3 h), written.
        delta_recurrent: (T, n, 3 h), written.
    """
    units = delta.shape[1]
    delta[:] = _ZERO
    for t in range(delta_after.shape[0] - 1, -1, -1):
        for i in range(delta.shape[0]):
            row, seen, back = gates[t, i], delta_projected[t, i], delta_recurrent[t, i]
            for j in range(units):
                c, r, z = row[j], row[units + j], row[2 * units + j]
                whole = delta_after[t, i, j] + delta[i, j]
                of_c = whole * (_ONE - z) * (_ONE - c * c)
                of_r = of_c * row[3 * units + j] * r * (_ONE - r)
                of_z = whole * (before[t, i, j] - c) * z * (_ONE - z)
                seen[j], seen[units + j], seen[2 * units + j] = of_r, of_z, of_c
                back[j], back[units + j], back[2 * units + j] = of_r, of_z, of_c * r
                delta[i, j] = whole * z
        add_multiply(delta_recurrent[t], weight, delta)
        for i in range(delta.shape[0]):
            if starts[t, i]:
                delta[i] = _ZERO


_ODD = tuple(
    map(
        np.float32,
        (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08)
        + (1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    )
)
_EVEN = tuple(map(np.float32, (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)))
_LARGEST, _HALF = np.float32(7.9053), np.float32(0.5)


@numeric_kernel
def _tanh(x):
    """Return tanh(x) but for 3e-7: the rational function of Eigen, which the compiler computes for a vector at once."""
    x = min(max(x, -_LARGEST), _LARGEST)
    square = x * x
    odd, even = _ODD[0], _EVEN[0]
    for place in range(1, 7):
        odd = odd * square + _ODD[place]
    for place in range(1, 4):
        even = even * square + _EVEN[place]
    return x * odd / even


@numeric_kernel
def _sigmoid(x):
    return _HALF + _HALF * _tanh(_HALF * x)


class _Scratch:
    """What a seat writes for up to so many sequences of T steps, and the kernels."""

    def __init__(self, num_steps: int, most: int, units: int):
        self._steps = num_steps
        widths = {"before": 1, "gates": 4, "after": 1, "delta_projected": 3, "delta_recurrent": 3}
        self._flat = {name: np.zeros(num_steps * most * width * units, np.float32) for name, width in widths.items()}
        self._widths = {name: width * units for name, width in widths.items()}
        self._delta = np.zeros((most, units), np.float32)
        self.forward: Callable[..., Any] = specialised_at_first(unroll)
        self.backward: Callable[..., Any] = specialised_at_first(unroll_gradient)

    def of(self, count: int) -> "_Arrays":
        """Return the arrays of so many sequences."""
        sizes = {name: self._steps * count * width for name, width in self._widths.items()}
        return _Arrays(
            delta=self._delta[:count],
            **{name: self._flat[name][:size].reshape(self._steps, count, -1) for name, size in sizes.items()},
        )

    def arrays(self) -> list[np.ndarray]:
        """Return all arrays."""
        return [*self._flat.values(), self._delta]


class _Arrays(NamedTuple):
    """Arrays of the kernels."""

    before: np.ndarray
    gates: np.ndarray
    after: np.ndarray
    delta: np.ndarray
    delta_projected: np.ndarray
    delta_recurrent: np.ndarray


class _Unrolled(torch.autograd.Function):
    """The states (T, n, h) after all steps; differentiable in ``projected``, U and b."""

    @staticmethod
    def forward(ctx, projected, weight, bias, starts, states, scratch):
        arrays = scratch.of(len(states))
        given = (tensor.detach().numpy() for tensor in (projected, weight, bias))
        seen, *parameters = given
        scratch.forward(seen, starts, states, *parameters, arrays.before, arrays.gates, arrays.after)
        ctx.weight, ctx.starts, ctx.scratch, ctx.arrays = parameters[0], starts, scratch, arrays
        return torch.from_numpy(arrays.after)

    @staticmethod
    def backward(ctx, delta_after):
        arrays, (rows, units) = ctx.arrays, ctx.weight.shape
        given = delta_after.contiguous().numpy(), ctx.starts, ctx.weight
        ctx.scratch.backward(*given, *arrays[:2], *arrays[3:])
        back, before = (torch.from_numpy(array) for array in (arrays.delta_recurrent, arrays.before))
        of_weight = back.view(-1, rows).T @ before.view(-1, units)
        return torch.from_numpy(arrays.delta_projected), of_weight, back.sum((0, 1)), None, None, None


class RecurrentNetwork(TorchNetwork):
    """A policy with memory, in host memory. It learns from sequences: all steps of an environment in a rollout.

    Its minibatches and their parts are lists of environments.
    """

    def __init__(
        self, policy: ActorCritic, parameters: FlatParameters, storage: StoredSequences, seats: int, most_rows: int
    ):
        super().__init__(policy, parameters, storage, seats, most_rows)
        self._sequences, self._first_row = storage, storage.frame_stack - 1
        self._times = torch.arange(storage.num_steps)[:, None] * storage.num_envs
        most = most_rows // storage.num_steps
        self._scratch = [_Scratch(storage.num_steps, most, policy.recurrent_size) for _ in range(seats)]

    def outputs(
        self, seat: int, observations: Mapping[str, np.ndarray], states: np.ndarray = NO_STATES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logits and values, as :meth:`TorchNetwork.outputs` describes."""
        with torch.inference_mode():
            seen = {name: torch.from_numpy(observations[name]) for name in self._inputs}
            logits, values, after = self.module.step(seen, torch.from_numpy(states))
        states[:] = after.numpy()
        return logits.numpy(), values.numpy()

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Write the gradient over the sequences of environments ``rows``, (n,) int64; else as of ``TorchNetwork``.

        It goes back to the first step of the rollout or of the episode; the states before that are constants.
        """
        storage, chosen = self._sequences, torch.from_numpy(rows)
        steps = (self._times + chosen).flatten()
        observations = {name: buffer[: len(steps)] for name, buffer in self._buffers[seat].items()}
        storage.gather(steps, observations)
        fields = LearningFields(*(field[steps] for field in self._fields))
        starts = storage.episode_starts[self._first_row :][: storage.num_steps, rows]
        outputs = self._unroll(observations, np.ascontiguousarray(starts), storage.states[0, rows], self._scratch[seat])
        loss, terms = module_loss(outputs, observations, fields, scaling, None)
        torch.from_numpy(out)[:] = flat_gradient(loss, self.module)
        sums[:] = terms.numpy()

    def memory(self) -> MemoryNode:
        """Return the bytes of observations and of the kernels' arrays; activations come on top during an update."""
        node = super().memory()
        own = (
            arrays_node(f"states of seat {seat}", each.arrays(), shared=True) for seat, each in enumerate(self._scratch)
        )
        return replace(node, children=(*node.children, *own))

    def _unroll(
        self, observations: Observations, starts: np.ndarray, states: np.ndarray, scratch: _Scratch
    ) -> tuple[Tensor, Tensor]:
        """Return the logits (T * n, 6) and the values (T * n,) of sequences, all of step 0 first."""
        layer, features = self.module.recurrence, self.module.features(observations)
        assert layer is not None
        projected = torch.nn.functional.linear(features, layer.weight_ih, layer.bias_ih)
        after = _Unrolled.apply(
            projected.view(*starts.shape, -1), layer.weight_hh, layer.bias_hh, starts, states, scratch
        )
        return self.module.outputs(torch.cat((features, after.view(len(features), -1)), dim=1))
