"""Encoders: what turns each observation that is no vector into features of the actor-critic.

| observation | encoder | features |
|---|---|---|
| ``game_state``, ``reachability``, other vectors | none: used as they are, stacks flattened | their elements |
| ``player_frame``, ``global_view`` | :class:`PictureEncoder`: three convolutions, a linear layer | 128 |
| ``locals`` | :class:`GridEncoder`: a linear layer over all squares | 64 |
| ``entity_states``, ``entity_kinds``, ``entity_count`` | :class:`EntityEncoder`: maximum and mean over a set | 129 |
| ``action_mask`` | none: it masks logits and is no input | |
| ``graph`` | refused | |
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nclone_env.errors import ConfigError
from nclone_env.kinds import KINDS
from nclone_env.train.encoder_kernels import ENTITY_UNITS, GRID_FEATURES

Shapes = Mapping[str, tuple[int, ...]]

PICTURES = ("player_frame", "global_view")
Layers = Sequence[tuple[int, int, int]]
LAYERS: Layers = ((16, 8, 4), (32, 4, 2), (32, 3, 2))
"""Units, kernel and stride of a picture's convolutions."""
_SOLID = 255.0


class Encoder(nn.Module):
    """Base class: ``forward`` takes the observations named in ``inputs`` and returns (n, ``width``) float32."""

    inputs: tuple[str, ...]
    width: int

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the features (n, width) float32 of n observations."""
        raise NotImplementedError


def make_encoders(shapes: Shapes) -> dict[str, Encoder | None]:
    """Return the encoder of each input of the network by the name of its observation, None for vectors.

    Args:
        shapes: name to the shape of one observation without its batch axis; stacks have a first axis k.

    Raises:
        ConfigError: if there is nothing to see, or an observation cannot be encoded.
    """
    encoders: dict[str, Encoder | None] = {}
    for name, shape in shapes.items():
        if name.startswith("graph"):
            raise ConfigError(
                f"observations: the network has no encoder for 'graph' (got {name!r}): an observation has only the "
                f"changing part of a graph, its nodes and edges differ between levels and lie in env.graphs, outside "
                f"of what a rollout stores; use 'reachability', 'locals' and 'entity_states', which carry paths, walls "
                f"and doors"
            )
        if name in PICTURES:
            encoders[name] = PictureEncoder(name, shape)
        elif name == "locals":
            encoders[name] = GridEncoder(name, shape)
        elif name == "entity_states":
            encoders[name] = EntityEncoder(shapes)
        elif name in ("entity_kinds", "entity_count"):
            if "entity_states" not in shapes:
                raise ConfigError(f"observations: expected entity_states beside {name}, got {', '.join(shapes)}")
        elif name != "action_mask":
            if len(shape) not in (1, 2):
                raise ConfigError(
                    f"observations: expected a vector (d,) or a stack of vectors (k, d) for {name}, got shape {shape}; "
                    f"other shapes are encoded for {', '.join(PICTURES)}, locals and entity_states"
                )
            encoders[name] = None
    if not encoders:
        raise ConfigError(f"observations: expected at least one that the network can see, got {tuple(shapes)}")
    return encoders


def convolution_dtype(device: torch.device) -> torch.dtype:
    """Return the dtype in which pictures are convolved; parameters and features are float32 everywhere.

    bfloat16 on CPUs that multiply it, where it is about twice as fast (``python -m profiling.picture_network``);
    emulated it would be slower than float32. On other devices float32, so that autocast decides there. Runs with
    pictures are therefore only repeatable on machines that agree in this.
    """
    return torch.bfloat16 if device.type == "cpu" and _cpu_multiplies_bfloat16() else torch.float32


@functools.cache
def _cpu_multiplies_bfloat16() -> bool:
    """Return whether this CPU has products of bfloat16 (AVX-512 or AMX) with which oneDNN can also go backward."""
    if hasattr(torch.cpu, "get_capabilities"):
        found = torch.cpu.get_capabilities()
        return bool(found.get("avx512_bf16") or found.get("amx_bf16"))
    return torch.cpu._is_avx512_bf16_supported()  # older versions of PyTorch have no public name for it


class PictureEncoder(Encoder):
    """Convolutions and a linear layer over a picture or a stack of pictures, whose frames become channels.

    Args:
        name: observation.
        shape: (height, width, 1), or (k, height, width, 1) for a stack; uint8.
        layers: units, kernel and stride of each convolution. The kernel of the first is a multiple of its stride, and
            that a multiple of 4.

    Raises:
        ConfigError: if the shape is another, or a side is shorter than the convolutions need.
    """

    width = 128

    def __init__(self, name: str, shape: tuple[int, ...], layers: Layers = LAYERS):
        super().__init__()
        self.inputs = (name,)
        sides = [sides_after(side, layers) for side in shape[-3:-1]]
        if len(shape) not in (3, 4) or shape[-1] != 1 or min(sides) < 1:
            fewest = next(side for side in itertools.count(1) if sides_after(side, layers) > 0)
            raise ConfigError(
                f"observations: expected {name} of shape (height, width, 1), or (k, height, width, 1) for a stack, "
                f"with sides of at least {fewest} pixels for the network's convolutions, got {shape}"
            )
        channels = [shape[0] if len(shape) == 4 else 1, *(units for units, _, _ in layers)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, units, kernel, stride)
            for before, (units, kernel, stride) in zip(channels, layers, strict=False)
        )
        self.last = nn.Linear(channels[-1] * math.prod(sides), self.width)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (n, 128) float32 of pictures (n, height, width, 1) or (n, k, height, width, 1) uint8."""
        first, *others = cast(list[nn.Conv2d], list(self.convolutions))
        frames = inputs[0].squeeze(-1)
        blocks = blocks_as_channels(frames if frames.dim() == 4 else frames.unsqueeze(1), int(first.stride[0]))
        hidden = blocks.to(convolution_dtype(blocks.device))
        hidden = F.conv2d(hidden, _weight_of_blocks(first).to(hidden.dtype), _bias(first, hidden)).relu()
        for layer in others:
            hidden = _convolution(layer, hidden).relu()
        flat = hidden.permute(0, 2, 3, 1).flatten(1)  # channels last, as they lie in memory
        return _linear(self.last, flat).float().relu()


