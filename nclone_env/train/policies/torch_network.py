"""The network through torch, for what the hand-written MLP does not cover, and the loss, which devices compute too.

The distribution of actions is a softmax over the logits (n, a), restricted by a mask, (n, a) of any integer dtype or
bool: 0 for each action that is not allowed. Every row must leave one.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from nclone_env.errors import ActionError
from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.mlp_kernels import REFERENCE_KL
from nclone_env.train.policies.network import NO_STATES, ActorCritic, FlatParameters


class StoredSteps(Protocol):
    """What a network reads of n stored steps: a rollout, or the trajectories of ``train.learn.trajectories``."""

    frame_stack: int
    """Depth of the stacks that the network sees; 1: none."""
    reference: np.ndarray
    """(n, a) float32, the probabilities of a reference policy in each step; (0, a): none."""

    @property
    def flat_observations(self) -> Mapping[str, np.ndarray]:
        """Name to (n, *shape), or more rows; without stacks row s is the observation of step s."""

    @property
    def learning_fields(self) -> LearningFields[np.ndarray]:
        """What the loss needs besides observations, (n,) each."""

    def observation_buffers(self, count: int) -> dict[str, Tensor]:
        """Allocate room for ``count`` observations, or stacks of them, by name."""

    def gather(self, steps: Tensor, out: Mapping[str, Tensor]) -> None:
        """Write the observations of b steps, (b,) int64, or stacks of them, to ``out``, (b, ...) by name."""


@runtime_checkable
class StoredSequences(StoredSteps, Protocol):
    """What a network with memory reads of T steps of N environments in a rollout; step t of i is t * N + i."""

    num_steps: int
    num_envs: int
    episode_starts: np.ndarray
    """(T + k, N) bool, whether an observation is the first of its episode; that of step t is in row t + k - 1."""
    states: np.ndarray
    """(2, N, h) float32, of which the first are those before step 0."""


class TorchNetwork:
    """A policy of torch modules, ``module``, for use by several threads; its parameters are those of ``parameters``."""

    def __init__(
        self, policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
    ):
        self.module, self._parameters, self._storage = policy, parameters, storage
        self._inputs = tuple(name for name in policy.observation_shapes if name != "action_mask")
        self._buffers = [storage.observation_buffers(most_rows) for _ in range(seats)]
        self._fields: LearningFields[Tensor] = LearningFields(*map(torch.from_numpy, storage.learning_fields))

    def load(self) -> None:
        """Do nothing: the parameters are read where they are."""

    def outputs(
        self, seat: int, observations: Mapping[str, np.ndarray], states: np.ndarray = NO_STATES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations; the seat's next call may overwrite them.

        A policy with memory replaces ``states``, (n, h) float32, by those after the observations; others ignore them.
        """
        with torch.inference_mode():
            logits, values = self.module({name: torch.from_numpy(observations[name]) for name in self._inputs})
        return logits.numpy(), values.numpy()

    def gradient(self, seat: int, rows: np.ndarray, scaling: LossScaling, out: np.ndarray, sums: np.ndarray) -> None:
        """Write the gradient of the loss over a part of a minibatch to ``out``, (p,) float32.

        ``rows``, (n,) int64, are the numbers t * N + i of its steps in the rollout. The sums over them of the terms of
        ``UpdateStatistics`` are written to ``sums``, (6,) float64.
        """
        steps = torch.from_numpy(rows)
        observations = {name: buffer[: len(rows)] for name, buffer in self._buffers[seat].items()}
        self._storage.gather(steps, observations)
        fields = LearningFields(*(field[steps] for field in self._fields))
        has_reference = scaling.reference_coef > 0 and len(self._storage.reference) > 0
        reference = torch.from_numpy(self._storage.reference)[steps] if has_reference else None
        loss, terms = module_loss(self.module(observations), observations, fields, scaling, reference)
        torch.from_numpy(out)[:] = flat_gradient(loss, self.module)
        sums[:] = terms.numpy()

    def pass_arrays(self, seat: int) -> None:
        """Return None: no kernel computes its gradient."""

    def memory(self) -> MemoryNode:
        """Return the bytes of observations; activations come on top during an update."""
        buffers = (
            array_group(f"seat {seat}", {name: tensor.numpy() for name, tensor in buffers.items()}, shared=True)
            for seat, buffers in enumerate(self._buffers)
        )
        return MemoryNode("network scratch", children=tuple(buffers))


