"""The usual encoder of pictures, convolutions (Mnih et al., 2015, with fewer units), to compare the package's with."""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nclone_env.train.policies.network import Encoder

LAYERS = ((16, 8, 4), (32, 4, 2), (32, 3, 2))
"""Units, kernel and stride of each convolution."""


class ConvolutionEncoder(Encoder):
    """Three convolutions, then a layer of 128.

    Args:
        name: observation.
        shape: (k, height, width, 1), uint8.
        dtype: in which layers are computed.
        channels_last: order of the memory.
    """

    width = 128

    def __init__(
        self, name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, channels_last: bool = True
    ):
        super().__init__()
        self.inputs, self.dtype = (name,), dtype
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        channels, places = (shape[0], *(units for units, _, _ in LAYERS)), 1
        for side in shape[1:3]:
            for _, kernel, stride in LAYERS:
                side = (side - kernel) // stride + 1
            places *= side
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, kernel, stride)
            for (before, after), (_, kernel, stride) in zip(itertools.pairwise(channels), LAYERS)
        )
        self.last = nn.Linear(channels[-1] * places, self.width)
        for layer in (*self.convolutions, self.last):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            nn.init.zeros_(layer.bias)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (n, 128) float32 of stacks (n, k, height, width, 1) uint8."""
        hidden = inputs[0].squeeze(-1).to(self.dtype, memory_format=self.layout).mul_(1 / 255)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            for layer in self.convolutions:
                hidden = F.relu(layer(hidden))
            return F.relu(self.last(hidden.permute(0, 2, 3, 1).flatten(1))).float()
