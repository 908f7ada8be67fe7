"""Element-wise kernels of the hand-written MLP: activations, their derivatives, and the gradient of the PPO loss.

All arrays are float32 unless stated. Kernels write in place and allocate nothing.
"""

from __future__ import annotations

import numpy as np

from nclone_env.jit import copy_bytes, numeric_kernel
from nclone_env.train.sampling import head_distribution

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

# Rational minimax approximation x * P(x^2) / Q(x^2) of tanh on [-limit, limit], highest power first; error < 4e-7.
_TANH_LIMIT = np.float32(7.90531110763549805)
_P6, _P5, _P4 = np.float32(-2.76076847742355e-16), np.float32(2.00018790482477e-13), np.float32(-8.60467152213735e-11)
_P3, _P2, _P1 = np.float32(5.12229709037114e-08), np.float32(1.48572235717979e-05), np.float32(6.37261928875436e-04)
_Q3, _Q2, _Q1 = np.float32(1.19825839466702e-06), np.float32(1.18534705686654e-04), np.float32(2.26843463243900e-03)
_P0, _Q0 = np.float32(4.89352455891786e-03), np.float32(4.89352518554385e-03)

POLICY_LOSS, VALUE_LOSS, ENTROPY, APPROX_KL, CLIP_FRACTION, REFERENCE_KL = range(6)
"""Columns of the sums that :func:`loss_gradient` writes."""


@numeric_kernel
def tanh(x):
    """Return the hyperbolic tangent of a float32."""
    x = min(max(x, -_TANH_LIMIT), _TANH_LIMIT)
    s = x * x
    p = ((((((_P6 * s + _P5) * s + _P4) * s + _P3) * s + _P2) * s + _P1) * s) + _P0
    q = ((_Q3 * s + _Q2) * s + _Q1) * s + _Q0
    return x * p / q


@numeric_kernel
def apply_tanh(z, bias, slope):
    """Replace ``z``, (n, h), by tanh(z + bias); ``slope`` is not used."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = tanh(z[i, j] + bias[j])


@numeric_kernel
def tanh_gradient(delta, output, slope, bias_gradient):
    """Turn the gradient in the outputs of a tanh layer into that in its inputs; sum it over rows for the bias."""
    bias_gradient[:] = _ZERO
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            d = delta[i, j] * (_ONE - output[i, j] * output[i, j])
            delta[i, j] = d
            bias_gradient[j] += d


@numeric_kernel
def apply_relu(z, bias, slope):
    """Replace ``z``, (n, h), by max(z + bias, 0); ``slope`` is not used."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = max(z[i, j] + bias[j], _ZERO)


@numeric_kernel
def relu_gradient(delta, output, slope, bias_gradient):
    """As :func:`tanh_gradient`, of a ReLU layer."""
    bias_gradient[:] = _ZERO
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            d = delta[i, j] if output[i, j] > _ZERO else _ZERO
            delta[i, j] = d
            bias_gradient[j] += d


@numeric_kernel
def apply_silu(z, bias, slope):
    """Replace ``z``, (n, h), by x * sigmoid(x) with x = z + bias; write its derivative to ``slope``, (n, h)."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            x = z[i, j] + bias[j]
            sigmoid = _HALF + _HALF * tanh(_HALF * x)
            z[i, j] = x * sigmoid
            slope[i, j] = sigmoid * (_ONE + x * (_ONE - sigmoid))


@numeric_kernel
def silu_gradient(delta, output, slope, bias_gradient):
    """As :func:`tanh_gradient`, of a SiLU layer."""
    bias_gradient[:] = _ZERO
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            d = delta[i, j] * slope[i, j]
            delta[i, j] = d
            bias_gradient[j] += d


ACTIVATIONS = {
    "tanh": (apply_tanh, tanh_gradient),
    "relu": (apply_relu, relu_gradient),
    "silu": (apply_silu, silu_gradient),
}
"""Name to the kernels of an activation: forward and backward."""


@numeric_kernel
def add_biases(logits, values, logits_bias, value_bias):
    """Add biases (a,) to logits, (n, a), and (1,) to values, (n,)."""
    for i in range(len(values)):
        values[i] += value_bias[0]
        for j in range(logits.shape[1]):
            logits[i, j] += logits_bias[j]


@numeric_kernel
def outer(delta, column, row):
    """Set ``delta``, (n, h), to the product of ``column``, (n,), and ``row``, (h,)."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            delta[i, j] = column[i] * row[j]


