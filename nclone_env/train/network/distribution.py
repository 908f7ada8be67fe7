"""The distribution of actions through torch: a softmax over the logits (n, a), restricted by a mask.

A mask, (n, a) of any integer dtype or bool, is 0 for each action that is not allowed. Every row must leave one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nclone_env.errors import ActionError


def log_probs_and_entropies(logits: Tensor, actions: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the log probabilities of actions and the entropies, both differentiable in the logits.

    A masked action has log probability -inf, and the gradient of its logit is exactly 0. The entropy is finite, and 0
    where one action is left.

    Args:
        logits: (n, a) float32.
        actions: (n,) int64.
        mask: see above; None masks nothing.

    Returns:
        log probabilities (n,) and entropies (n,), float32.

    Raises:
        ActionError: if the mask has another shape.
    """
    log_probs = torch.log_softmax(_masked(logits, mask), dim=1)
    finite = _finite(log_probs)
    return log_probs.gather(1, actions[:, None]).squeeze(1), -(log_probs.exp() * finite).sum(dim=1)


def divergences(reference: Tensor, logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return KL(reference || policy) of each row, (n,), differentiable in the logits.

    Args:
        reference: (n, a) probabilities, 0 where masked.
        logits: (n, a) float32.
        mask: see above; None masks nothing.

    Raises:
        ActionError: if the mask has another shape.
    """
    log_probs = torch.log_softmax(_masked(logits, mask), dim=1)
    return (torch.xlogy(reference, reference) - reference * _finite(log_probs)).sum(dim=1)


def most_probable(logits: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the most probable action of each row, (n,) int64; arguments and errors as above."""
    return _masked(logits.detach(), mask).argmax(dim=1)


def _masked(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Return the logits, -inf where masked."""
    if mask is None:
        return logits
    if mask.shape != logits.shape:
        raise ActionError(f"mask: expected shape {tuple(logits.shape)}, as the logits, got {tuple(mask.shape)}")
    return logits.masked_fill(mask == 0, -torch.inf)


def _finite(log_probs: Tensor) -> Tensor:
    """Return log probabilities, 0 where masked: 0 * -inf would make entropies and gradients NaN."""
    return log_probs.masked_fill(log_probs == -torch.inf, 0)
