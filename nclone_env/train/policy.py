"""The actor-critic network: encoders of what is no vector, then MLPs for the policy and the value function."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from nclone_env.actions import JUMP_INPUTS, NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.errors import ConfigError
from nclone_env.train.config import TrainConfig
from nclone_env.train.network.activations import ACTIVATIONS
from nclone_env.train.network.encoders import Encoder, make_encoders

Observations = Mapping[str, Tensor]
_HIDDEN_LAYERS = 2
HEADS: dict[str, tuple[int, ...]] = {"joint": (NUM_ACTIONS,), "separate": (NUM_DIRECTIONS, len(JUMP_INPUTS))}
"""Heads of the policy by the ``action_heads`` of a configuration."""


class ActorCritic(nn.Module):
    """Policy and value function with two hidden layers, separate or shared.

    Vectors are used unchanged, stacks of them flattened; every other observation passes through an encoder
    (``train.network.encoders``) that policy and value function share. The features of all are concatenated in the order
    of ``observation_shapes``. Without encoders the parameters are those of the MLPs alone.

    Args:
        observation_shapes: name to the shape of one observation without its batch axis, as in ``obs.spec``; a stack of
            k observations has a first axis k. ``action_mask`` may be among them and is no input.
        heads: number of choices of each part of an action: (6,) for a joint distribution over the actions, (3, 2) for
            independent ones of direction and jump.
        hidden_size: units of each hidden layer.
        activation: ``tanh``, ``relu`` or ``silu`` between the layers of the MLPs.
        shared_trunk: share both hidden layers between policy and value function.
        generator: random generator of the initial weights; torch's default generator if None.

    Raises:
        ConfigError: if an observation cannot be encoded, or ``activation`` or ``heads`` is invalid.
    """

    def __init__(
        self,
        observation_shapes: Mapping[str, tuple[int, ...]],
        heads: Sequence[int] = (NUM_ACTIONS,),
        *,
        hidden_size: int = 128,
        activation: str = "tanh",
        shared_trunk: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.observation_shapes = {name: tuple(shape) for name, shape in observation_shapes.items()}
        self.heads = _checked_heads(heads)
        self.hidden_size, self.activation, self.shared_trunk = hidden_size, activation, shared_trunk
        if activation not in ACTIVATIONS:
            raise ConfigError(f"activation: expected one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        layer, gain = ACTIVATIONS[activation]
        encoders = make_encoders(self.observation_shapes)
        self.encoders = nn.ModuleDict({name: encoder for name, encoder in encoders.items() if encoder is not None})
        self.input_widths = {
            name: encoder.width if encoder else math.prod(self.observation_shapes[name])
            for name, encoder in encoders.items()
        }
        width = sum(self.input_widths.values())
        sizes, outputs = (width, hidden_size, hidden_size), sum(self.heads)
        self.trunk = _mlp(sizes, layer) if shared_trunk else None
        self.actor = nn.Linear(hidden_size, outputs) if shared_trunk else _mlp((*sizes, outputs), layer)
        self.critic = nn.Linear(hidden_size, 1) if shared_trunk else _mlp((*sizes, 1), layer)
        _initialise(self, gain, generator)

    def forward(self, observations: Observations) -> tuple[Tensor, Tensor]:
        """Return the logits (n, sum(heads)) of all heads side by side and the values (n,) of n observations."""
        features = self._features(observations)
        return self.actor(features), self.critic(features).squeeze(1)

    def value(self, observations: Observations) -> Tensor:
        """Return the values (n,) float32 of n observations without gradients."""
        with torch.inference_mode():
            return self.critic(self._features(observations)).squeeze(1)

    def _features(self, observations: Observations) -> Tensor:
        """Return what actor and critic see, (n, width) float32."""
        parts = [self._encoded(name, observations) for name in self.input_widths]
        features = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        return features if self.trunk is None else self.trunk(features)

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
        observation_shapes,
        HEADS["joint"],
        hidden_size=config.hidden_size,
        activation="relu",
        shared_trunk=config.shared_trunk,
        generator=generator,
    )
    critic = policy.critic[-1] if isinstance(policy.critic, nn.Sequential) else policy.critic
    assert isinstance(critic, nn.Linear)
    nn.init.constant_(critic.bias, config.environment.reward.shaping)
    return policy


def _checked_heads(heads: Sequence[int]) -> tuple[int, ...]:
    if not heads or not all(isinstance(count, int) and count > 0 for count in heads):
        raise ConfigError(f"heads: expected the number of choices of each part of an action, such as (6,), got {heads}")
    return tuple(heads)


def _mlp(sizes: Sequence[int], layer: type[nn.Module]) -> nn.Sequential:
    """Return an MLP; its last layer has an activation if it is a hidden one."""
    modules: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        modules.append(nn.Linear(inputs, outputs))
        if index < _HIDDEN_LAYERS:
            modules.append(layer())
    return nn.Sequential(*modules)


def _initialise(policy: ActorCritic, gain: float, generator: torch.Generator | None) -> None:
    """Initialise with orthogonal weights; a small last layer makes the initial policy nearly uniform."""
    gains: dict[nn.Module, float] = dict.fromkeys(policy.encoders.modules(), math.sqrt(2))
    for head, last_gain in ((policy.actor, 0.01), (policy.critic, 1.0)):
        gains[head[-1] if isinstance(head, nn.Sequential) else head] = last_gain
    for module in policy.modules():
        if isinstance(module, nn.Embedding):
            nn.init.orthogonal_(module.weight, generator=generator)
        elif isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(module.weight, gains.get(module, gain), generator=generator)
            assert module.bias is not None
            nn.init.zeros_(module.bias)