@numeric_kernel
def add_outer(delta, column, row):
    """Add the product of ``column``, (n,), and ``row``, (h,), to ``delta``, (n, h)."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            delta[i, j] += column[i] * row[j]


@numeric_kernel
def gather_rows(source, width, rows, target, offset, stride):
    """Copy rows of ``width`` bytes between flat uint8 arrays.

    Args:
        source: row r begins at byte ``r * width``.
        width: bytes of a row.
        rows: (n,) int64, the rows to copy.
        target: the i-th of them goes to byte ``offset + i * stride``.
        offset: first byte of the first row in the target.
        stride: bytes from row to row in the target.
    """
    for i in range(len(rows)):
        copy_bytes(target, offset + i * stride, source, rows[i] * width, width)


@numeric_kernel
def gather_field(source, rows, target):
    """Copy the entries ``rows``, (n,) int64, of an array to ``target``, (n,)."""
    for i in range(len(rows)):
        target[i] = source[rows[i]]


@numeric_kernel
def loss_gradient(
    logits, values, masks, heads,
    actions, old_log_probs, advantages, returns, reference,
    mean, scale, share, clip, value_coef, entropy_coef, reference_coef,
    delta_logits, delta_values, bias_logits, bias_value, sums,
):  # fmt: skip
    """Compute the gradient of the loss of n steps in the logits and values, and sums for the statistics.

    The loss is the mean over the minibatch of the clipped surrogate, ``value_coef`` times half the squared error of the
    values, and minus ``entropy_coef`` times the entropy (Schulman et al., 2017); plus ``reference_coef`` times the KL
    divergence of the policy from the reference distributions, KL(reference || policy). All arguments are arrays and
    numbers: Numba's dispatch of tuples allocates.

    Args:
        logits: (n, a), the heads side by side; overwritten.
        values: (n,).
        masks: (n, a) int8, 0 for each action that is not allowed; or (0, a): all are.
        heads: (k,) int64, actions of each head.
        actions: ``LearningFields`` of the n steps, as the next three.
        old_log_probs: see above.
        advantages: see above.
        returns: see above.
        reference: (n, a), reference probabilities, 0 for each action that is not allowed; or (0, a): none.
        mean: ``LossScaling`` of the minibatch, as the next six.
        scale: see above.
        share: see above.
        clip: see above.
        value_coef: see above.
        entropy_coef: see above.
        reference_coef: see above.
        delta_logits: (n, a), written.
        delta_values: (n,), written.
        bias_logits: (a,), written: gradient in the biases of the logits.
        bias_value: (1,), written: that in the bias of the value.
        sums: (6,) float64, written: sums over the n steps of the statistics.
    """
    sums[:] = 0.0
    bias_logits[:] = _ZERO
    bias_value[0] = _ZERO
    for i in range(len(values)):
        log_prob, entropy = head_distribution(logits, masks, heads, i, actions[i], delta_logits)
        advantage = (advantages[i] - mean) * scale
        log_ratio = log_prob - old_log_probs[i]
        ratio = np.exp(log_ratio)
        surrogate = ratio * advantage
        clipped = min(max(ratio, _ONE - clip), _ONE + clip) * advantage
        slope = -surrogate * share if surrogate <= clipped else _ZERO
        error = values[i] - returns[i]
        delta_values[i] = value_coef * error * share
        bias_value[0] += delta_values[i]
        _logit_gradient(heads, i, actions[i], slope, entropy_coef * share, delta_logits, logits)
        if reference.shape[0] > 0:
            sums[REFERENCE_KL] += _pull(reference, i, logits, masks, reference_coef * share, delta_logits)
        for j in range(logits.shape[1]):
            bias_logits[j] += delta_logits[i, j]
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
def _pull(reference, i, log_probs, masks, weight, delta):
    """Add the gradient of ``weight`` * KL(q || p) in row i of the logits to ``delta``; return the divergence.

    With q the reference probabilities and p those of the policy, the gradient in logit j is p_j - q_j, and 0
    where an action is not allowed: there q is 0 as well, and so is ``log_probs``.
    """
    divergence = _ZERO
    for j in range(log_probs.shape[1]):
        q = reference[i, j]
        if masks.shape[0] == 0 or masks[i, j] != 0:
            delta[i, j] += weight * (np.exp(log_probs[i, j]) - q)
        if q > _ZERO:
            divergence += q * (np.log(q) - log_probs[i, j])
    return divergence
