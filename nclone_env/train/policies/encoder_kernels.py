"""Encoders of ``locals``, of sets of entities and of pictures by hand, for a block of observations.

The modules of ``train.policies.network`` define what is computed. Their features lie in columns of the inputs of the
MLP, (n, w), from ``column`` on; their parameters lie in the vector of all parameters, (p,), those of grids and sets
from ``start`` on, one after the other in the order of the module. All arrays are float32 unless stated. Kernels write
in place and allocate nothing.

The encoder of pictures is the same layer over every patch of 8 x 8 pixels, then the same layer over every square of
2 x 2 places, perhaps several times, then a layer over all places that are left. The patches lie in the order that puts
the four of a square beside each other, and squares likewise, so every layer reads its inputs where the layer before
wrote its outputs.

The layers over places are computed for a few pictures at a time, whose patches stay in the second level of the cache,
the last layer for all pictures. The gradient reads the patches from the bytes again: to keep them would take four times
the memory of the pictures.

The table of layers, (l, 6) int64, has a row for each: outputs are (places, units) of each picture, inputs are (places,
width); weight and bias begin there in ``parameters``; and the layers below have so many outputs of each picture.
"""

import numpy as np

from nclone_env.jit import copy_bytes, numeric_kernel
from nclone_env.jit.products import add_transposed_multiply, multiply, multiply_transposed
from nclone_env.train.policies.arrays import EntityScratch, PictureLayout, PictureScratch

_ZERO, _ONE = np.float32(0), np.float32(1)
_SHARE = np.float32(1 / 255)
_PLACES, _UNITS, _WIDTH, _WEIGHT, _BIAS, _BELOW = range(6)

GRID_FEATURES = 64
"""Features of a grid."""
ENTITY_UNITS = 64
"""Units of the layer over each entity; a set has the maximum and the mean of each, and its size, as features."""
PATCH = 8
"""Side of a patch in pixels."""


@numeric_kernel
def encode_grids(grids, rows, parameters, start, column, cells, inputs):
    """Compute the features of n grids.

    Args:
        grids: (s, c) uint8, stored grids.
        rows: (n,) int64, numbers of the grids.
        parameters: (p,).
        cells: (r, c) with r >= n, written: the grids, from 0 to 1.
        inputs: (n, w), the columns of the grid are written.
    """
    count, size = grids.shape[1], GRID_FEATURES * grids.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        for j in range(count):
            cells[i, j] = np.float32(grids[row, j]) * _SHARE
    features = inputs[:, column : column + GRID_FEATURES]
    weight = parameters[start : start + size].reshape((GRID_FEATURES, count))
    multiply_transposed(cells[: len(rows)], weight, features)
    rectify(features, parameters[start + size : start + size + GRID_FEATURES])


@numeric_kernel
def add_grid_gradients(deltas, inputs, cells, start, column, gradients):
    """Add the gradients of the parameters of the grid encoder.

    Args:
        deltas: (n, w), gradients in the inputs of the MLP; those of the grid are overwritten.
        inputs: (n, w), as :func:`encode_grids` left them.
        cells: (r, c), as :func:`encode_grids` left them.
        gradients: (p,).
    """
    size = GRID_FEATURES * cells.shape[1]
    delta, features = deltas[:, column : column + GRID_FEATURES], inputs[:, column : column + GRID_FEATURES]
    _cut(delta, features, gradients[start + size : start + size + GRID_FEATURES])
    weight = gradients[start : start + size].reshape((GRID_FEATURES, cells.shape[1]))
    add_transposed_multiply(delta, cells[: delta.shape[0]], weight)