def module_loss(
    outputs: tuple[Tensor, Tensor],
    observations: Mapping[str, Tensor],
    steps: LearningFields[Tensor],
    scaling: LossScaling,
    reference: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the loss of b steps, differentiable in the parameters, and (6,) float64 sums for ``UpdateStatistics``.

    ``outputs`` are logits (b, a) and values (b,) of the observations, which give the masks. ``reference``, (b, a)
    float32, are the probabilities of a reference policy; None does without it.
    """
    logits, values = outputs
    masks = observations.get("action_mask")
    loss, terms = ppo_loss(*log_probs_and_entropies(logits, steps.actions, masks), values, steps, scaling)
    if reference is not None:
        divergence = divergences(reference, logits, masks).sum()
        loss = loss + divergence * scaling.reference_coef * scaling.share
        terms[REFERENCE_KL] = divergence.detach()
    return loss, terms


def flat_gradient(loss: Tensor, module: nn.Module) -> Tensor:
    """Return the gradient of a loss in all parameters, (p,) float32 in their order."""
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, tuple(module.parameters()))])


def on_vector(policy: ActorCritic, vector: Tensor) -> ActorCritic:
    """Return a copy of a network whose parameters are parts of a vector (p,)."""
    parameters = tuple(policy.parameters())
    parts = vector.split([parameter.numel() for parameter in parameters])
    placed: dict[int, Any] = {
        id(parameter): nn.Parameter(part.view(parameter.shape))
        for parameter, part in zip(parameters, parts, strict=True)
    }
    return copy.deepcopy(policy, placed)


def ppo_loss(
    log_probs: Tensor, entropies: Tensor, values: Tensor, steps: LearningFields[Tensor], scaling: LossScaling
) -> tuple[Tensor, Tensor]:
    """Return the loss of b steps (Schulman et al., 2017) and the sums for the statistics, of which the last is left 0.

    Log probabilities of the stored actions, entropies and values, (b,) each, are those of the current policy.
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


def log_probs_and_entropies(logits: Tensor, actions: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the log probabilities of actions and the entropies, (n,) float32, both differentiable in the logits.

    A masked action has log probability -inf, and the gradient of its logit is exactly 0. The entropy is finite, and 0
    where one action is left. Without a mask nothing is masked.
    """
    log_probs = torch.log_softmax(masked(logits, mask), dim=1)
    finite = _finite(log_probs)
    return log_probs.gather(1, actions[:, None]).squeeze(1), -(log_probs.exp() * finite).sum(dim=1)


def divergences(reference: Tensor, logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return KL(reference || policy), (n,), differentiable in the logits; the reference, (n, a), is 0 where masked."""
    log_probs = torch.log_softmax(masked(logits, mask), dim=1)
    return (torch.xlogy(reference, reference) - reference * _finite(log_probs)).sum(dim=1)


def most_probable(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the most probable action of each row, (n,) int64; arguments and errors as above."""
    return masked(logits.detach(), mask).argmax(dim=1)


def masked(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Return the logits, -inf where masked."""
    if mask is None:
        return logits
    if mask.shape != logits.shape:
        raise ActionError(f"mask: expected shape {tuple(logits.shape)}, as the logits, got {tuple(mask.shape)}")
    return logits.masked_fill(mask == 0, -torch.inf)


def _finite(log_probs: Tensor) -> Tensor:
    """Return log probabilities, 0 where masked: 0 * -inf would make entropies and gradients NaN."""
    return log_probs.masked_fill(log_probs == -torch.inf, 0)
