"""Path lengths to the objectives, on the lattice of half-cell corners, also with some doors closed.

The ninja's centre cannot come closer than its radius to a wall, so the nodes of the lattice are the points
(12 i, 12 j), i = 0..88, j = 0..50, at which a slightly smaller disc is free of solids: in a corridor one tile wide
they lie on its centre line. Steps go to the eight neighbours, of length 12 or 12 sqrt(2).
The fields ignore gravity; they guide learning and never touch the physics.

A closed door removes the nodes within the clearance of its segment, as a wall would. No step of the lattice can cross
it then, since one end of such a step is nearer than that. A path begins and ends at nodes in a straight line that
crosses no closed door.
"""

import math
from collections.abc import Sequence

import numpy as np

from nclone_env.game import COLUMNS, ROWS
from nclone_env.jit import kernel
from nclone_env.level.routes.fields import (
    FIELD_SHAPE,
    NODES,
    SPACING,
    Fields,
    distance_at,
    field_room,
    trimmed,
    write_field,
)
from nclone_env.level.routes.lattice import HALF_DOOR, clear_nodes, nodes_at_door, spread, spread_lengths
from nclone_env.level.tiles import SOLID_SAMPLES

CLEARANCE = 9.5  # a little below the ninja's radius of 10, so that nodes 10 pixels above a slope still count
SOLID_SHAPE = (12 * ROWS, 12 * COLUMNS)
"""Of the mask of solids, squares of 2 x 2 pixels."""
_SQUARES = 12  # of a tile, down and across
_REACH = 2  # lattice lines on each side that a point looks at for its nearest nodes

Point = tuple[int, int]
TO_SWITCH, TO_EXIT, AREA = range(3)
PLANES = 3


def objective_fields(tiles: np.ndarray, exits: Sequence[Point], switches: Sequence[Point]) -> Fields:
    """Compute the fields of a level of (25, 44) tiles, given the centres of its X exits, and of their switches, pixels.

    Returns:
        1 + X fields, read-only: first the shortest path by any switch to its exit; then the path to each exit.
    """
    points = np.array([*exits, *switches], np.float64).reshape(-1, 2)
    fields, ends = field_room(1 + len(exits)), np.zeros(2, np.int64)
    scratch = np.zeros(NODES, np.int32), np.zeros(FIELD_SHAPE, np.bool_)
    lengths, steps = np.zeros(FIELD_SHAPE, np.float32), np.zeros(FIELD_SHAPE, np.uint8)
    write_objective_fields(
        free_nodes(tiles).astype(np.float32), points, len(switches), lengths, steps, *scratch, fields, ends
    )
    return trimmed(fields, *ends.tolist())


@kernel
def write_objective_fields(free, points, switches, lengths, steps, queue, queued, paths, ends):
    """Write what :func:`objective_fields` returns, the exits first, as the first field depends on theirs.

    Args:
        free: (51, 89) float32, 1 at nodes at which the ninja fits, else 0.
        points: centres of the exits, then of their switches, (x, y).
        switches: how many.
        lengths: (51, 89) float32, overwritten.
        steps: (51, 89) uint8, zeros.
        queue: (51 * 89,) int32, overwritten.
        queued: (51, 89) bool, all False, and so again afterwards.
        paths: ``Fields`` or ``Paths`` of 1 + X fields, written.
        ends: (2,) int64; where their codes and rests end, written.
    """
    exits = paths.fields.shape[0] - 1
    ends[0], ends[1] = 0, 0
    for number in range(exits, -1, -1):
        for row in range(free.shape[0]):
            for column in range(free.shape[1]):
                lengths[row, column] = math.inf
        if number > 0:
            seed(lengths, free, points[number - 1, 0], points[number - 1, 1], 0.0)
        else:
            for switch in range(1, switches + 1):
                x, y = points[exits + switch - 1, 0], points[exits + switch - 1, 1]
                onward = distance_at(paths, switch, x, y)
                if onward < math.inf:
                    seed(lengths, free, x, y, onward)
        spread_lengths(lengths, free, steps, True, SPACING, queue, queued)
        ends[0], ends[1] = write_field(lengths, 1, paths, number, ends[0], ends[1])


def compile_kernels() -> None:
    """Compile the kernels of path lengths, or load them; a level that was used before is read from the disk."""
    objective_fields(np.zeros((ROWS, COLUMNS), np.uint8), [(60, 60)], [(120, 60)])


def solid_mask(tiles: np.ndarray) -> np.ndarray:
    """Return (300, 528) bool: whether each 2 x 2 pixel square of the world is solid."""
    solid = np.zeros(SOLID_SHAPE, np.bool_)
    write_solid(tiles, solid)
    return solid


