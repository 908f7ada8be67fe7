"""The network through torch: for what the hand-written MLP does not cover, float16 and stacks of ``entity_states``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.train.network.arrays import LearningFields, LossScaling
from nclone_env.train.network.distribution import divergences, log_probs_and_entropies
from nclone_env.train.network.loss_kernels import REFERENCE_KL
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.protocols import StoredSteps
from nclone_env.train.policy import ActorCritic


class Autograd:
    """A policy of torch modules, for use by several threads.

    Args:
        policy: the network; its parameters are those of ``parameters``.
        parameters: the vector of its parameters.
        storage: the rollout to read.
        seats: number of threads.
        most_rows: largest number of rows of a part.
    """

    def __init__(
        self, policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
    ):
        self._policy, self._parameters, self._storage = policy, parameters, storage
        self._inputs = tuple(name for name in policy.observation_shapes if name != "action_mask")
        self._trained = tuple(policy.parameters())
        self._buffers = [storage.observation_buffers(most_rows) for _ in range(seats)]
        self._fields: LearningFields[Tensor] = LearningFields(*map(torch.from_numpy, storage.learning_fields))

    def outputs(self, seat: int, observations: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations."""
        tensors = {name: torch.from_numpy(observations[name]) for name in self._inputs}
        with torch.inference_mode():
            logits, values = self._policy(tensors)
        return logits.numpy(), values.numpy()

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Compute the gradient over a part of a minibatch, as ``train.network.protocols.Network`` describes."""
        steps = torch.from_numpy(rows)
        observations = {name: buffer[: len(rows)] for name, buffer in self._buffers[seat].items()}
        self._storage.gather(steps, observations)
        fields = LearningFields(*(field[steps] for field in self._fields))
        has_reference = scaling.reference_coef > 0 and len(self._storage.reference) > 0
        reference = torch.from_numpy(self._storage.reference)[steps] if has_reference else None
        masks = observations.get("action_mask")
        logits, values = self._policy(observations)
        loss, terms = loss_of_outputs(logits, values, masks, fields, scaling, reference)
        gradients = torch.autograd.grad(loss, self._trained)
        for target, gradient in zip(self._parameters.views(out).values(), gradients, strict=True):
            target[...] = gradient.numpy()
        sums[:] = terms.numpy()

    def memory(self) -> MemoryNode:
        """Return the bytes of the gathered observations; activations come on top during an update."""
        buffers = (
            array_group(f"seat {seat}", {name: tensor.numpy() for name, tensor in buffers.items()}, shared=False)
            for seat, buffers in enumerate(self._buffers)
        )
        return MemoryNode("network scratch", children=tuple(buffers))


def loss_of_outputs(
    logits: Tensor,
    values: Tensor,
    masks: Tensor | None,
    steps: LearningFields[Tensor],
    scaling: LossScaling,
    reference: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the whole loss of b steps and the sums for the statistics, on the device of the arguments.

    Args:
        logits: (b, a) float32.
        values: (b,) float32.
        masks: (b, a), 0 for each action that is not allowed; None masks nothing.
        steps: the stored steps.
        scaling: numbers of the loss.
        reference: (b, a) float32, probabilities of a reference policy; None does without it.

    Returns:
        The loss, with gradient, and (6,) float64 sums in the order of ``UpdateStatistics``.
    """
    outputs = log_probs_and_entropies(logits, steps.actions, masks)
    loss, terms = ppo_loss(*outputs, values, steps, scaling)
    if reference is not None:
        divergence = divergences(reference, logits, masks).sum()
        loss = loss + divergence * scaling.reference_coef * scaling.share
        terms[REFERENCE_KL] = divergence.detach()
    return loss, terms


def ppo_loss(
    log_probs: Tensor, entropies: Tensor, values: Tensor, steps: LearningFields[Tensor], scaling: LossScaling
) -> tuple[Tensor, Tensor]:
    """Return the loss of b steps (Schulman et al., 2017) and the sums for the statistics.

    Args:
        log_probs: (b,) log probabilities of the stored actions under the current policy.
        entropies: (b,) entropies of the current policy.
        values: (b,) current value estimates.
        steps: the stored steps.
        scaling: numbers of the loss.

    Returns:
        The loss, with gradient, and (6,) float64 sums in the order of ``UpdateStatistics``; the last one is left 0.
    """
    # Numbers that are on a device stay there: float() would wait for them.
    numbers: Iterator[Any] = (number if isinstance(number, Tensor) else float(number) for number in scaling)
    mean, scale, share, clip_coef, value_coef, entropy_coef, _ = numbers
    advantages = (steps.advantages - mean) * scale
    log_ratio = log_probs - steps.log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_coef, 1 + clip_coef)
    policy = -torch.min(ratio * advantages, clipped * advantages).sum()
    value = 0.5 * (values - steps.returns).square().sum()
    entropy = entropies.sum()
    loss = (policy + value_coef * value - entropy_coef * entropy) * share
    with torch.no_grad():
        approx_kl = (ratio - 1 - log_ratio).sum()
        clip_count = ((ratio - 1).abs() > clip_coef).sum()
        return loss, torch.stack([policy, value, entropy, approx_kl, clip_count, policy.new_zeros(())]).double()
