"""Forward and backward pass of the MLP and its encoders by hand.

All parameters, and all gradients, are one vector. In it the two hidden layers of a tower are weight (h, w), bias (h,),
weight (h, h), bias (h,), one after the other, and an output layer is weight (a, h), bias (a,). ``starts``, (4,) int64,
says where the tower of the actor begins, that of the critic (or the same again, if they share it), the output layer of
the logits, and that of the value. ``encoders``, (4,) int64, are column and start of the encoder of ``locals`` and of
that of the entities (``train.network.encoder_kernels``); without one of them its stored observations have 0 rows.

All arrays are float32 unless stated. Kernels write in place and allocate nothing.
"""

from __future__ import annotations

import numpy as np

from nclone_env.jit import copy_bytes, numeric_kernel
from nclone_env.jit.products import add_multiply, add_transposed_multiply, multiply, multiply_transposed
from nclone_env.train.network.encoder_kernels import (
    add_entity_gradients,
    add_grid_gradients,
    encode_entities,
    encode_grids,
)
from nclone_env.train.network.loss_kernels import loss_gradient

_ZERO, _HALF, _ONE = np.float32(0), np.float32(0.5), np.float32(1)

# Rational minimax approximation x * P(x^2) / Q(x^2) of tanh on [-limit, limit], highest power first; error < 4e-7.
_TANH_LIMIT = np.float32(7.90531110763549805)
_P6, _P5, _P4 = np.float32(-2.76076847742355e-16), np.float32(2.00018790482477e-13), np.float32(-8.60467152213735e-11)
_P3, _P2, _P1 = np.float32(5.12229709037114e-08), np.float32(1.48572235717979e-05), np.float32(6.37261928875436e-04)
_Q3, _Q2, _Q1 = np.float32(1.19825839466702e-06), np.float32(1.18534705686654e-04), np.float32(2.26843463243900e-03)
_P0, _Q0 = np.float32(4.89352455891786e-03), np.float32(4.89352518554385e-03)

TANH, RELU, SILU = range(3)
ACTIVATIONS = {"tanh": TANH, "relu": RELU, "silu": SILU}
"""Name to number of an activation."""


@numeric_kernel
def tanh(x):
    """Return the hyperbolic tangent of a float32."""
    x = min(max(x, -_TANH_LIMIT), _TANH_LIMIT)
    s = x * x
    p = ((((((_P6 * s + _P5) * s + _P4) * s + _P3) * s + _P2) * s + _P1) * s) + _P0
    q = ((_Q3 * s + _Q2) * s + _Q1) * s + _Q0
    return x * p / q


@numeric_kernel
def outputs(  # noqa: D417
    rows, grids, states, kinds,
    parameters, starts, encoders, activation,
    inputs, hidden, slopes, cells, firsts, used_states, used_kinds, entity_hidden, chosen, logits, values,
):  # fmt: skip
    """Compute logits and values of n observations, block by block.

    All arguments are arrays and numbers: Numba's dispatch of tuples allocates. Those from ``grids`` to ``kinds`` and
    from ``cells`` to ``chosen`` are described in ``train.network.encoder_kernels``.

    Args:
        rows: (n,) int64, numbers of the observations among the stored grids and entities.
        parameters: (p,).
        starts: see above.
        encoders: see above.
        activation: number of the activation.
        inputs: (n, w), vectors in their columns; those of the encoders are written.
        hidden: (t, 2, r, h) for blocks of r rows, scratch: outputs of the hidden layers of t towers.
        slopes: (t, 2, r, h), scratch if the activation is SiLU: its derivatives; else (t, 2, 0, h).
        logits: (m, a) with m >= n, the first n rows are written.
        values: (m, 1), the first n rows are written.
    """
    none = parameters[:0].reshape((hidden.shape[0], 0))  # transposed weights do not pay for a few rows
    for first in range(0, len(rows), hidden.shape[2]):
        last = min(first + hidden.shape[2], len(rows))
        block = inputs[first:last]
        _encode(
            rows[first:last], grids, states, kinds, parameters, encoders,
            block, cells, firsts, used_states, used_kinds, entity_hidden, chosen,
        )  # fmt: skip
        _forward(block, parameters, none, starts, activation, hidden, slopes, logits[first:last], values[first:last])


