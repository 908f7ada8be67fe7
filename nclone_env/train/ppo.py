"""Proximal policy optimisation (Schulman and others, 2017): the loss and the update."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nclone_env.train.config import TrainConfig
from nclone_env.train.policy import ActorCritic
from nclone_env.train.rollout import Minibatch, RolloutStorage


class UpdateStatistics(NamedTuple):
    """Means over the minibatches of one update."""

    policy_loss: float
    value_loss: float
    entropy: float
    approximate_kl: float
    clip_fraction: float
    gradient_norm: float


class Losses(NamedTuple):
    """Scalars of one minibatch; the first three carry gradients."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    approximate_kl: Tensor
    clip_fraction: Tensor


def compute_losses(log_probs: Tensor, entropies: Tensor, values: Tensor, minibatch: Minibatch, clip: float) -> Losses:
    """Return the parts of the loss of b steps.

    Args:
        log_probs: (b,) of the taken actions under the policy as it is now.
        entropies: (b,) of the policy as it is now.
        values: (b,) of the observations as they are estimated now.
        minibatch: what was stored when the actions were taken.
        clip: how far the probability ratio may move from 1.
    """
    advantages = minibatch.advantages
    deviation, mean = torch.std_mean(advantages, correction=0)
    advantages = (advantages - mean) / (deviation + 1e-8)
    log_ratio = log_probs - minibatch.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    policy = -torch.min(ratio * advantages, clipped * advantages).mean()
    value = 0.5 * (values - minibatch.returns).square().mean()
    with torch.no_grad():
        approximate_kl = (ratio - 1 - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip).float().mean()
    return Losses(policy, value, entropies.mean(), approximate_kl, clip_fraction)


class PPO:
    """The algorithm: owns the optimiser, changes the policy, knows nothing of environments.

    Args:
        policy: the network to improve.
        config: step sizes and weights.
        generator: source of the minibatch order.
    """

    def __init__(self, policy: ActorCritic, config: TrainConfig, generator: torch.Generator):
        self.policy, self.config = policy, config
        self.optimiser = torch.optim.Adam(policy.parameters(), config.learning_rate, eps=1e-5, fused=True)
        self._generator = generator
        self._sums = torch.zeros(len(UpdateStatistics._fields))

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the step size of the following updates."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate

    def update(self, storage: RolloutStorage) -> UpdateStatistics:
        """Improve the policy with a rollout whose advantages and returns are filled in."""
        self._sums.zero_()
        count = 0
        for _ in range(self.config.epochs):
            for minibatch in storage.minibatches(self._generator):
                self._sums += self._descend(minibatch)
                count += 1
        return UpdateStatistics(*(self._sums / count).tolist())

    def _descend(self, minibatch: Minibatch) -> Tensor:
        """Take one gradient step; return the statistics of the minibatch."""
        config = self.config
        outputs = self.policy.evaluate_actions(minibatch.observations, minibatch.actions)
        losses = compute_losses(*outputs, minibatch, config.clip)
        total = losses.policy + config.value_weight * losses.value - config.entropy_weight * losses.entropy
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
        self.optimiser.step()
        return torch.stack([*losses, norm]).detach()
