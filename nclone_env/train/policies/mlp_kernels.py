"""Forward and backward pass of the MLP and its encoders by hand, and the gradient of the PPO loss in its outputs.

All parameters, and all gradients, are one vector, in which a layer is its weight (outputs, inputs) and its bias
(outputs,), one after the other; ``NetworkLayout`` says where each begins. The hidden layers are rectified. All arrays
are float32 unless stated. Kernels write in place and allocate nothing.
"""

import numpy as np

from nclone_env.jit import copy_bytes, numeric_kernel
from nclone_env.jit.products import add_multiply, add_transposed_multiply, multiply, multiply_transposed
from nclone_env.train.policies.arrays import LossScaling, NetworkLayout, Scratch, Steps, StoredSets
from nclone_env.train.policies.encoder_kernels import (
    add_entity_gradients,
    add_grid_gradients,
    encode_entities,
    encode_grids,
    rectify,
)
from nclone_env.train.policies.sampling import action_distribution

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

POLICY_LOSS, VALUE_LOSS, ENTROPY, APPROX_KL, CLIP_FRACTION, REFERENCE_KL = range(6)
"""Entries of the sums of :func:`loss_gradient`."""


@numeric_kernel
def outputs(rows, sets: StoredSets, layout: NetworkLayout, inputs, scratch: Scratch):
    """Compute logits and values of n observations, block by block.

    Args:
        rows: (n,) int64, numbers of the observations among the stored sets.
        inputs: (n, w), vectors in their columns; those of the encoders are written.
        scratch: for at least n rows; the first n of ``logits`` and ``values`` are written.
    """
    hidden = scratch.hidden
    none = layout.parameters[:0].reshape((hidden.shape[0], 0))  # transposed weights do not pay for a few rows
    for first in range(0, len(rows), hidden.shape[2]):
        last = min(first + hidden.shape[2], len(rows))
        block = inputs[first:last]
        _encode(rows[first:last], sets, layout, block, scratch)
        _forward(block, layout, none, hidden, scratch.logits[first:last], scratch.values[first:last])


@numeric_kernel
def gradient(
    rows, seen, sets: StoredSets, steps: Steps, scaling: LossScaling, layout: NetworkLayout, scratch: Scratch,
    gradients, sums,
):  # fmt: skip
    """Compute the gradient of the loss of n stored steps in all parameters, block by block.

    Args:
        rows: (n,) int64, numbers of the steps.
        seen: (n,) int64, numbers of their observations in ``sets`` and among the masks.
        scratch: for at least n rows; the inputs contain the vectors.
        gradients: (p,), written.
        sums: (6,) float64, written: see ``loss_gradient``.
    """
    hidden, transposed = scratch.hidden, scratch.transposed
    gradients[:] = _ZERO
    sums[:] = 0.0
    for tower in range(len(transposed)):
        _transpose_weights(layout.parameters, layout.hidden[tower], hidden.shape[3], transposed[tower])
    for first in range(0, len(rows), hidden.shape[2]):
        last = min(first + hidden.shape[2], len(rows))
        n = last - first
        block, delta_block = scratch.inputs[first:last], scratch.delta_inputs[first:last]
        logits, values = scratch.logits[:n], scratch.values[:n]
        delta_logits, delta_values = scratch.delta_logits[:n], scratch.delta_values[:n]
        _encode(seen[first:last], sets, layout, block, scratch)
        _forward(block, layout, transposed, hidden, logits, values)
        loss_gradient(
            logits, values, rows[first:last], seen[first:last], steps, scaling, delta_logits, delta_values, sums
        )
        _backward(block, layout, hidden, delta_logits, delta_values, scratch.deltas, delta_block, gradients)
        encoders = layout.encoders
        if len(sets.grids) > 0:
            add_grid_gradients(delta_block, block, scratch.cells, encoders[1], encoders[0], gradients)
        if len(sets.kinds) > 0:
            add_entity_gradients(delta_block, scratch.entities, encoders[3], encoders[2], gradients)


@numeric_kernel
def _encode(rows, sets: StoredSets, layout: NetworkLayout, inputs, scratch: Scratch):
    """Write the features of grids and entities to their columns of the inputs (n, w)."""
    parameters, encoders = layout.parameters, layout.encoders
    if len(sets.grids) > 0:
        encode_grids(sets.grids, rows, parameters, encoders[1], encoders[0], scratch.cells, inputs)
    if len(sets.kinds) > 0:
        encode_entities(
            sets.states, sets.kinds, rows, parameters, encoders[3], encoders[2], scratch.entities, inputs
        )  # fmt: skip


@numeric_kernel
def _forward(inputs, layout: NetworkLayout, transposed, hidden, logits, values):
    """Compute logits (n, a) and values (n, 1) of a block, and all that :func:`_backward` needs.

    The weights of the hidden layers are read from ``transposed``, unless its rows are empty.
    """
    n, towers, top = len(inputs), hidden.shape[0], hidden.shape[1] - 1
    for tower in range(towers):
        seen, begin = inputs, 0
        for number in range(top + 1):
            out = hidden[tower, number, :n]
            size = seen.shape[1] * out.shape[1]
            weights = transposed[tower, begin : begin + size]
            _hidden_layer(seen, layout.parameters, layout.hidden[tower, number], weights, out)
            seen, begin = out, begin + size
    _output_layer(hidden[0, top, :n], layout.parameters, layout.outputs[0], logits)
    _output_layer(hidden[towers - 1, top, :n], layout.parameters, layout.outputs[1], values)


