"""The actor-critic network: MLPs over the state vector and convolutional features of each picture."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nclone_env.actions import NUM_ACTIONS

_PICTURE_FEATURES = 128

Observations = Mapping[str, Tensor]


class ActorCritic(nn.Module):
    """Policy over six actions and value function, as separate MLPs of two hidden layers.

    Vectors are used unchanged; each picture passes through a convolutional trunk shared by actor and critic. A stack
    of k vectors is flattened to one vector, a stack of k pictures becomes k channels.

    Args:
        observation_shapes: name to the shape of one observation: (d,) float32 or (height, width, 1) uint8, or
            stacks of them, (k, d) or (k, height, width, 1).
        hidden_size: units of each hidden layer.
        generator: random generator of the initial weights; torch's default generator if None.
    """

    def __init__(
        self,
        observation_shapes: Mapping[str, tuple[int, ...]],
        hidden_size: int = 128,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.observation_shapes = {name: tuple(shape) for name, shape in observation_shapes.items()}
        pictures = {name: shape for name, shape in self.observation_shapes.items() if len(shape) >= 3}
        self.trunks = nn.ModuleDict({name: _picture_trunk(shape) for name, shape in pictures.items()})
        width = sum(
            _PICTURE_FEATURES if name in pictures else math.prod(shape)
            for name, shape in self.observation_shapes.items()
        )
        self.actor = _tower(width, hidden_size, NUM_ACTIONS)
        self.critic = _tower(width, hidden_size, 1)
        _initialise(self, generator)

    def forward(self, observations: Observations) -> tuple[Tensor, Tensor]:
        """Return log probabilities (n, 6) and values (n,) of n observations."""
        features = self._features(observations)
        return torch.log_softmax(self.actor(features), dim=1), self.critic(features).squeeze(1)

    def act(self, observations: Observations, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Sample an action for each of n observations without gradients.

        Returns:
            actions (n,) int64, their log probabilities (n,) and values (n,) float32.
        """
        with torch.inference_mode():
            log_probs, values = self(observations)
            actions = torch.multinomial(log_probs.exp(), 1, generator=generator)
            return actions.squeeze(1), log_probs.gather(1, actions).squeeze(1), values

    def argmax(self, observations: Observations) -> Tensor:
        """Return the most probable action (n,) int64 of each of n observations."""
        with torch.inference_mode():
            return self.actor(self._features(observations)).argmax(dim=1)

    def value(self, observations: Observations) -> Tensor:
        """Return the values (n,) float32 of n observations without gradients."""
        with torch.inference_mode():
            return self.critic(self._features(observations)).squeeze(1)

    def evaluate_actions(self, observations: Observations, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log probabilities of actions (n,), entropies and values, each (n,) with gradients."""
        log_probs, values = self(observations)
        entropies = -(log_probs.exp() * log_probs).sum(dim=1)
        return log_probs.gather(1, actions.unsqueeze(1)).squeeze(1), entropies, values

    def _features(self, observations: Observations) -> Tensor:
        parts = [
            self.trunks[name](observations[name]) if name in self.trunks else observations[name].flatten(1)
            for name in self.observation_shapes
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


class _Picture(nn.Module):
    """Convert uint8 (n, height, width, 1) or (n, k, height, width, 1) to float (n, 1 or k, height, width) in [0, 1]."""

    def forward(self, picture: Tensor) -> Tensor:
        return picture.movedim(-1, -3).flatten(1, -3).float().mul_(1 / 255)


def _picture_trunk(shape: tuple[int, ...]) -> nn.Sequential:
    """Return a CNN from a picture to its features; both sides must be at least 36 pixels."""
    convolutions = nn.Sequential(
        _Picture(),
        nn.Conv2d(math.prod(shape[:-3]) * shape[-1], 16, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
    )
    with torch.no_grad():
        flat = convolutions(torch.zeros(1, *shape, dtype=torch.uint8)).shape[1]
    return nn.Sequential(convolutions, nn.Linear(flat, _PICTURE_FEATURES), nn.ReLU())


def _tower(width: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
    )


def _initialise(policy: ActorCritic, generator: torch.Generator | None) -> None:
    """Initialise with orthogonal weights; a small last layer makes the initial policy nearly uniform."""
    for module in policy.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(module.weight, math.sqrt(2), generator=generator)
            assert module.bias is not None
            nn.init.zeros_(module.bias)
    for tower, gain in ((policy.actor, 0.01), (policy.critic, 1.0)):
        last = tower[-1]
        assert isinstance(last, nn.Linear)
        nn.init.orthogonal_(last.weight, gain, generator=generator)