@numeric_kernel
def gradient(  # noqa: D417
    rows, seen, actions, old_log_probs, advantages, returns, masks, reference,
    mean, scale, share, clip, value_coef, entropy_coef, reference_coef,
    grids, states, kinds, heads, parameters, starts, encoders, activation,
    inputs, hidden, slopes, cells, firsts, used_states, used_kinds, entity_hidden, chosen, logits, values,
    delta_logits, delta_values, deltas, delta_inputs, transposed, gradients, sums,
):  # fmt: skip
    """Compute the gradient of the loss of n stored steps in all parameters, block by block.

    The first fifteen arguments are those of ``loss_gradient``; the others that are not described here are those of
    :func:`outputs`, for the observations ``seen``.

    Args:
        heads: (k,) int64, actions of each head.
        delta_logits: (r, a), scratch.
        delta_values: (r, 1), scratch.
        deltas: (2, r, h), scratch.
        delta_inputs: (m, w), written: gradients in the inputs; (0, w) without encoders.
        transposed: (t, h * (w + h)), scratch: transposed weights of the hidden layers, as BLAS multiplies them fastest.
        gradients: (p,), written.
        sums: (6,) float64, written: see ``loss_gradient``.
    """
    gradients[:] = _ZERO
    sums[:] = 0.0
    for tower in range(len(transposed)):
        _transpose_weights(parameters, starts[tower], inputs.shape[1], hidden.shape[3], transposed[tower])
    for first in range(0, len(rows), hidden.shape[2]):
        last = min(first + hidden.shape[2], len(rows))
        n = last - first
        block, delta_block = inputs[first:last], delta_inputs[first:last]
        _encode(
            seen[first:last], grids, states, kinds, parameters, encoders,
            block, cells, firsts, used_states, used_kinds, entity_hidden, chosen,
        )  # fmt: skip
        _forward(block, parameters, transposed, starts, activation, hidden, slopes, logits[:n], values[:n])
        loss_gradient(
            logits[:n], values[:n], heads,
            rows[first:last], seen[first:last], actions, old_log_probs, advantages, returns, masks, reference,
            mean, scale, share, clip, value_coef, entropy_coef, reference_coef,
            delta_logits[:n], delta_values[:n], sums,
        )  # fmt: skip
        _backward(
            block, parameters, starts, activation, hidden, slopes,
            delta_logits[:n], delta_values[:n], deltas, delta_block, gradients,
        )  # fmt: skip
        if len(grids) > 0:
            add_grid_gradients(delta_block, block, cells, encoders[1], encoders[0], gradients)
        if len(kinds) > 0:
            add_entity_gradients(
                delta_block, firsts, used_states, used_kinds, entity_hidden, chosen,
                encoders[3], encoders[2], gradients,
            )  # fmt: skip


@numeric_kernel
def _encode(
    rows, grids, states, kinds, parameters, encoders,
    inputs, cells, firsts, used_states, used_kinds, entity_hidden, chosen,
):  # fmt: skip
    """Write the features of grids and entities to their columns of the inputs (n, w)."""
    if len(grids) > 0:
        encode_grids(grids, rows, parameters, encoders[1], encoders[0], cells, inputs)
    if len(kinds) > 0:
        encode_entities(
            states, kinds, rows, parameters, encoders[3], encoders[2],
            firsts, used_states, used_kinds, entity_hidden, chosen, inputs,
        )  # fmt: skip


@numeric_kernel
def _forward(inputs, parameters, transposed, starts, activation, hidden, slopes, logits, values):
    """Compute logits (n, a) and values (n, 1) of a block, and all that :func:`_backward` needs.

    The weights of the hidden layers are read from ``transposed``, unless its rows are empty.
    """
    n, last = len(inputs), hidden.shape[0] - 1
    size = inputs.shape[1] * hidden.shape[3]
    for tower in range(hidden.shape[0]):
        inner, outer, weights = hidden[tower, 0, :n], hidden[tower, 1, :n], transposed[tower]
        second = _layer(inputs, parameters, starts[tower], weights[:size], activation, inner, slopes[tower, 0, :n])
        _layer(inner, parameters, second, weights[size:], activation, outer, slopes[tower, 1, :n])
    _output_layer(hidden[0, 1, :n], parameters, starts[2], logits)
    _output_layer(hidden[last, 1, :n], parameters, starts[3], values)


