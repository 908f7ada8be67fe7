"""Proximal policy optimisation (Schulman et al., 2017): the loss and the update."""

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
    """Clipped surrogate loss."""
    value_loss: float
    """Half the mean squared error of the values."""
    entropy: float
    """Entropy of the policy, in nats."""
    approx_kl: float
    """Estimate of the KL divergence from the policy that collected the rollout."""
    clip_fraction: float
    """Fraction of probability ratios outside the clipping range."""
    grad_norm: float
    """Norm of the gradient before clipping."""


class Losses(NamedTuple):
    """Scalars of one minibatch; the first three have gradients."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def compute_losses(
    log_probs: Tensor, entropies: Tensor, values: Tensor, minibatch: Minibatch, clip_coef: float
) -> Losses:
    """Return the terms of the loss over b steps.

    Args:
        log_probs: (b,) log probabilities of the stored actions under the current policy.
        entropies: (b,) entropies of the current policy.
        values: (b,) current value estimates.
        minibatch: the stored steps.
        clip_coef: the epsilon of the clipped surrogate objective.
    """
    advantages = minibatch.advantages
    deviation, mean = torch.std_mean(advantages, correction=0)
    advantages = (advantages - mean) / (deviation + 1e-8)
    log_ratio = log_probs - minibatch.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    policy = -torch.min(ratio * advantages, clipped * advantages).mean()
    value = 0.5 * (values - minibatch.returns).square().mean()
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).mean()
        clip_fraction = ((ratio - 1).abs() > clip_coef).float().mean()
    return Losses(policy, value, entropies.mean(), approx_kl, clip_fraction)


class PPO:
    """The algorithm: owns the optimiser and updates the policy; independent of the environments.

    Args:
        policy: the network to train.
        config: hyperparameters.
        generator: random generator of the minibatch order.
    """

    def __init__(self, policy: ActorCritic, config: TrainConfig, generator: torch.Generator):
        self.policy, self.config = policy, config
        self.optimiser = torch.optim.Adam(policy.parameters(), config.learning_rate, eps=1e-5, fused=True)
        self._generator = generator
        self._sums = torch.zeros(len(UpdateStatistics._fields))

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the following updates."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate

    def update(self, storage: RolloutStorage) -> UpdateStatistics:
        """Update the policy on a rollout whose advantages and returns have been computed."""
        self._sums.zero_()
        count = 0
        for _ in range(self.config.update_epochs):
            for minibatch in storage.minibatches(self._generator):
                self._sums += self._descend(minibatch)
                count += 1
        return UpdateStatistics(*(self._sums / count).tolist())

    def _descend(self, minibatch: Minibatch) -> Tensor:
        """Take one gradient step on a minibatch and return its statistics."""
        config = self.config
        outputs = self.policy.evaluate_actions(minibatch.observations, minibatch.actions)
        losses = compute_losses(*outputs, minibatch, config.clip_coef)
        total = losses.policy + config.value_coef * losses.value - config.entropy_coef * losses.entropy
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        norm = nn.utils.clip_grad_norm_(self.policy.parameters(), config.max_grad_norm)
        self.optimiser.step()
        return torch.stack([*losses, norm]).detach()