@numeric_kernel
def encode_entities(states, kinds, rows, parameters, start, column, scratch: EntityScratch, inputs):
    """Compute the features of n sets of entities.

    Args:
        states: (s, m, d), stored rows of the entities.
        kinds: (s, m) uint8, their kinds, 0 for rows that are not used.
        rows: (n,) int64, numbers of the sets.
        parameters: (p,).
        scratch: for at least n sets, written.
        inputs: (n, w), the columns of the set are written.
    """
    firsts, used_states, used_kinds, hidden = scratch.firsts, scratch.states, scratch.kinds, scratch.hidden
    count = 0
    for i in range(len(rows)):
        firsts[i] = count
        row = rows[i]
        for e in range(kinds.shape[1]):
            kind = np.int64(kinds[row, e])
            if kind:
                used_kinds[count] = kind
                for k in range(states.shape[2]):
                    used_states[count, k] = states[row, e, k]
                count += 1
    firsts[len(rows)] = count
    size = ENTITY_UNITS * states.shape[2]
    weight = parameters[start : start + size].reshape((ENTITY_UNITS, states.shape[2]))
    multiply_transposed(used_states[:count], weight, hidden[:count])
    bias, embedding = parameters[start + size : start + size + ENTITY_UNITS], start + size + ENTITY_UNITS
    for e in range(count):
        kind = parameters[embedding + used_kinds[e] * ENTITY_UNITS : embedding + (used_kinds[e] + 1) * ENTITY_UNITS]
        for j in range(ENTITY_UNITS):
            hidden[e, j] = max(hidden[e, j] + bias[j] + kind[j], _ZERO)
    for i in range(len(rows)):
        _pool(hidden, firsts[i], firsts[i + 1], scratch.chosen[i], inputs[i, column : column + 2 * ENTITY_UNITS])
        inputs[i, column + 2 * ENTITY_UNITS] = np.float32(firsts[i + 1] - firsts[i]) / np.float32(kinds.shape[1])


@numeric_kernel
def _pool(hidden, first, last, chosen, features):
    """Write maximum and mean over entities ``first`` to ``last - 1``, side by side, and where the maxima are."""
    for j in range(ENTITY_UNITS):
        features[j] = features[ENTITY_UNITS + j] = _ZERO
        chosen[j] = -_ONE
    for e in range(first, last):
        number = np.float32(e)
        for j in range(ENTITY_UNITS):
            larger = hidden[e, j] > features[j]
            features[j] = hidden[e, j] if larger else features[j]
            chosen[j] = number if larger else chosen[j]
        for j in range(ENTITY_UNITS):
            features[ENTITY_UNITS + j] += hidden[e, j]
    share = _ONE / np.float32(max(last - first, 1))
    for j in range(ENTITY_UNITS):
        features[ENTITY_UNITS + j] *= share


@numeric_kernel
def add_entity_gradients(deltas, scratch: EntityScratch, start, column, gradients):
    """Add the gradients of the parameters of the entity encoder.

    Args:
        deltas: (n, w), gradients in the inputs of the MLP.
        scratch: as :func:`encode_entities` left it; the hidden outputs are overwritten.
        gradients: (p,).
    """
    firsts, used_states, used_kinds, hidden = scratch.firsts, scratch.states, scratch.kinds, scratch.hidden
    n, size = len(deltas), ENTITY_UNITS * used_states.shape[1]
    bias, embedding = gradients[start + size : start + size + ENTITY_UNITS], start + size + ENTITY_UNITS
    for i in range(n):
        share = _ONE / np.float32(max(firsts[i + 1] - firsts[i], 1))
        of_maximum = deltas[i, column : column + ENTITY_UNITS]
        of_mean = deltas[i, column + ENTITY_UNITS : column + 2 * ENTITY_UNITS]
        for e in range(firsts[i], firsts[i + 1]):
            kind = gradients[embedding + used_kinds[e] * ENTITY_UNITS : embedding + (used_kinds[e] + 1) * ENTITY_UNITS]
            number = np.float32(e)
            for j in range(ENTITY_UNITS):
                d = of_mean[j] * share + (of_maximum[j] if scratch.chosen[i, j] == number else _ZERO)
                hidden[e, j] = d if hidden[e, j] > _ZERO else _ZERO
            for j in range(ENTITY_UNITS):
                kind[j] += hidden[e, j]
            for j in range(ENTITY_UNITS):
                bias[j] += hidden[e, j]
    weight = gradients[start : start + size].reshape((ENTITY_UNITS, used_states.shape[1]))
    add_transposed_multiply(hidden[: firsts[n]], used_states[: firsts[n]], weight)