@numeric_kernel
def _backward(inputs, layout: NetworkLayout, hidden, delta_logits, delta_values, deltas, delta_inputs, gradients):
    """Add the gradients of towers and output layers, given those in the logits, (n, a), and the values, (n, 1).

    Those in the inputs are written to ``delta_inputs``, unless it has no rows.
    """
    n, towers, top = len(inputs), hidden.shape[0], hidden.shape[1] - 1
    parameters, of_logits, of_value = layout.parameters, layout.outputs[0], layout.outputs[1]
    _layer_gradient(delta_logits, hidden[0, top, :n], of_logits, gradients)
    _layer_gradient(delta_values, hidden[towers - 1, top, :n], of_value, gradients)
    for tower in range(towers):
        delta = deltas[0, :n]
        if tower == 0:
            _input_gradient(delta_logits, parameters, of_logits, delta)
        if tower == 0 and towers == 1:
            _add_input_gradient(delta_values, parameters, of_value, delta)
        if tower == 1:
            _input_gradient(delta_values, parameters, of_value, delta)
        for number in range(top, 0, -1):
            start, seen = layout.hidden[tower, number], hidden[tower, number - 1, :n]
            below = deltas[1 - (top - number) % 2, :n]
            _cut(delta, hidden[tower, number, :n])
            _layer_gradient(delta, seen, start, gradients)
            _input_gradient(delta, parameters, start, below)
            delta = below
        start, units = layout.hidden[tower, 0], hidden.shape[3]
        _cut(delta, hidden[tower, 0, :n])
        _layer_gradient(delta, inputs, start, gradients)
        if len(delta_inputs) > 0:
            weight = parameters[start : start + units * inputs.shape[1]].reshape((units, inputs.shape[1]))
            if tower == 0:
                multiply(delta, weight, delta_inputs)
            else:
                add_multiply(delta, weight, delta_inputs)


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
def _transpose_weights(parameters, starts, units, transposed):
    """Write the transposed weights of the hidden layers of a tower, one after the other, to ``transposed``."""
    begin, width = 0, len(transposed) // units - (len(starts) - 1) * units
    for number in range(len(starts)):
        layer = transposed[begin : begin + width * units].reshape((width, units))
        for i in range(units):
            for j in range(width):
                layer[j, i] = parameters[starts[number] + i * width + j]
        begin, width = begin + width * units, units


@numeric_kernel
def _hidden_layer(inputs, parameters, start, transposed, outputs):
    """Compute the outputs (n, h) of a hidden layer."""
    width, inputs_width = outputs.shape[1], inputs.shape[1]
    size = width * inputs_width
    if len(transposed) > 0:
        multiply(inputs, transposed.reshape((inputs_width, width)), outputs)
    else:
        multiply_transposed(inputs, parameters[start : start + size].reshape((width, inputs_width)), outputs)
    rectify(outputs, parameters[start + size : start + size + width])


@numeric_kernel
def _output_layer(inputs, parameters, start, outputs):
    """Compute the outputs (n, a) of an output layer."""
    count, size = outputs.shape[1], outputs.shape[1] * inputs.shape[1]
    multiply_transposed(inputs, parameters[start : start + size].reshape((count, inputs.shape[1])), outputs)
    bias = parameters[start + size : start + size + count]
    for i in range(outputs.shape[0]):
        for j in range(count):
            outputs[i, j] += bias[j]


@numeric_kernel
def _layer_gradient(delta, inputs, start, gradients):
    """Add the gradients of a layer's weight and bias, given that in its outputs before the cut, (n, m)."""
    count, size = delta.shape[1], delta.shape[1] * inputs.shape[1]
    add_transposed_multiply(delta, inputs, gradients[start : start + size].reshape((count, inputs.shape[1])))
    bias = gradients[start + size : start + size + count]
    for i in range(delta.shape[0]):
        for j in range(count):
            bias[j] += delta[i, j]


@numeric_kernel
def _input_gradient(delta, parameters, start, out):
    """Write the gradient in the inputs (n, h) of a layer, given that in its outputs before the cut, (n, m)."""
    count, width = delta.shape[1], out.shape[1]
    multiply(delta, parameters[start : start + count * width].reshape((count, width)), out)


@numeric_kernel
def _add_input_gradient(delta, parameters, start, out):
    """Add the gradient in the inputs (n, h) of a layer with a single output, given that in the output, (n, 1)."""
    weight = parameters[start : start + out.shape[1]]
    for i in range(out.shape[0]):
        row, slope = out[i], delta[i, 0]  # by rows the loop is vectorised
        for j in range(len(weight)):
            row[j] += slope * weight[j]


@numeric_kernel
def _cut(delta, outputs):
    """Turn the gradient in the outputs (n, h) of a hidden layer into that before negative ones were cut off."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            delta[i, j] = delta[i, j] if outputs[i, j] > _ZERO else _ZERO


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
