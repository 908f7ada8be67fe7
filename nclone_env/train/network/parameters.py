"""All parameters of a network in one vector, which the module and NumPy share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn


class FlatParameters:
    """The parameters of a module, moved into one float32 vector; the module keeps using them there.

    Attributes:
        vector: (p,) float32, all parameters in the order of ``module.named_parameters()``.
        shapes: shape of each parameter by name.
        offsets: index of the first entry of each parameter in the vector by name.
    """

    def __init__(self, module: nn.Module):
        parameters = dict(module.named_parameters())
        self.shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        self.offsets = dict(zip(self.shapes, itertools.accumulate(sizes, initial=0)))
        self.vector = np.zeros(sum(sizes), np.float32)
        for view, parameter in zip(self.views(self.vector).values(), parameters.values(), strict=True):
            view[...] = parameter.detach().numpy()
            parameter.data = torch.from_numpy(view)

    def views(self, vector: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return views of a vector (p,) of parameters or gradients by name, each in the shape of its parameter."""
        return {
            name: vector[self.offsets[name] : self.offsets[name] + math.prod(shape)].reshape(shape)
            for name, shape in self.shapes.items()
        }
