"""Path lengths that know gravity: of a place, and of the height that the ninja can still gain there.

A step up takes some of this height, a step sideways in the air less, and a step down all of it. Floors, walls and
whatever else the ninja can jump off give it back. So a path leads up a shaft with walls and over gaps as wide as a
jump, but neither to a ceiling nor out of a pit with mined walls. The limits are generous: a path that is too short
delays a search less than one that is missing.
"""

import numpy as np

from nclone_env.game import (
    BOOST_PAD,
    BOUNCE_BLOCK,
    FALL_GRAVITY,
    JUMP_GRAVITY,
    JUMPING,
    LAUNCH_PAD,
    MAX_JUMP_DURATION,
    ONE_WAY,
    SHOVE_THWUMP,
    THWUMP,
)
from nclone_env.jit import kernel
from nclone_env.level.routes.lattice import FAR, LATTICE, SPACING, node_lengths, nodes_near, step_bit

_JUMP = 18
"""Units of height, of 6 pixels, that a jump gives. Off a floor it rises 77 pixels from rest (physics 01, section 10.1),
with speed more; a jump off a wall adds to a rise."""
_SIDEWAYS = 4
"""One in so many steps sideways in the air takes a unit: those that begin in these columns."""
_KEPT = 2
"""One in so many units has a field of its own."""
RISES = _JUMP // _KEPT + 1
"""Fields of a landmark."""
NO_FALL = 300.0
"""Pixels by which a path is longer than without gravity where gravity lets none pass."""
_AROUND = {BOUNCE_BLOCK: 24.0, THWUMP: 24.0, SHOVE_THWUMP: 27.0, ONE_WAY: 18.0, BOOST_PAD: 60.0, LAUNCH_PAD: 96.0}
"""Kinds that the ninja jumps off, or that throw it, and the pixels from their centre within which they do."""
_DIAGONAL = float(np.sqrt(2.0))


def footing_of(costs: np.ndarray, entities: np.ndarray) -> np.ndarray:
    """Return (101, 177) bool: whether the ninja can jump at each node, so neither in the air nor at mines.

    ``costs`` are as for :func:`path_lengths`, ``entities`` the (E,) ``ENTITY`` of the level.
    """
    blocked, footing = costs <= 0.0, np.zeros(LATTICE, np.bool_)
    footing[:-1, 1:-1] = blocked[1:, 1:-1] | blocked[:-1, :-2] | blocked[:-1, 2:]
    footing &= costs <= 1.0
    for kind, reach in _AROUND.items():
        for entity in entities[entities["type"] == kind]:
            x, y = float(entity["x"]), float(entity["y"])
            nodes = nodes_near(x, y, reach, reach)
            footing[nodes] |= node_lengths(x, y, nodes=nodes) < reach
    return footing


def falling_lengths(
    lengths: np.ndarray, costs: np.ndarray, footing: np.ndarray, seeds: np.ndarray, barred: np.ndarray
) -> np.ndarray:
    """Return (10, 101, 177) float32: the length of the shortest path to a target by the height that is left.

    Args:
        lengths: (101, 177) float32; the lengths without gravity, in whose order most of them are found at once.
        costs: as for :func:`path_lengths`, and ``barred`` too.
        footing: (101, 177) bool of :func:`footing_of`.
        seeds: (101, 177) float32 of :func:`seeds_of`.
    """
    falls = np.repeat(seeds[:, :, None], _JUMP + 1, axis=2)
    order = np.argsort(lengths, axis=None)[: np.count_nonzero(lengths < FAR)]
    _spread(falls, costs, footing, barred, order, seeds < FAR)
    return np.ascontiguousarray(np.moveaxis(falls[:, :, ::_KEPT], 2, 0))


@kernel
def _spread(falls, costs, footing, barred, order, changed):
    """Shorten seeded lengths until none can be, in place; ``changed`` tells which nodes have new ones."""
    columns, is_new = costs.shape[1], True
    while is_new:
        is_new = False
        for node in order:
            j, i = node // columns, node % columns
            if not changed[j, i]:
                continue
            changed[j, i] = False
            is_new = True
            for b in range(-1, 2):
                for a in range(-1, 2):
                    row, column = j - b, i - a
                    if costs[row, column] <= 0.0 or barred[row, column] >> step_bit(a, b) & 1 or (a == 0 and b == 0):
                        continue
                    step = np.float32(costs[row, column] * (SPACING if a == 0 or b == 0 else SPACING * _DIAGONAL))
                    taken = _units_of_step(b, column, footing[row, column] and footing[j, i])
                    if footing[row, column]:
                        shorter = _shorten_all(falls[row, column], falls[j, i, _JUMP - taken] + step)
                    elif taken == _JUMP:
                        shorter = _shorten_all(falls[row, column], falls[j, i, 0] + step)
                    else:
                        shorter = _shorten(falls[row, column], falls[j, i], taken, step)
                    changed[row, column] |= shorter


@kernel
def _units_of_step(down, column, on_footing):
    """Return the units that a step by a number of rows takes: all of them down, as a fall leaves no height."""
    if down != 0:
        return _JUMP if down > 0 else 1
    return 0 if on_footing or column % _SIDEWAYS != 0 else 1


@kernel
def _shorten_all(lengths, length):
    """Shorten all lengths of a node to one; return whether any was longer."""
    longer = lengths[0] > length
    if longer:
        for left in range(_JUMP + 1):
            lengths[left] = min(length, lengths[left])
    return longer


@kernel
def _shorten(lengths, onward, taken, step):
    """Shorten the lengths of a node by those of the next one of a path; return whether any was longer."""
    longer = False
    for left in range(taken, _JUMP + 1):
        length = onward[left - taken] + step
        longer |= length < lengths[left]
        lengths[left] = min(length, lengths[left])
    return longer


@kernel
def rise_of(ninja):
    """Return the number of the field for the height that the ninja can still gain, 0 .. ``RISES - 1``."""
    if ninja["airborne"] == 0 or ninja["walled"] != 0:
        return RISES - 1
    speed = -ninja["vy"]
    if speed <= 0.0:
        return 0
    held = 0.0
    if ninja["state"] == JUMPING:
        held = min(1.0 * MAX_JUMP_DURATION - ninja["jump_duration"], speed / JUMP_GRAVITY)
    slower = speed - JUMP_GRAVITY * held
    rise = 0.5 * (speed + slower) * held + slower * slower / (2.0 * FALL_GRAVITY)
    return min(int(rise / SPACING) // _KEPT, RISES - 1)
