"""The policy on a device: outputs for collection, with one transfer back for each call.

The parameters in host memory remain the state of the run between updates: checkpoints, cloning and resuming read and
write those, and know nothing of the device. The copy on the device is made by ``load`` and changed by
``train.learn.device_update``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from nclone_env.actions import NUM_ACTIONS
from nclone_env.memory_tree import MemoryNode
from nclone_env.train.network.device import Transfers, host_zeros, is_pinned
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.protocols import StoredSteps
from nclone_env.train.policy import ActorCritic


class DeviceNetwork:
    """A policy on a device, for use by several threads.

    Args:
        policy: the network; its parameters are those of ``parameters``.
        parameters: the vector of its parameters in host memory.
        storage: the stored steps, for the dtypes of the observations.
        seats: number of threads.
        most_rows: largest number of rows of a call.
        device: the device.
        amp: compute in bfloat16 where autocast does.

    Attributes:
        vector: (p,) float32 on the device, its parameters.
        transfers: all copies from and to the device.
        amp: as given.
    """

    def __init__(
        self,
        policy: ActorCritic,
        parameters: FlatParameters,
        storage: StoredSteps,
        seats: int,
        most_rows: int,
        device: torch.device,
        amp: bool = False,
    ):
        self.transfers, self.amp = Transfers(device), amp
        self.vector = torch.zeros(len(parameters.vector), device=device)
        self._parameters = parameters
        self._views = parameter_views(self.vector, parameters.shapes)
        # A call puts the tensors on the device in the place of the module's parameters, so each thread needs its own.
        self._modules = [without_parameters(policy) for _ in range(seats)]
        shapes = {name: shape for name, shape in policy.observation_shapes.items() if name != "action_mask"}
        dtypes = {name: torch.from_numpy(storage.flat_observations[name][:0]).dtype for name in shapes}
        self._inputs = [
            {name: torch.zeros(most_rows, *shapes[name], dtype=dtypes[name], device=device) for name in shapes}
            for _ in range(seats)
        ]
        size = most_rows * (NUM_ACTIONS + 1)
        self._results = [host_zeros((size,), np.float32, is_pinned(device)) for _ in range(seats)]
        self.load()

    def load(self) -> None:
        """Copy the parameters to the device."""
        self.transfers.send(self._parameters.vector, self.vector)

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call overwrites them."""
        seen = {name: rows[: len(observations[name])] for name, rows in self._inputs[seat].items()}
        for name, target in seen.items():
            self.transfers.send(observations[name], target)
        with torch.inference_mode(), autocast(self.vector.device, self.amp):
            logits, values = functional_call(self._modules[seat], self._views, (seen,))
            packed = torch.cat((logits.float().flatten(), values.float()))
        results = self._results[seat][: len(packed)]
        self.transfers.fetch(packed, results)
        logits_size = logits.numel()
        return results[:logits_size].reshape(-1, NUM_ACTIONS), results[logits_size:]

    def memory(self) -> MemoryNode:
        """Return the bytes of parameters and observations on the device, and of the results in host memory."""
        inputs = sum(rows.nbytes for seat in self._inputs for rows in seat.values())
        return MemoryNode(
            "network scratch",
            children=(
                MemoryNode("parameters on the device", self.vector.nbytes),
                MemoryNode("observations on the device", inputs),
                MemoryNode("results", sum(results.nbytes for results in self._results)),
            ),
        )


def without_parameters(policy: ActorCritic) -> ActorCritic:
    """Return a copy of a network for ``functional_call``: its parameters are placeholders without memory."""
    placeholders: dict[int, object] = {
        id(parameter): nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=False)
        for parameter in policy.parameters()
    }
    return copy.deepcopy(policy, placeholders)


def parameter_views(vector: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Return views of a vector (p,) of parameters by name; gradients pass through them to the vector."""
    parts = vector.split([math.prod(shape) for shape in shapes.values()])
    return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}


def autocast(device: torch.device, amp: bool) -> AbstractContextManager[object]:
    """Return the context in which layers compute in bfloat16, or as they are.

    bfloat16 has the exponents of float32, so small gradients do not vanish. float16 would need the loss to be scaled,
    with a scale that follows the gradients.
    """
    return torch.autocast(device.type, torch.bfloat16) if amp else nullcontext()
