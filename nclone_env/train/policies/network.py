"""The actor-critic network: encoders of what is no vector, then MLPs for the policy and the value function.

| observation | encoder | features |
|---|---|---|
| ``game_state``, ``reachability``, other vectors | none: used as they are, stacks flattened | their elements |
| ``action_outcomes``, ``free_motion`` | none: the rows of all actions side by side | their elements |
| ``player_frame``, ``global_view`` | `PictureEncoder`: layers over patches, squares of them, and all | 64 |
| ``locals`` | :class:`GridEncoder`: a linear layer over all squares | 64 |
| ``entity_states``, ``entity_kinds``, ``entity_count`` | :class:`EntityEncoder`: maximum and mean over a set | 129 |
| ``action_mask`` | none: it masks logits and is no input | |
| ``graph`` | refused | |

Its parameters can be moved into one vector, which the module and NumPy share (:class:`FlatParameters`).
"""

import ctypes
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from nclone_env.errors import ConfigError, Within, checked
from nclone_env.game import KINDS, NUM_ACTIONS
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.encoder_kernels import ENTITY_UNITS, GRID_FEATURES, PATCH

Shapes = Mapping[str, tuple[int, ...]]

PICTURES = ("player_frame", "global_view")
PICTURE_FEATURES = 64
"""Features of a picture."""
_PATCH_UNITS, _SQUARE_UNITS, _MOST_PLACES = 16, 32, 32
_SOLID = 255.0
Observations = Mapping[str, Tensor]
HIDDEN_LAYERS = 2
NO_MASKS = np.zeros((0, NUM_ACTIONS), np.int8)
"""Masks of actions that allow all."""
NO_STATES = np.zeros((0, 0), np.float32)
"""States of a policy without memory."""
_TO_NEAREST = 0  # of fesetround, on all systems
_GAIN = math.sqrt(2)
"""Gain of orthogonal weights before a rectifier: it keeps the variance of standard normal inputs."""


@contextmanager
def as_by_default() -> Iterator[None]:
    """Compute as torch and the processor do in a new process, whatever this thread has set; restore it.

    That is: new tensors on the processor, no automatic lower precision, gradients, denormal numbers that are not 0, and
    sums rounded to the nearest number.
    The default dtype is a setting of all threads and stays: nothing in this package depends on it.
    """
    with ExitStack() as stack:
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        if flushes_denormals():
            torch.set_flush_denormal(False)
            stack.callback(torch.set_flush_denormal, True)
        if not rounds_to_nearest():
            library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
            stack.callback(library.fesetround, library.fegetround())
            library.fesetround(_TO_NEAREST)
        yield


def flushes_denormals() -> bool:
    """Return whether denormal numbers count as 0 in this thread."""
    return sys.float_info.min * 0.5 == 0.0


def rounds_to_nearest() -> bool:
    """Return whether results are rounded to the nearest number in this thread: not up, down or towards 0."""
    return 1.0 + sys.float_info.epsilon / 2 == 1.0 == 1.0 - sys.float_info.epsilon / 4


