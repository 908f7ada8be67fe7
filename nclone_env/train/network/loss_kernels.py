"""The gradient of the PPO loss in the outputs of a network.

All arrays are float32 unless stated. Kernels write in place and allocate nothing.
"""

from __future__ import annotations

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.train.network.sampling import head_distribution

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

POLICY_LOSS, VALUE_LOSS, ENTROPY, APPROX_KL, CLIP_FRACTION, REFERENCE_KL = range(6)
"""Entries of the sums of :func:`loss_gradient`."""


@numeric_kernel
def loss_gradient(
    logits, values, heads,
    rows, seen, actions, old_log_probs, advantages, returns, masks, reference,
    mean, scale, share, clip, value_coef, entropy_coef, reference_coef,
    delta_logits, delta_values, sums,
):  # fmt: skip
    """Compute the gradient of the loss of n of s stored steps in the logits and values, and sums for the statistics.

    The loss is the mean over the minibatch of the clipped surrogate, ``value_coef`` times half the squared error of the
    values, and minus ``entropy_coef`` times the entropy (Schulman et al., 2017); plus ``reference_coef`` times the KL
    divergence of the policy from the reference distributions, KL(reference || policy). All arguments are arrays and
    numbers: Numba's dispatch of tuples allocates.

    Args:
        logits: (n, a), the heads side by side; overwritten.
        values: (n, 1).
        heads: (k,) int64, actions of each head.
        rows: (n,) int64, numbers of the steps.
        seen: (n,) int64, numbers of their observations: the rows of the masks.
        actions: ``LearningFields`` of all steps, (s,) each, as the next three.
        old_log_probs: see above.
        advantages: see above.
        returns: see above.
        masks: (o, a) int8, 0 for each action that is not allowed; or (0, a): all are.
        reference: (s, a), reference probabilities, 0 for each action that is not allowed; or (0, a): none.
        mean: ``LossScaling`` of the minibatch, as the next six.
        scale: see above.
        share: see above.
        clip: see above.
        value_coef: see above.
        entropy_coef: see above.
        reference_coef: see above; 0: the reference is not used.
        delta_logits: (n, a), written.
        delta_values: (n, 1), written.
        sums: (6,) float64; the sums over the n steps of the statistics are added.
    """
    pulled = reference.shape[0] > 0 and reference_coef != _ZERO
    for i in range(len(rows)):
        row = rows[i]
        log_prob, entropy = head_distribution(logits, i, masks, seen[i], heads, actions[row], delta_logits)
        advantage = (advantages[row] - mean) * scale
        log_ratio = log_prob - old_log_probs[row]
        ratio = np.exp(log_ratio)
        surrogate = ratio * advantage
        clipped = min(max(ratio, _ONE - clip), _ONE + clip) * advantage
        slope = -surrogate * share if surrogate <= clipped else _ZERO
        error = values[i, 0] - returns[row]
        delta_values[i, 0] = value_coef * error * share
        _logit_gradient(heads, i, actions[row], slope, entropy_coef * share, delta_logits, logits)
        if pulled:
            sums[REFERENCE_KL] += _pull(reference[row], masks, seen[i], logits, i, reference_coef * share, delta_logits)
        sums[POLICY_LOSS] -= min(surrogate, clipped)
        sums[VALUE_LOSS] += _HALF * error * error
        sums[ENTROPY] += entropy
        sums[APPROX_KL] += ratio - _ONE - log_ratio
        sums[CLIP_FRACTION] += 1.0 if abs(ratio - _ONE) > clip else 0.0


@numeric_kernel
def _logit_gradient(heads, i, action, slope, entropy_weight, probabilities, log_probs):
    """Replace row i of ``probabilities`` by the gradient in the logits.

    With p the probabilities of a head, H its entropy and a the action taken, the gradient of the log probability of a
    in logit j is [j = a] - p_j, and that of H is -p_j (log p_j + H).
    """
    offset = 0
    code = action
    for k in range(len(heads)):
        chosen = code % heads[k]
        code //= heads[k]
        entropy = _ZERO
        for j in range(offset, offset + heads[k]):
            entropy -= probabilities[i, j] * log_probs[i, j]
        for j in range(offset, offset + heads[k]):
            p = probabilities[i, j]
            gradient = entropy_weight * p * (log_probs[i, j] + entropy) - slope * p
            probabilities[i, j] = gradient + slope if j == offset + chosen else gradient
        offset += heads[k]


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
