"""The gradient of the PPO loss in the outputs of a network.

All arrays are float32 unless stated. Kernels write in place and allocate nothing.
"""

from __future__ import annotations

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.train.network.sampling import action_distribution

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

POLICY_LOSS, VALUE_LOSS, ENTROPY, APPROX_KL, CLIP_FRACTION, REFERENCE_KL = range(6)
"""Entries of the sums of :func:`loss_gradient`."""


@numeric_kernel
def loss_gradient(logits, values, rows, seen, steps, scaling, delta_logits, delta_values, sums):
    """Compute the gradient of the loss of n stored steps in the logits and values, and sums for the statistics.

    The loss is the mean over the minibatch of the clipped surrogate, ``value_coef`` times half the squared error of the
    values, and minus ``entropy_coef`` times the entropy (Schulman et al., 2017); plus ``reference_coef`` times the KL
    divergence of the policy from the reference distributions, KL(reference || policy).

    Args:
        logits: (n, a), overwritten.
        values: (n, 1).
        rows: (n,) int64, numbers of the steps.
        seen: (n,) int64, numbers of their observations: the rows of the masks.
        steps: ``Steps``, all stored ones.
        scaling: ``LossScaling`` of the minibatch.
        delta_logits: (n, a), written.
        delta_values: (n, 1), written.
        sums: (6,) float64; the sums over the n steps of the statistics are added.
    """
    fields, clip = steps.fields, scaling.clip_coef
    pulled = steps.reference.shape[0] > 0 and scaling.reference_coef != _ZERO
    for i in range(len(rows)):
        row = rows[i]
        action = fields.actions[row]
        entropy = action_distribution(logits, i, steps.masks, seen[i], delta_logits)
        advantage = (fields.advantages[row] - scaling.mean) * scaling.scale
        log_ratio = logits[i, action] - fields.log_probs[row]
        ratio = np.exp(log_ratio)
        surrogate = ratio * advantage
        clipped = min(max(ratio, _ONE - clip), _ONE + clip) * advantage
        slope = -surrogate * scaling.share if surrogate <= clipped else _ZERO
        error = values[i, 0] - fields.returns[row]
        delta_values[i, 0] = scaling.value_coef * error * scaling.share
        _logit_gradient(i, action, slope, scaling.entropy_coef * scaling.share, delta_logits, logits)
        if pulled:
            weight = scaling.reference_coef * scaling.share
            sums[REFERENCE_KL] += _pull(steps.reference[row], steps.masks, seen[i], logits, i, weight, delta_logits)
        sums[POLICY_LOSS] -= min(surrogate, clipped)
        sums[VALUE_LOSS] += _HALF * error * error
        sums[ENTROPY] += entropy
        sums[APPROX_KL] += ratio - _ONE - log_ratio
        sums[CLIP_FRACTION] += 1.0 if abs(ratio - _ONE) > clip else 0.0


@numeric_kernel
def _logit_gradient(i, action, slope, entropy_weight, probabilities, log_probs):
    """Replace row i of ``probabilities`` by the gradient in the logits.

    With p the probabilities, H their entropy and a the action taken, the gradient of the log probability of a in logit
    j is [j = a] - p_j, and that of H is -p_j (log p_j + H).
    """
    count, entropy = probabilities.shape[1], _ZERO
    for j in range(count):
        entropy -= probabilities[i, j] * log_probs[i, j]
    for j in range(count):
        p = probabilities[i, j]
        gradient = entropy_weight * p * (log_probs[i, j] + entropy) - slope * p
        probabilities[i, j] = gradient + slope if j == action else gradient


@numeric_kernel
def _pull(reference, masks, seen, log_probs, i, weight, delta):
    """Add the gradient of ``weight`` * KL(q || p) in row i of the logits to ``delta``; return the divergence.

    With q the reference probabilities and p those of the policy, the gradient in logit j is p_j - q_j, and 0
    where an action is not allowed: there q is 0 as well, and so is ``log_probs``.
    """
    divergence = _ZERO
    for j in range(log_probs.shape[1]):
        q = reference[j]
        if masks.shape[0] == 0 or masks[seen, j] != 0:
            delta[i, j] += weight * (np.exp(log_probs[i, j]) - q)
        if q > _ZERO:
            divergence += q * (np.log(q) - log_probs[i, j])
    return divergence