@numeric_kernel
def encode_pictures(pictures, rows, layout: PictureLayout, scratch: PictureScratch, inputs):
    """Compute the features of n pictures.

    Args:
        pictures: (s, k, c) uint8, stored pictures of k frames each.
        rows: (n,) int64, numbers of the pictures.
        scratch: for at least n pictures, written.
        inputs: (n, w), the columns of the picture are written.
    """
    layers, parameters, transposed, hidden = layout.layers, layout.parameters, scratch.transposed, scratch.hidden
    patches, column = scratch.patches, layout.column
    _transpose_weights(layers, parameters, transposed)
    n, top, at_once = len(rows), len(layers) - 1, len(patches) // len(layout.corners)
    for first in range(0, n, at_once):
        last = min(first + at_once, n)
        _read_patches(pictures, rows[first:last], layout.corners, layout.line, scratch.pixels, patches)
        weight = 0
        for number in range(top):
            layer = layers[number]
            units, width, count = layer[_UNITS], layer[_WIDTH], (last - first) * layer[_PLACES]
            begin = layer[_BELOW] * n + first * layer[_PLACES] * units
            out = hidden[begin : begin + count * units].reshape((count, units))
            factor = transposed[weight : weight + width * units].reshape((width, units))
            if number == 0:
                multiply(patches[:count], factor, out)
            else:
                begin = layers[number - 1, _BELOW] * n + first * layer[_PLACES] * width
                multiply(hidden[begin : begin + count * width].reshape((count, width)), factor, out)
            rectify(out, parameters[layer[_BIAS] : layer[_BIAS] + units])
            weight += width * units
    units, width, bias = layers[top, _UNITS], layers[top, _WIDTH], layers[top, _BIAS]
    begin = layers[top - 1, _BELOW] * n
    seen = hidden[begin : begin + n * width].reshape((n, width))
    features = inputs[:, column : column + units]
    multiply(seen, transposed[len(transposed) - width * units :].reshape((width, units)), features)
    rectify(features, parameters[bias : bias + units])


@numeric_kernel
def add_picture_gradients(pictures, rows, layout: PictureLayout, scratch: PictureScratch, inputs, deltas, gradients):
    """Add the gradients of the parameters of the encoder.

    Args:
        pictures: as for :func:`encode_pictures`, like ``rows`` and ``layout``.
        scratch: as :func:`encode_pictures` left it.
        inputs: (n, w), as :func:`encode_pictures` left them.
        deltas: (n, w), gradients in the inputs of the MLP; those of the picture are overwritten.
        gradients: (p,).
    """
    layers, parameters, column = layout.layers, layout.parameters, layout.column
    patches, hidden, above, below = scratch.patches, scratch.hidden, scratch.above, scratch.below
    n, top, at_once = len(rows), len(layers) - 1, len(patches) // len(layout.corners)
    units, width, weight = layers[top, _UNITS], layers[top, _WIDTH], layers[top, _WEIGHT]
    begin = layers[top - 1, _BELOW] * n
    seen = hidden[begin : begin + n * width].reshape((n, width))
    features, delta = inputs[:, column : column + units], deltas[:n, column : column + units]
    _cut(delta, features, gradients[layers[top, _BIAS] : layers[top, _BIAS] + units])
    add_transposed_multiply(delta, seen, gradients[weight : weight + units * width].reshape((units, width)))
    multiply(
        delta,
        parameters[weight : weight + units * width].reshape((units, width)),
        above[: n * width].reshape((n, width)),
    )
    for first in range(0, n, at_once):
        last = min(first + at_once, n)
        _read_patches(pictures, rows[first:last], layout.corners, layout.line, scratch.pixels, patches)
        delta = above[first * width : last * width]
        for number in range(top - 1, -1, -1):
            layer = layers[number]
            _add_layer_gradient(
                layer, layers[max(number - 1, 0), _BELOW] * n, first, last, n,
                parameters, patches, hidden, delta, below[number % 2], gradients,
            )  # fmt: skip
            delta = below[number % 2]


