"""The distribution of actions: a softmax over the logits of each head, restricted by the action mask.

Logits of the heads stand side by side, (n, sum(heads)): (6,) is one head for all actions, (3, 2) are separate ones of
direction and jump. A mask has one of two shapes:

- (n, prod(heads)), a joint mask: 0 for each combination that is masked, the first head varying fastest. This is
  ``action_mask``, which has shape (6,) in both action spaces: element ``direction + 3 * jump``. The heads are then no
  longer independent: the distribution is the softmax of the sums of their logits over the remaining combinations.
- (n, sum(heads)): 0 for each masked choice of each head; the heads stay independent.

With one head both are the same; where sum and product of several heads are equal, as for (2, 2), the mask is joint.
Every row must leave at least one action. Masks have any integer dtype, or bool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from nclone_env.errors import ActionError


def log_probs_and_entropies(
    logits: Tensor, actions: Tensor, heads: Sequence[int], mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the log probabilities of actions and the entropies, both differentiable in the logits.

    A masked action has log probability -inf, and the gradient of its logit is exactly 0. The entropy is finite, and 0
    where one action is left.

    Args:
        logits: (n, sum(heads)) float32.
        actions: (n, len(heads)) int64, the choice of each head.
        heads: number of choices of each head.
        mask: a joint mask or one for each head, see above; None masks nothing.

    Returns:
        log probabilities (n,) and entropies (n,), float32.

    Raises:
        ActionError: if the mask has another shape.
    """
    parts = _independent(logits, heads, mask)
    choices = joined(actions, heads)[:, None] if len(parts) < len(heads) else actions
    log_probs, entropies = zip(
        *(_categorical(part, choices[:, [index]]) for index, part in enumerate(parts)), strict=True
    )
    return sum(log_probs[1:], log_probs[0]), sum(entropies[1:], entropies[0])


def divergences(reference: Tensor, logits: Tensor, heads: Sequence[int], mask: Tensor | None = None) -> Tensor:
    """Return KL(reference || policy) of each row, (n,), summed over independent choices; differentiable in the logits.

    Args:
        reference: probabilities of all choices side by side, 0 where masked: (n, sum(heads)), or of the combinations if
            the mask is joint.
        logits: (n, sum(heads)) float32.
        heads: number of choices of each head.
        mask: a joint mask or one for each head, see above; None masks nothing.

    Raises:
        ActionError: if the mask has another shape.
    """
    parts = _independent(logits, heads, mask)
    log_probs = torch.cat([torch.log_softmax(part, dim=1) for part in parts], dim=1)
    known = log_probs.masked_fill(log_probs == -torch.inf, 0)  # 0 * -inf would make gradients NaN
    return (torch.xlogy(reference, reference) - reference * known).sum(dim=1)


def most_probable(logits: Tensor, heads: Sequence[int], mask: Tensor | None = None) -> Tensor:
    """Return the most probable action of each row, (n, len(heads)) int64.

    Args:
        logits: (n, sum(heads)) float32.
        heads: number of choices of each head.
        mask: a joint mask or one for each head, see above; None masks nothing.

    Raises:
        ActionError: if the mask has another shape.
    """
    return _chosen([part.argmax(dim=1) for part in _independent(logits.detach(), heads, mask)], heads)


def joined(choices: Tensor, heads: Sequence[int]) -> Tensor:
    """Return the numbers (n,) of the combinations of choices (n, len(heads)), the first head varying fastest."""
    number = choices[:, -1]
    for index in reversed(range(len(heads) - 1)):
        number = number * heads[index] + choices[:, index]
    return number


def separated(numbers: Tensor, heads: Sequence[int]) -> Tensor:
    """Return the choices (n, len(heads)) of combinations (n,): the inverse of :func:`joined`."""
    columns, rest = [], numbers
    for count in heads:
        columns.append(rest % count)
        rest = rest // count
    return torch.stack(columns, dim=1)


def _independent(logits: Tensor, heads: Sequence[int], mask: Tensor | None) -> Sequence[Tensor]:
    """Return the logits of each independent choice, -inf where masked: one of each head, or one for all together."""
    if mask is None:
        return logits.split(list(heads), dim=1)
    n = len(logits)
    if mask.shape == (n, math.prod(heads)):
        joint = reduce(lambda fast, slow: (slow[:, :, None] + fast[:, None]).flatten(1), logits.split(list(heads), 1))
        return (joint.masked_fill(mask == 0, -torch.inf),)
    if mask.shape == (n, sum(heads)):
        return logits.masked_fill(mask == 0, -torch.inf).split(list(heads), dim=1)
    raise ActionError(
        f"mask: expected shape {(n, math.prod(heads))} for the combinations or {(n, sum(heads))} for the choices of "
        f"heads {tuple(heads)}, got {tuple(mask.shape)}"
    )


def _categorical(logits: Tensor, choices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log probabilities (n,) of choices (n, 1) and the entropies (n,) of softmax distributions."""
    log_probs = torch.log_softmax(logits, dim=1)
    finite = log_probs.masked_fill(logits == -torch.inf, 0)  # 0 * -inf would make entropy and gradient NaN
    return log_probs.gather(1, choices).squeeze(1), -(log_probs.exp() * finite).sum(dim=1)


def _chosen(choices: Sequence[Tensor], heads: Sequence[int]) -> Tensor:
    """Return choices (n, len(heads)) from those of each head, or from the number of the combination."""
    return torch.stack(list(choices), dim=1) if len(choices) == len(heads) else separated(choices[0], heads)
