"""The writers of ``locals``: grids around the ninja in squares of 12 pixels, one for each plane.

A square is a quarter of a tile, so that four values give the direction of a slope, which one value per tile would not.
Occupancy from 0 to 255 can be fed to a network directly; tile numbers are categories and cannot.
"""

import math

from nclone_env.game import COLUMNS, HALF_CELL, KINDS, RADIUS, ROWS, bits
from nclone_env.jit import kernel
from nclone_env.level import FIELD_SHAPE, SOLID_SAMPLES, code_at, distance_at, length_of
from nclone_env.obs.game_state import objective
from nclone_env.sim import describe, is_closed, mover_of, place_of, radius_of, state_of

SOLID = 255
_AS_FAR = 128.0
_PIXELS_PER_STEP = 2.0
_DEADLY = bits(kind for kind in KINDS if kind.deadly)


_SHARES = SOLID_SAMPLES.reshape(-1, 2, 6, 2, 6).mean(axis=(2, 4)).ravel().tolist()
QUARTER_SHARES = tuple(int(share * SOLID + 0.5) for share in _SHARES)
"""4 numbers per tile, upper left, upper right, lower left, lower right: solid share of the quarter * 255."""


@kernel
def write_planes(levels, paths, worlds, index, out):
    """Write the planes of one world into ``out``, (P, S, S) uint8: occupancy, then hazards, then progress."""
    write_locals(levels, worlds, index, out[0])
    if out.shape[0] > 1:
        write_hazards(levels, worlds, index, out[1])
    if out.shape[0] > 2:
        write_progress(levels, paths, worlds, index, out[2])


@kernel
def write_locals(levels, worlds, index, out):
    """Write the occupancy grid around the ninja of one world into ``out``, (S, S) uint8, S odd, [row, column].

    0 is free, 255 solid; squares outside the world are solid. The centre of the ninja lies in the middle square. Closed
    doors are solid and one square thick, in their own cell.
    """
    ninja = worlds.ninjas[index]
    level, side = ninja["level"], out.shape[0]
    left, top = first_square(ninja["x"], side), first_square(ninja["y"], side)
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
        if is_closed(door["type"], state_of(worlds, index, door["owner"])):
            fill_door(door, left, top, out)


@kernel
def first_square(value, side):
    """Return the number of the first square of a window on an axis, with the ninja in its middle square."""
    return int(math.floor(value / HALF_CELL)) - side // 2


@kernel
def write_hazards(levels, worlds, index, out):
    """Write where the centre of the ninja would touch something deadly, in the squares of ``write_locals``.

    A square has the value 255 if its centre is half a square or more inside of such a place, 0 if it is as far
    outside, and in between the values between. Turrets and beams are not shown, entities that are deadly from one side
    only are shown on all sides.
    """
    ninja = worlds.ninjas[index]
    side, header = out.shape[0], levels.header[ninja["level"]]
    left, top = first_square(ninja["x"], side), first_square(ninja["y"], side)
    for row in range(side):
        for column in range(side):
            out[row, column] = 0
    for slot in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + slot]
        if _DEADLY >> int(entity["type"]) & 1:
            x, y = place_of(worlds, index, entity)
            dx, dy = x - ninja["x"], y - ninja["y"]
            if max(abs(dx), abs(dy)) < HALF_CELL * side:
                state = int(state_of(worlds, index, slot))
                mover = mover_of(worlds, index, max(entity["mover"], 0))
                if describe(worlds, index, entity, mover, state)[5]:
                    fill_disc(x - HALF_CELL * left, y - HALF_CELL * top, radius_of(entity["type"], state) + RADIUS, out)


@kernel
def write_progress(levels, paths, worlds, index, out):
    """Write how much nearer to the objective each square of ``write_locals`` is than the ninja.

    A square has the value 128 if the path from it to the objective is as long as the ninja's, 1 more for each 2 pixels
    that it is shorter, up to 255, 1 less for each 2 that it is longer, down to 1; 0 if there is no path. The length of
    a square is the mean over its corners that have a path.
    """
    ninja, side = worlds.ninjas[index], out.shape[0]
    left, top = first_square(ninja["x"], side), first_square(ninja["y"], side)
    field, _ = objective(levels, paths, worlds, index)
    own = distance_at(paths, field, ninja["x"], ninja["y"])
    for row in range(side):
        for column in range(side):
            length = square_length(paths, field, top + row, left + column)
            value = 0.0
            if length < math.inf and own < math.inf:
                value = min(max(_AS_FAR + (own - length) / _PIXELS_PER_STEP, 1.0), 255.0)
            out[row, column] = int(value)


@kernel
def square_length(paths, field, v, u):
    """Return the mean path length of the corners of a square that have a path; infinite if none has."""
    rows, columns = FIELD_SHAPE
    total, count = 0.0, 0
    if 0 <= v < rows - 1 and 0 <= u < columns - 1:
        for j in range(v, v + 2):
            for i in range(u, u + 2):
                length = length_of(paths, field, code_at(paths, field, j, i))
                if length < math.inf:
                    total += length
                    count += 1
    return total / count if count > 0 else math.inf


@kernel
def fill_disc(x, y, radius, out):
    """Raise the squares of a window to their share in a disc; x and y are from its upper left corner, pixels."""
    side, reach = out.shape[0], radius + HALF_CELL / 2.0
    first_row, last_row = int(math.floor((y - reach) / HALF_CELL)), int(math.floor((y + reach) / HALF_CELL))
    first_column, last_column = int(math.floor((x - reach) / HALF_CELL)), int(math.floor((x + reach) / HALF_CELL))
    for row in range(max(first_row, 0), min(last_row, side - 1) + 1):
        for column in range(max(first_column, 0), min(last_column, side - 1) + 1):
            dx, dy = HALF_CELL * (column + 0.5) - x, HALF_CELL * (row + 0.5) - y
            inside = (reach - math.sqrt(dx * dx + dy * dy)) / HALF_CELL
            if inside > 0.0:
                out[row, column] = max(out[row, column], int(SOLID * min(inside, 1.0)))


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
