"""Path lengths that know gravity: of a place, and of the height that the ninja can still gain there.

A step up takes of this height, a step sideways in the air takes less, and a step down leaves enough for a few steps
sideways. Floors, walls and whatever else the ninja can jump off give it back. So a path leads up a shaft with walls,
over gaps as wide as a jump, and neither to a ceiling nor out of a pit with mined walls. The limits are generous: a
path that is too short delays a search less than one that is missing.
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
from nclone_env.level.routes.lattice import FAR, LATTICE, SPACING, node_lengths, seeds_of, step_bit

_UNIT = 3.0
"""Pixels of height that are told apart."""
_FLOOR, _WALL = 36, 21
"""Units of height that a jump off a floor or off a wall gives. From rest they are 77 and 45 pixels (physics 01, section
10); speed adds to them."""
_UP, _FALLEN = 2, 1
"""Units that a step up takes, and that are left after a step down. A step sideways in the air takes half a unit: one in
odd columns."""
_KEPT = 3
"""One in so many units has a field of its own."""
RISES = _FLOOR // _KEPT + 1
"""Fields of a landmark."""
NO_FALL = 300.0
"""Pixels by which a path is longer than without gravity where gravity lets none pass."""
_AROUND = {BOUNCE_BLOCK: 24.0, THWUMP: 24.0, SHOVE_THWUMP: 27.0, ONE_WAY: 18.0, BOOST_PAD: 60.0, LAUNCH_PAD: 96.0}
"""Kinds that the ninja jumps off, or that throw it, and the pixels from their centre within which they do."""
_DIAGONAL = float(np.sqrt(2.0))


def footing_of(costs: np.ndarray, entities: np.ndarray) -> np.ndarray:
    """Return (101, 177) int16: the units of height that a jump gives at each node.

    ``costs`` are as for :func:`path_lengths`, ``entities`` the (E,) ``ENTITY`` of the level.
    """
    blocked = costs <= 0.0
    height = np.zeros(LATTICE, np.int16)
    height[:, 1:-1][blocked[:, :-2] | blocked[:, 2:]] = _WALL
    height[:-1, 1:-1][blocked[1:, :-2] | blocked[1:, 1:-1] | blocked[1:, 2:]] = _FLOOR
    height[costs > 1.0] = 0  # mines
    for kind, reach in _AROUND.items():
        for entity in entities[entities["type"] == kind]:
            height[node_lengths(float(entity["x"]), float(entity["y"])) < reach] = _FLOOR
    return height


def falling_lengths(
    costs: np.ndarray, height: np.ndarray, x: float, y: float, reach: float, onward: float, barred: np.ndarray
) -> np.ndarray:
    """Return (13, 101, 177) float32: the length of the shortest path to a target by the height that is left.

    ``height`` is as of :func:`footing_of`, the other arguments are as for :func:`path_lengths`.
    """
    lengths = np.full((*LATTICE, _FLOOR + 1), FAR, np.float32)
    lengths[:] = seeds_of(costs, x, y, reach, onward)[:, :, None]
    queue, queued = np.empty(costs.size, np.int32), np.zeros(LATTICE, np.bool_)
    _spread(lengths, costs, height, barred, queue, queued)
    return np.ascontiguousarray(np.moveaxis(lengths[:, :, ::_KEPT], 2, 0))


@kernel
def _spread(lengths, costs, height, barred, queue, queued):
    """Shorten seeded lengths until none can be, in place; scratch for each node, int32 and bool."""
    rows, columns = costs.shape
    first, waiting = 0, 0
    for node in range(rows * columns):
        if lengths[node // columns, node % columns, 0] < FAR:
            queue[waiting] = node
            queued[node // columns, node % columns] = True
            waiting += 1
    while waiting > 0:
        j, i = queue[first] // columns, queue[first] % columns
        first = first + 1 if first + 1 < queue.shape[0] else 0
        waiting -= 1
        queued[j, i] = False
        for b in range(-1, 2):
            for a in range(-1, 2):
                row, column = j - b, i - a
                if costs[row, column] <= 0.0 or barred[row, column] >> step_bit(a, b) & 1 or (a == 0 and b == 0):
                    continue
                step = np.float32(costs[j, i] * (SPACING if a == 0 or b == 0 else SPACING * _DIAGONAL))
                taken, most = _UP, _FLOOR
                if b > 0:
                    taken, most = -_FALLEN, _FALLEN
                elif b == 0:
                    on_floor = height[row, column] == _FLOOR and height[j, i] == _FLOOR
                    taken = 0 if on_floor else column % 2
                shorter = _shorten(lengths[row, column], lengths[j, i], height[row, column], taken, most, step)
                if shorter and not queued[row, column]:
                    queued[row, column] = True
                    last = first + waiting
                    queue[last if last < queue.shape[0] else last - queue.shape[0]] = row * columns + column
                    waiting += 1


@kernel
def _shorten(lengths, onward, footing, taken, most, step):
    """Shorten the lengths of a node by those of the next one of a path; return whether any became shorter.

    The step takes so many units of the height that is left, or of the footing, and leaves at most ``most``.
    """
    shorter = False
    for left in range(max(footing, taken), _FLOOR + 1):
        length = onward[min(left - taken, most)] + step
        if length < lengths[left]:
            lengths[left] = length
            shorter = True
    if shorter:
        lengths[:footing] = lengths[footing]
    return shorter


@kernel
def rise_of(ninja):
    """Return the number of the field for the height that the ninja can still gain, 0 .. ``RISES - 1``."""
    if ninja["airborne"] == 0:
        return RISES - 1
    rise, speed = 0.0, -ninja["vy"]
    if speed > 0.0:
        held = 0.0
        if ninja["state"] == JUMPING:
            held = min(1.0 * MAX_JUMP_DURATION - ninja["jump_duration"], speed / JUMP_GRAVITY)
        slower = speed - JUMP_GRAVITY * held
        rise = 0.5 * (speed + slower) * held + slower * slower / (2.0 * FALL_GRAVITY)
    units = rise / _UNIT
    if ninja["walled"] != 0:
        units = max(units, 1.0 * _WALL)
    return min(int(units) // _KEPT, RISES - 1)