@numeric_kernel
def _add_layer_gradient(
    layer, source, first, last, n, parameters, patches, hidden, deltas, deltas_below, gradients
):  # fmt: skip
    """Add the gradients of a layer over places for pictures ``first`` to ``last - 1``.

    Those in its outputs are read from ``deltas``, those in its inputs written to ``deltas_below``, both flat. Its
    inputs begin at ``source`` in ``hidden``, those of the first layer are the patches.
    """
    units, width, weight, bias = layer[_UNITS], layer[_WIDTH], layer[_WEIGHT], layer[_BIAS]
    count = (last - first) * layer[_PLACES]
    begin = layer[_BELOW] * n + first * layer[_PLACES] * units
    delta = deltas[: count * units].reshape((count, units))
    _cut(delta, hidden[begin : begin + count * units].reshape((count, units)), gradients[bias : bias + units])
    gradient = gradients[weight : weight + units * width].reshape((units, width))
    if layer[_BELOW] == 0:
        add_transposed_multiply(delta, patches[:count], gradient)
    else:
        begin = source + first * layer[_PLACES] * width
        add_transposed_multiply(delta, hidden[begin : begin + count * width].reshape((count, width)), gradient)
        multiply(
            delta,
            parameters[weight : weight + units * width].reshape((units, width)),
            deltas_below[: count * width].reshape((count, width)),
        )


@numeric_kernel
def _transpose_weights(layers, parameters, transposed):
    """Write the transposed weights of all layers, one after the other."""
    begin = 0
    for number in range(len(layers)):
        units, width, weight = layers[number, _UNITS], layers[number, _WIDTH], layers[number, _WEIGHT]
        for i in range(units):
            for j in range(width):
                transposed[begin + j * units + i] = parameters[weight + i * width + j]
        begin += units * width


@numeric_kernel
def _read_patches(pictures, rows, corners, line, pixels, patches):
    """Write the pixels of all patches of n pictures, from 0 to 1: frame, line and column of each.

    The bytes are put in order first, in ``pixels``, and converted in one run, which is four times as fast as to convert
    eight at a time.
    """
    frames, size = pictures.shape[1], pictures.shape[2]
    source = pictures.reshape(pictures.size)
    count = 0
    for i in range(len(rows)):
        for place in range(len(corners)):
            begin = rows[i] * frames * size + corners[place]
            for _ in range(frames):
                for y in range(PATCH):
                    copy_bytes(pixels, count, source, begin + y * line, PATCH)
                    count += PATCH
                begin += size
    target = patches.reshape(patches.size)
    for i in range(count):
        target[i] = np.float32(pixels[i]) * _SHARE


@numeric_kernel
def rectify(outputs, bias):
    """Add the bias to the products (n, h) of a layer and cut off what is negative."""
    for i in range(outputs.shape[0]):
        for j in range(outputs.shape[1]):
            outputs[i, j] = max(outputs[i, j] + bias[j], _ZERO)


@numeric_kernel
def _cut(delta, outputs, bias):
    """Turn the gradient in the outputs (n, h) of a layer into that before the cut, and add it to that of the bias."""
    for i in range(delta.shape[0]):
        for j in range(delta.shape[1]):
            d = delta[i, j] if outputs[i, j] > _ZERO else _ZERO
            delta[i, j] = d
            bias[j] += d
