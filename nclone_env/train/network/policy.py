"""The actor-critic network: encoders of what is no vector, then MLPs for the policy and the value function.

Its parameters can be moved into one vector, which the module and NumPy share (:class:`FlatParameters`).
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nclone_env.game import NUM_ACTIONS
from nclone_env.train.config import TrainConfig
from nclone_env.train.network.encoders import Encoder, make_encoders

Observations = Mapping[str, Tensor]
HIDDEN_LAYERS = 2
_GAIN = math.sqrt(2)
"""Gain of orthogonal weights before a rectifier: it keeps the variance of standard normal inputs."""


class ActorCritic(nn.Module):
    """Policy and value function with two hidden layers of rectified units, separate or shared.

    Vectors are used unchanged, stacks of them flattened; every other observation passes through an encoder
    (``train.network.encoders``) that policy and value function share. The features of all are concatenated in the order
    of ``observation_shapes``. Without encoders the parameters are those of the MLPs alone.

    Args:
        observation_shapes: name to the shape of one observation without its batch axis, as in ``obs.spec``; a stack of
            k observations has a first axis k. ``action_mask`` may be among them and is no input.
        hidden_size: units of each hidden layer.
        shared_trunk: share both hidden layers between policy and value function.
        generator: random generator of the initial weights; torch's default generator if None.

    Raises:
        ConfigError: if an observation cannot be encoded.
    """

    def __init__(
        self,
        observation_shapes: Mapping[str, tuple[int, ...]],
        *,
        hidden_size: int = 64,
        shared_trunk: bool = True,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.observation_shapes = {name: tuple(shape) for name, shape in observation_shapes.items()}
        self.hidden_size, self.shared_trunk = hidden_size, shared_trunk
        encoders = make_encoders(self.observation_shapes)
        self.encoders = nn.ModuleDict({name: encoder for name, encoder in encoders.items() if encoder is not None})
        self.input_widths = {
            name: encoder.width if encoder else math.prod(self.observation_shapes[name])
            for name, encoder in encoders.items()
        }
        width = sum(self.input_widths.values())
        sizes = (width, *[hidden_size] * HIDDEN_LAYERS)
        self.trunk = _mlp(sizes) if shared_trunk else None
        self.actor = nn.Linear(hidden_size, NUM_ACTIONS) if shared_trunk else _mlp((*sizes, NUM_ACTIONS))
        self.critic = nn.Linear(hidden_size, 1) if shared_trunk else _mlp((*sizes, 1))
        _initialise(self, generator)

    def forward(self, observations: Observations) -> tuple[Tensor, Tensor]:
        """Return the logits (n, 6) and the values (n,) of n observations."""
        parts = [self._encoded(name, observations) for name in self.input_widths]
        features = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        if self.trunk is not None:
            features = self.trunk(features)
        return self.actor(features), self.critic(features).squeeze(1)

    def _encoded(self, name: str, observations: Observations) -> Tensor:
        if name not in self.encoders:
            return observations[name].flatten(1).float()
        encoder = self.encoders[name]
        assert isinstance(encoder, Encoder)
        return encoder(*(observations[part] for part in encoder.inputs))


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
        observation_shapes, hidden_size=config.hidden_size, shared_trunk=config.shared_trunk, generator=generator
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