class ActorCritic(nn.Module):
    """Policy and value function with two hidden layers of rectified units, separate or shared.

    With ``recurrent_size`` a gated recurrent unit (GRU; Cho et al., 2014) reads the features in each step of an
    episode, and the hidden layers see its state beside them.

    Vectors are used unchanged, stacks of them flattened; every other observation passes through an encoder that policy
    and value function share. The features of all are concatenated in the order of ``observation_shapes``. Without
    encoders the parameters are those of the MLPs alone.

    Args:
        observation_shapes: name to the shape of one observation without its batch axis, as in ``obs.spec``; a stack of
            k observations has a first axis k. ``action_mask`` may be among them and is no input.
        hidden_size: units of each hidden layer.
        shared_trunk: share both hidden layers between policy and value function.
        recurrent_size: h, units of the recurrent layer; 0: none.
        generator: random generator of the initial weights; torch's default generator if None.

    Raises:
        ConfigError: if an observation cannot be encoded.
    """

    @checked()
    def __init__(
        self,
        observation_shapes: Mapping[str, tuple[int, ...]],
        *,
        hidden_size: Annotated[int, Within(1, 65536)] = 64,
        shared_trunk: bool = True,
        recurrent_size: Annotated[int, Within(0, 65536)] = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.observation_shapes = {name: tuple(shape) for name, shape in observation_shapes.items()}
        self.hidden_size, self.shared_trunk, self.recurrent_size = hidden_size, shared_trunk, recurrent_size
        encoders = make_encoders(self.observation_shapes)
        self.encoders = nn.ModuleDict({name: encoder for name, encoder in encoders.items() if encoder is not None})
        self.input_widths = {
            name: encoder.width if encoder else math.prod(self.observation_shapes[name])
            for name, encoder in encoders.items()
        }
        width = sum(self.input_widths.values())
        self.recurrence = nn.GRUCell(width, recurrent_size) if recurrent_size else None
        sizes = (width + recurrent_size, *[hidden_size] * HIDDEN_LAYERS)
        self.trunk = _mlp(sizes) if shared_trunk else None
        self.actor = nn.Linear(hidden_size, NUM_ACTIONS) if shared_trunk else _mlp((*sizes, NUM_ACTIONS))
        self.critic = nn.Linear(hidden_size, 1) if shared_trunk else _mlp((*sizes, 1))
        _initialise(self.float(), generator)  # whatever the default dtype is

    def forward(self, observations: Observations) -> tuple[Tensor, Tensor]:
        """Return the logits (n, 6) and the values (n,) of n observations.

        Raises:
            ConfigError: if the policy has a memory.
        """
        if self.recurrent_size:
            raise ConfigError(
                f"policy: expected one without memory, got one with recurrent_size {self.recurrent_size}; "
                "call policy.act(observation, episode_start=...), or step(observations, states) of its network"
            )
        return self.outputs(self.features(observations))

    def step(self, observations: Observations, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits (n, 6), the values (n,) and the new states of n observations, one of each episode.

        ``states``, (n, h) float32, are those after the observations before, 0 where an episode begins.
        """
        features = self.features(observations)
        if self.recurrence is None:
            return *self.outputs(features), states
        after = self.recurrence(features, states)
        return *self.outputs(torch.cat((features, after), dim=1)), after

    def features(self, observations: Observations) -> Tensor:
        """Return the features of all observations side by side, (n, width)."""
        parts = [self._encoded(name, observations) for name in self.input_widths]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def outputs(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits and the values of what the hidden layers see."""
        if self.trunk is not None:
            features = self.trunk(features)
        return self.actor(features), self.critic(features).squeeze(1)

    def _encoded(self, name: str, observations: Observations) -> Tensor:
        if name not in self.encoders:
            return observations[name].flatten(1).float()
        encoder = self.encoders[name]
        assert isinstance(encoder, Encoder)
        return encoder(*(observations[part] for part in encoder.inputs))


@checked()
def make_policy(
    config: TrainConfig, observation_shapes: Mapping[str, tuple[int, ...]], generator: torch.Generator | None = None
) -> ActorCritic:
    """Return the network of a run's configuration.

    Its values begin near the weight of the shaping reward. At the start of every level the potential is minus that
    weight and it ends as 0, so this is the return of an episode that gets nowhere. With values near 0 the reward at a
    death would look like a gain at first, and the policy would learn to die (Wiewiora, 2003, on shaping and initial
    values).
    """
    policy = ActorCritic(
        observation_shapes,
        hidden_size=config.hidden_size,
        shared_trunk=config.shared_trunk,
        recurrent_size=config.recurrent_size,
        generator=generator,
    )
    critic = policy.critic[-1] if isinstance(policy.critic, nn.Sequential) else policy.critic
    assert isinstance(critic, nn.Linear)
    nn.init.constant_(critic.bias, config.environment.reward.shaping)
    return policy


def _mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Return an MLP; its last layer is rectified if it is a hidden one."""
    modules: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        modules.append(nn.Linear(inputs, outputs))
        if index < HIDDEN_LAYERS:
            modules.append(nn.ReLU())
    return nn.Sequential(*modules)


def _initialise(policy: ActorCritic, generator: torch.Generator | None) -> None:
    """Initialise with orthogonal weights; a small last layer makes the initial policy nearly uniform."""
    gains: dict[nn.Module, float] = {}
    for head, last_gain in ((policy.actor, 0.01), (policy.critic, 1.0)):
        gains[head[-1] if isinstance(head, nn.Sequential) else head] = last_gain
    for module in policy.modules():
        if isinstance(module, nn.Embedding):
            nn.init.orthogonal_(module.weight, generator=generator)
        elif isinstance(module, nn.GRUCell):
            for weight in (module.weight_ih, module.weight_hh):
                for gate in weight.chunk(3):
                    nn.init.orthogonal_(gate, generator=generator)
            for bias in (module.bias_ih, module.bias_hh):
                nn.init.zeros_(bias)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(module.weight, gains.get(module, _GAIN), generator=generator)
            assert module.bias is not None
            nn.init.zeros_(module.bias)


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


class Encoder(nn.Module):
    """Base class: ``forward`` takes the observations named in ``inputs`` and returns (n, ``width``) float32."""

    inputs: tuple[str, ...]
    width: int

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the features (n, width) float32 of n observations."""
        raise NotImplementedError


def make_encoders(shapes: Shapes) -> dict[str, Encoder | None]:
    """Return the encoder of each input of the network by the name of its observation, None for vectors."""
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
        elif name in ("action_outcomes", "free_motion"):
            encoders[name] = None
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


class PictureEncoder(Encoder):
    """A layer over every patch of 8 x 8 pixels, layers over squares of 2 x 2 places, and a layer over all that is left.

    Squares are merged at least once, and until no more than 32 places are left if possible. No pixel belongs to two
    patches, so every layer is one matrix product. Pixels at the edges that fill no patch are left out, as many on both
    sides. The ``frames`` of a stack are channels; ``line`` is the number of pixels of a line.
    """

    width = PICTURE_FEATURES

    def __init__(self, name: str, shape: tuple[int, ...]):
        super().__init__()
        self.inputs = (name,)
        if len(shape) not in (3, 4) or shape[-1] != 1 or min(shape[-3:-1]) < 2 * PATCH:
            raise ConfigError(
                f"observations: expected {name} of shape (height, width, 1), or (k, height, width, 1) for a stack, "
                f"with sides of at least {2 * PATCH} pixels, got {shape}"
            )
        self._sides, self.line, self.frames = shape[-3:-1], shape[-2], shape[0] if len(shape) == 4 else 1
        merges = 1
        while math.prod(self._places(merges)) > _MOST_PLACES and min(self._places(merges + 1)):
            merges += 1
        self.patches = nn.Linear(self.frames * PATCH**2, _PATCH_UNITS)
        units = (_PATCH_UNITS, *[_SQUARE_UNITS] * merges)
        self.squares = nn.ModuleList(nn.Linear(4 * below, above) for below, above in itertools.pairwise(units))
        self.last = nn.Linear(math.prod(self._places(merges)) * _SQUARE_UNITS, self.width)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (n, 64) float32 of pictures (n, height, width, 1) or (n, k, height, width, 1) uint8."""
        frames = inputs[0].squeeze(-1)
        frames = frames if frames.dim() == 4 else frames.unsqueeze(1)
        hidden = self.patches(self._patches(frames).float() / _SOLID).relu()
        for layer in self.squares:
            hidden = layer(hidden.reshape(-1, 4 * hidden.shape[1])).relu()
        return self.last(hidden.reshape(len(frames), -1)).relu()

    def places(self) -> tuple[int, ...]:
        """Return the number of places of a picture at which each layer has outputs, from the patches on."""
        left, merges = math.prod(self._places(len(self.squares))), len(self.squares)
        return (*(left * 4**more for more in range(merges, -1, -1)), 1)

    def corners(self) -> np.ndarray:
        """Return the number of the first pixel of each patch in a frame, (a,) int64, in the order of the network."""
        pixels = np.arange(math.prod(self._sides)).reshape(1, 1, *self._sides)
        return self._patches(torch.from_numpy(pixels))[:, 0].numpy().copy()

    def _places(self, merges: int) -> tuple[int, int]:
        """Return the rows and columns of places that are left after so many merges."""
        height, width = (side // PATCH >> merges for side in self._sides)
        return height, width

    def _patches(self, frames: Tensor) -> Tensor:
        """Return all patches of frames (n, k, height, width), (n * a, k * 64), the four of a square side by side."""
        merges = len(self.squares)
        rows, columns = self._places(merges)
        top, left = ((side - (PATCH * count << merges)) // 2 for side, count in zip(self._sides, (rows, columns)))
        whole = frames[:, :, top : top + (PATCH * rows << merges), left : left + (PATCH * columns << merges)]
        halves = (2,) * merges
        split = whole.reshape(*frames.shape[:2], rows, *halves, PATCH, columns, *halves, PATCH)
        y, x = 2, 4 + merges  # the axes of rows and columns; behind each those of its halves, then that of its pixels
        order = [axis for half in range(merges + 1) for axis in (y + half, x + half)]
        return split.permute(0, *order, 1, y + merges + 1, x + merges + 1).reshape(-1, frames.shape[1] * PATCH**2)


class GridEncoder(Encoder):
    """A layer over all squares of ``locals``, (side, side) uint8, or with first axes for a stack and for planes."""

    width = GRID_FEATURES

    def __init__(self, name: str, shape: tuple[int, ...]):
        super().__init__()
        self.inputs = (name,)
        if len(shape) not in (2, 3, 4):
            raise ConfigError(
                f"observations: expected {name} of shape (side, side), or with first axes for a stack and for planes, "
                f"got {shape}"
            )
        self.first = nn.Linear(math.prod(shape), self.width)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return (n, 64) float32 of n grids of the shape, uint8."""
        return self.first(inputs[0].flatten(1).float() / _SOLID).relu()


class EntityEncoder(Encoder):
    """The same layer for every entity, then maximum and mean over the entities: their order has no influence.

    Shapes are those of ``entity_states`` (m, 12), ``entity_kinds`` (m,) and ``entity_count`` (1,), or with a first axis
    k for a stack, whose frames are encoded one by one.
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
        """Return features (n, 129) float32, k times as many for a stack of k, whose inputs have a second axis k.

        These are states (n, m, 12), kinds (n, m) uint8 with 0 for rows that are not used, and counts (n, 1) uint8.
        """
        states, kinds, counts = inputs
        used = kinds.bool().unsqueeze(-1)
        hidden = (self.first(states.float()) + self.kinds(kinds.int())).relu() * used  # unused rows: never the maximum
        mean = hidden.sum(dim=-2) / used.sum(dim=-2).clamp(min=1)
        return torch.cat([hidden.amax(dim=-2), mean, counts.float() / self._rows], dim=-1).flatten(1)
