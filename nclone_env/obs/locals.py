"""The writer of ``locals``: an occupancy grid around the ninja, in squares of 12 pixels.

A square is a quarter of a tile, so that four values give the direction of a slope, which one value per tile would not.
Occupancy from 0 to 255 can be fed to a network directly; tile numbers are categories and cannot.
"""

from __future__ import annotations

import math

from nclone_env.constants import COLUMNS, HALF_CELL, ROWS
from nclone_env.jit import kernel
from nclone_env.level.tiles import SOLID_SAMPLES
from nclone_env.sim.entities.door import is_closed

SOLID = 255


def _quarter_shares() -> tuple[int, ...]:
    """Return 4 numbers per tile, upper left, upper right, lower left, lower right: solid share of the quarter * 255."""
    quarters = SOLID_SAMPLES.reshape(-1, 2, 6, 2, 6).mean(axis=(2, 4))
    return tuple(int(share * SOLID + 0.5) for share in quarters.ravel().tolist())


QUARTER_SHARES = _quarter_shares()


@kernel
def write_locals(levels, worlds, index, out):
    """Write the occupancy grid around the ninja of one world.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``.
        index: world.
        out: (S, S) uint8, S odd, [row, column]: 0 free to 255 solid; squares outside the world are solid. The centre
            of the ninja lies in the middle square. Closed doors are solid and one square thick, in their own cell.
    """
    ninja = worlds.ninjas[index]
    level, side = ninja["level"], out.shape[0]
    top = int(math.floor(ninja["y"] / HALF_CELL)) - side // 2
    left = int(math.floor(ninja["x"] / HALF_CELL)) - side // 2
    for row in range(side):
        v = top + row
        for column in range(side):
            u = left + column
            value = SOLID
            if 0 <= v < 2 * ROWS and 0 <= u < 2 * COLUMNS:
                tile = int(levels.tiles[level, v >> 1, u >> 1])
                value = QUARTER_SHARES[4 * tile + 2 * (v & 1) + (u & 1)]
            out[row, column] = value
    header = levels.header[level]
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        if is_closed(door["type"], worlds.entity_states[index, door["owner"]]):
            fill_door(door, left, top, out)


@kernel
def fill_door(door, left, top, out):
    """Make the squares along a door solid where they are in the window."""
    if door["vertical"] != 0:
        first_u = last_u = beside(door["x"], door["column"])
        first_v, last_v = (door["y"] - 12) // 12, (door["y"] + 11) // 12
    else:
        first_u, last_u = (door["x"] - 12) // 12, (door["x"] + 11) // 12
        first_v = last_v = beside(door["y"], door["row"])
    side = out.shape[0]
    for v in range(max(first_v - top, 0), min(last_v - top, side - 1) + 1):
        for u in range(max(first_u - left, 0), min(last_u - left, side - 1) + 1):
            out[v, u] = SOLID


@kernel
def beside(line, cell):
    """Return the square next to a line, pixels, on the side of a cell, both on the same axis."""
    return min(max(line // 12, 2 * cell), 2 * cell + 1)