@kernel
def write_solid(tiles, solid):
    """Write what :func:`solid_mask` returns."""
    for row in range(solid.shape[0]):
        for column in range(solid.shape[1]):
            tile = int(tiles[row // _SQUARES, column // _SQUARES])
            solid[row, column] = SOLID_SAMPLES[tile, row % _SQUARES, column % _SQUARES]


@kernel
def seed(field, free, x, y, onward):
    """Start a field at the free nodes around a point, or at the nearest free node if there are none around it."""
    nearest = math.inf
    for row in range(free.shape[0]):
        for column in range(free.shape[1]):
            length = _length(row, column, x, y)
            if free[row, column] > 0.0 and length < nearest:
                nearest = length
    reach = nearest if nearest > _REACH * SPACING else _REACH * SPACING
    for row in range(free.shape[0]):
        for column in range(free.shape[1]):
            length = _length(row, column, x, y)
            if free[row, column] > 0.0 and length <= reach:
                value = np.float32(onward + length)
                if value < field[row, column]:
                    field[row, column] = value


@kernel
def _length(row, column, x, y):
    """Return the distance of a node from a point, pixels."""
    dx, dy = SPACING * column - x, SPACING * row - y
    return math.sqrt(dx * dx + dy * dy)


def free_nodes(tiles: np.ndarray) -> np.ndarray:
    """Return (51, 89) bool: the nodes of the lattice at which the ninja fits between the tiles, (25, 44) uint8."""
    return clear_nodes(solid_mask(tiles), CLEARANCE, FIELD_SHAPE)


def write_reach_fields(
    free: np.ndarray, closed: np.ndarray, switches: Sequence[Point], exits: Sequence[Point], out: np.ndarray
) -> None:
    """Write path lengths and the reachable part of the level for every node.

    Args:
        free: (51, 89) bool, nodes that are free of tiles.
        closed: ``DOOR`` records of the closed doors.
        switches: centres of the switches to consider, pixels.
        out: (3, 51, 89) float32: path lengths to the nearest switch and to the nearest exit, pixels, infinite if there
            is none; fraction of the free nodes that can be reached, infinite at nodes that are not free.
    """
    left = free & ~nodes_at_doors(closed)
    out[:] = np.inf
    for plane, points in ((TO_SWITCH, switches), (TO_EXIT, exits)):
        for point in points:
            seen = (left & seen_nodes(point, closed)).astype(np.float32)
            seed(out[plane], seen, float(point[0]), float(point[1]), 0.0)
        spread(out[plane], left, SPACING)
    total, rest = max(int(np.count_nonzero(free)), 1), left.copy()
    while rest.any():
        lengths = np.full(FIELD_SHAPE, np.inf, dtype=np.float32)
        lengths[np.unravel_index(rest.argmax(), FIELD_SHAPE)] = 0.0
        spread(lengths, left, SPACING)
        part = np.isfinite(lengths)
        out[AREA][part] = np.count_nonzero(part) / total
        rest &= ~part


def nodes_at_doors(doors: np.ndarray) -> np.ndarray:
    """Return (51, 89) bool: the nodes at which the ninja would touch one of some doors."""
    touched = np.zeros(FIELD_SHAPE, dtype=np.bool_)
    for door in doors:
        touched |= nodes_at_door(door, CLEARANCE)[::2, ::2]  # every second node of the finer lattice
    return touched


def seen_nodes(point: Point, doors: np.ndarray) -> np.ndarray:
    """Return (51, 89) bool: the nodes in a straight line from a point that crosses none of some doors."""
    rows, columns = np.indices(FIELD_SHAPE) * SPACING
    seen = np.ones(FIELD_SHAPE, dtype=np.bool_)
    for door in doors:
        along, across = (rows, columns) if door["vertical"] else (columns, rows)
        start_along, start_across = point[::-1] if door["vertical"] else point
        line, middle = (door["x"], door["y"]) if door["vertical"] else (door["y"], door["x"])
        other_side = (across < line) != (start_across < line)
        share = (line - start_across) / np.where(other_side, across - start_across, 1.0)
        place = start_along + share * (along - start_along)
        seen &= ~(other_side & (np.abs(place - middle) <= HALF_DOOR))
    return seen


@kernel
def crosses(door, x, y, node_x, node_y):
    """Return whether the straight line from (x, y) to a node crosses a door."""
    if door["vertical"] != 0:
        return crosses_line(door["x"], door["y"], x, y, node_x, node_y)
    return crosses_line(door["y"], door["x"], y, x, node_y, node_x)


@kernel
def crosses_line(line, middle, start_across, start_along, end_across, end_along):
    """Return whether a straight line passes from one side of a line to the other near the middle of a door on it."""
    if (start_across < line) == (end_across < line):
        return False
    place = start_along + (line - start_across) / (end_across - start_across) * (end_along - start_along)
    return abs(place - middle) <= HALF_DOOR
