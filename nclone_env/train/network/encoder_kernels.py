"""Encoders of ``locals`` and of sets of entities by hand, for a block of observations.

The modules of ``train.network.encoders`` define what is computed. Their features lie in columns of the inputs of the
MLP, (n, w), from ``column`` on; their parameters lie in the vector of all parameters, (p,), from ``start`` on, one
after the other in the order of the module. All arrays are float32 unless stated. Kernels write in place and allocate
nothing.
"""

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.jit.products import add_transposed_multiply, multiply_transposed
from nclone_env.train.network.arrays import EntityScratch

_ZERO, _ONE = np.float32(0), np.float32(1)
_SHARE = np.float32(1 / 255)

GRID_FEATURES = 64
"""Features of a grid."""
ENTITY_UNITS = 64
"""Units of the layer over each entity; a set has the maximum and the mean of each, and its size, as features."""


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
    bias = parameters[start + size : start + size + GRID_FEATURES]
    for i in range(len(rows)):
        for j in range(GRID_FEATURES):
            features[i, j] = max(features[i, j] + bias[j], _ZERO)


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
    bias = gradients[start + size : start + size + GRID_FEATURES]
    for i in range(delta.shape[0]):
        for j in range(GRID_FEATURES):
            d = delta[i, j] if features[i, j] > _ZERO else _ZERO
            delta[i, j] = d
            bias[j] += d
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
