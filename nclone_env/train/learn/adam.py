"""The Adam optimiser (Kingma and Ba, 2015) over one vector of parameters, with clipping of the gradient's norm."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.jit import numeric_kernel
from nclone_env.memory import MemoryNode, array_group

_BETA_1, _BETA_2, _EPSILON = 0.9, 0.999, 1e-5


class Adam:
    """Moments of the gradient of p parameters, and the step.

    Attributes:
        mean: (p,) float32, exponential mean of the gradient.
        square: (p,) float32, exponential mean of its square.
        count: number of steps taken.
    """

    def __init__(self, size: int):
        self.mean, self.square = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.count = 0

    def step(self, parameters: np.ndarray, gradient: np.ndarray, learning_rate: float, max_norm: float) -> float:
        """Update ``parameters``, (p,), in place; return the norm of the gradient before scaling to ``max_norm``."""
        self.count += 1
        rate, correction = map(np.float32, self.rates(learning_rate, self.count))
        norm: float = clipped_step(parameters, gradient, self.mean, self.square, max_norm, rate, correction)
        return norm

    def rates(self, learning_rate: float, count: int) -> tuple[float, float]:
        """Return the step size of step ``count``, and the factor of the root of ``square`` in it."""
        return learning_rate / (1 - _BETA_1**count), (1 - _BETA_2**count) ** -0.5

    def state(self) -> dict[str, Any]:
        """Return moments and number of steps, for a checkpoint."""
        return {"mean": self.mean, "square": self.square, "count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; moments may be tensors."""
        for name in ("mean", "square"):
            target, source = getattr(self, name), np.asarray(state[name])
            if target.shape != source.shape:
                raise ValueError(f"{name}: expected shape {target.shape}, got {source.shape}")
            target[...] = source
        self.count = state["count"]

    def warm_up(self) -> None:
        """Compile the kernels and commit the memory."""
        self.mean.fill(0)
        self.square.fill(0)
        Adam(1).step(np.zeros(1, np.float32), np.zeros(1, np.float32), 0.0, 1.0)

    def memory(self) -> MemoryNode:
        """Return the bytes of the moments."""
        return array_group("optimiser", {"mean": self.mean, "square": self.square}, shared=True)


def descend(
    parameters: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Tensor,
    correction: Tensor,
    max_norm: float,
) -> Tensor:
    """Take a step of :class:`Adam` on a device, without waiting for it; return the norm before scaling, () float64.

    Parameters and moments, (p,) float32, are updated in place; ``rate`` and ``correction`` are its ``rates``.
    """
    norm = torch.linalg.vector_norm(gradient, dtype=torch.float64)
    clipped = gradient * (max_norm / (norm + 1e-6)).clamp(max=1).float()
    mean.mul_(_BETA_1).add_(clipped, alpha=1 - _BETA_1)
    square.mul_(_BETA_2).addcmul_(clipped, clipped, value=1 - _BETA_2)
    parameters.sub_(rate * mean / (square.sqrt() * correction + _EPSILON))
    return norm


@numeric_kernel
def sum_gradients(parts):
    """Add the rows of ``parts``, (k, p) float32, to the first, in order."""
    for k in range(1, parts.shape[0]):
        for j in range(parts.shape[1]):
            parts[0, j] += parts[k, j]


@numeric_kernel
def clipped_step(parameters, gradient, mean, square, max_norm, rate, correction):
    """Take a step of :class:`Adam`, given its ``rates`` as float32; return the norm of the gradient before scaling."""
    total = 0.0
    for j in range(len(gradient)):
        total += np.float64(gradient[j]) * np.float64(gradient[j])
    norm = np.sqrt(total)
    scale = np.float32(min(1.0, max_norm / (norm + 1e-6)))
    beta_1, beta_2, epsilon = np.float32(_BETA_1), np.float32(_BETA_2), np.float32(_EPSILON)
    rest_1, rest_2 = np.float32(1 - _BETA_1), np.float32(1 - _BETA_2)
    for j in range(len(parameters)):
        g = gradient[j] * scale
        mean[j] = beta_1 * mean[j] + rest_1 * g
        square[j] = beta_2 * square[j] + rest_2 * g * g
        parameters[j] -= rate * mean[j] / (np.sqrt(square[j]) * correction + epsilon)
    return norm