def sides_after(side: int, layers: Layers) -> int:
    """Return the side of the last convolution's output, 0 or less if the picture is too small."""
    for _, kernel, stride in layers:
        side = (side - kernel) // stride + 1
    return side


def blocks_as_channels(frames: Tensor, block: int) -> Tensor:
    """Return pictures with the pixels of each square block as channels; parts of a block at the end are cut off.

    Pixels are moved as integers of 4 or 8 bytes: a tenth of the time of ``pixel_unshuffle``.

    Args:
        frames: (n, k, height, width) uint8.
        block: side of a block, a multiple of 4.

    Returns:
        (n, k * block ** 2, height // block, width // block) uint8, channels last in memory; the channels are those of
        (k, block, block), frame, row and column.
    """
    n, depth, height, width = frames.shape
    rows, columns, word = height // block, width // block, torch.int32 if block % 8 else torch.int64
    whole = frames[:, :, : rows * block, : columns * block].contiguous().view(word)
    lines = whole.view(n, depth, rows, block, columns, -1).permute(0, 2, 1, 3, 5, 4)
    cells = lines.reshape(n * rows, -1, columns).transpose(1, 2).contiguous()
    return cells.view(torch.uint8).view(n, rows, columns, -1).permute(0, 3, 1, 2)


def _weight_of_blocks(layer: nn.Conv2d) -> Tensor:
    """Return the weight of a convolution for blocks as channels, with pixels from 0 to 255.

    A convolution of 8 x 8 with stride 4 is one of 2 x 2 with stride 1 over blocks of 4 x 4; with 16 channels or more
    it is faster than with one or two. Pixels up to 255 are exact in bfloat16, so the weight has the scale.
    """
    (units, depth, kernel, _), block = layer.weight.shape, int(layer.stride[0])
    blocks = kernel // block
    parts = layer.weight.view(units, depth, blocks, block, blocks, block).permute(0, 1, 3, 5, 2, 4)
    return parts.reshape(units, depth * block**2, blocks, blocks) / _SOLID


class GridEncoder(Encoder):
    """A layer over all squares of ``locals``.

    Args:
        name: observation.
        shape: (side, side), or (k, side, side) for a stack; uint8.
    """

    width = GRID_FEATURES

    def __init__(self, name: str, shape: tuple[int, ...]):
        super().__init__()
        self.inputs = (name,)
        if len(shape) not in (2, 3):
            raise ConfigError(f"observations: expected {name} of shape (side, side) or (k, side, side), got {shape}")
        self.first = nn.Linear(math.prod(shape), self.width)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (n, 64) float32 of grids (n, side, side) or (n, k, side, side) uint8."""
        return self.first(inputs[0].flatten(1).float() / _SOLID).relu()


class EntityEncoder(Encoder):
    """The same layer for every entity, then maximum and mean over the entities: their order has no influence.

    Args:
        shapes: those of ``entity_states`` (m, 12), ``entity_kinds`` (m,) and ``entity_count`` (1,), or with a first
            axis k for a stack, whose frames are encoded one by one.
    """

    inputs = ("entity_states", "entity_kinds", "entity_count")
    units = ENTITY_UNITS

    def __init__(self, shapes: Shapes):
        super().__init__()
        missing = [name for name in self.inputs if name not in shapes]
        if missing:
            raise ConfigError(f"observations: expected {', '.join(self.inputs)} together, missing {', '.join(missing)}")
        *stack, self._rows, features = shapes["entity_states"]
        self.width = (2 * self.units + 1) * math.prod(stack)
        self.first = nn.Linear(features, self.units)
        self.kinds = nn.Embedding(len(KINDS), self.units)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return features (n, 129) float32, k times as many for a stack of k.

        Args:
            inputs: states (n, m, 12) float32 or float16, kinds (n, m) uint8 with 0 for rows that are not used, and
                counts (n, 1) uint8; those of a stack have a second axis k.
        """
        states, kinds, counts = inputs
        used = kinds.bool().unsqueeze(-1)
        hidden = (self.first(states.float()) + self.kinds(kinds.int())).relu() * used  # unused rows: never the maximum
        mean = hidden.sum(dim=-2) / used.sum(dim=-2).clamp(min=1)
        return torch.cat([hidden.amax(dim=-2), mean, counts / self._rows], dim=-1).flatten(1)


def _linear(layer: nn.Linear, inputs: Tensor) -> Tensor:
    """Return the outputs of a layer in the dtype of its inputs, which need not be that of its parameters."""
    return F.linear(inputs, layer.weight.to(inputs.dtype), _bias(layer, inputs))


def _convolution(layer: nn.Conv2d, inputs: Tensor) -> Tensor:
    return F.conv2d(inputs, layer.weight.to(inputs.dtype), _bias(layer, inputs), layer.stride)


def _bias(layer: nn.Conv2d | nn.Linear, inputs: Tensor) -> Tensor:
    assert layer.bias is not None
    return layer.bias.to(inputs.dtype)