@numeric_kernel
def _backward(
    inputs, parameters, starts, activation, hidden, slopes,
    delta_logits, delta_values, deltas, delta_inputs, gradients,
):  # fmt: skip
    """Add the gradients of towers and output layers, given those in the logits, (n, a), and the values, (n, 1).

    Those in the inputs are written to ``delta_inputs``, unless it has no rows.
    """
    n, last = len(inputs), hidden.shape[0] - 1
    outer, inner = deltas[0, :n], deltas[1, :n]
    _layer_gradient(delta_logits, hidden[0, 1, :n], starts[2], gradients)
    _layer_gradient(delta_values, hidden[last, 1, :n], starts[3], gradients)
    for tower in range(hidden.shape[0]):
        if tower == 0:
            _input_gradient(delta_logits, parameters, starts[2], outer)
        if tower == 0 and last == 0:
            _add_input_gradient(delta_values, parameters, starts[3], outer)
        if tower == 1:
            _input_gradient(delta_values, parameters, starts[3], outer)
        second = starts[tower] + hidden.shape[3] * (inputs.shape[1] + 1)
        _activation_gradient(outer, hidden[tower, 1, :n], slopes[tower, 1, :n], activation)
        _layer_gradient(outer, hidden[tower, 0, :n], second, gradients)
        _input_gradient(outer, parameters, second, inner)
        _activation_gradient(inner, hidden[tower, 0, :n], slopes[tower, 0, :n], activation)
        _layer_gradient(inner, inputs, starts[tower], gradients)
        if len(delta_inputs) > 0:
            weight = parameters[starts[tower] : second - hidden.shape[3]].reshape((hidden.shape[3], inputs.shape[1]))
            if tower == 0:
                multiply(inner, weight, delta_inputs)
            else:
                add_multiply(inner, weight, delta_inputs)


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
def _transpose_weights(parameters, start, width, units, transposed):
    """Write the transposed weights of both hidden layers of a tower, one after the other, to ``transposed``."""
    first = transposed[: width * units].reshape((width, units))
    for i in range(units):
        for j in range(width):
            first[j, i] = parameters[start + i * width + j]
    second, start = transposed[width * units :].reshape((units, units)), start + units * (width + 1)
    for i in range(units):
        for j in range(units):
            second[j, i] = parameters[start + i * units + j]


@numeric_kernel
def _layer(inputs, parameters, start, transposed, activation, outputs, slopes):
    """Compute the outputs (n, h) of a hidden layer, and its slopes; return where the parameters of the next begin."""
    width, inputs_width = outputs.shape[1], inputs.shape[1]
    size = width * inputs_width
    if len(transposed) > 0:
        multiply(inputs, transposed.reshape((inputs_width, width)), outputs)
    else:
        multiply_transposed(inputs, parameters[start : start + size].reshape((width, inputs_width)), outputs)
    bias = parameters[start + size : start + size + width]
    if activation == TANH:
        for i in range(outputs.shape[0]):
            for j in range(outputs.shape[1]):
                outputs[i, j] = tanh(outputs[i, j] + bias[j])
    elif activation == RELU:
        for i in range(outputs.shape[0]):
            for j in range(outputs.shape[1]):
                outputs[i, j] = max(outputs[i, j] + bias[j], _ZERO)
    else:
        for i in range(outputs.shape[0]):
            for j in range(outputs.shape[1]):
                x = outputs[i, j] + bias[j]
                sigmoid = _HALF + _HALF * tanh(_HALF * x)
                outputs[i, j] = x * sigmoid
                slopes[i, j] = sigmoid * (_ONE + x * (_ONE - sigmoid))
    return start + size + width


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
    """Add the gradients of a layer's weight and bias, given that in its outputs before the activation, (n, m)."""
    count, size = delta.shape[1], delta.shape[1] * inputs.shape[1]
    add_transposed_multiply(delta, inputs, gradients[start : start + size].reshape((count, inputs.shape[1])))
    bias = gradients[start + size : start + size + count]
    for i in range(delta.shape[0]):
        for j in range(count):
            bias[j] += delta[i, j]


@numeric_kernel
def _input_gradient(delta, parameters, start, out):
    """Write the gradient in the inputs (n, h) of a layer, given that in its outputs before the activation, (n, m)."""
    count, width = delta.shape[1], out.shape[1]
    multiply(delta, parameters[start : start + count * width].reshape((count, width)), out)


@numeric_kernel
def _add_input_gradient(delta, parameters, start, out):
    """Add the gradient in the inputs (n, h) of a layer with a single output, (n, 1)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += delta[i, 0] * parameters[start + j]


@numeric_kernel
def _activation_gradient(delta, outputs, slopes, activation):
    """Turn the gradient in the outputs (n, h) of an activation into that in its inputs."""
    if activation == TANH:
        for i in range(delta.shape[0]):
            for j in range(delta.shape[1]):
                delta[i, j] *= _ONE - outputs[i, j] * outputs[i, j]
    elif activation == RELU:
        for i in range(delta.shape[0]):
            for j in range(delta.shape[1]):
                delta[i, j] = delta[i, j] if outputs[i, j] > _ZERO else _ZERO
    else:
        for i in range(delta.shape[0]):
            for j in range(delta.shape[1]):
                delta[i, j] *= slopes[i, j]
