"""Paths to switches and exits with some doors closed, and the reachable part of a level.

On the lattice of :mod:`nclone_env.level.routes.distance`. A closed door removes the nodes within the clearance of its
segment, as a wall would. No step of the lattice can cross it then, since one end of such a step is nearer than that.
A path begins and ends at nodes in a straight line that crosses no closed door.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nclone_env.jit import kernel
from nclone_env.level.routes.distance import (
    CLEARANCE,
    FIELD_SHAPE,
    SPACING,
    Point,
    find_free_nodes,
    seed,
    solid_mask,
    spread,
)

TO_SWITCH, TO_EXIT, AREA = range(3)
PLANES = 3
HALF_DOOR = 12.0  # pixels, half the length of a door


def free_nodes(tiles: np.ndarray) -> np.ndarray:
    """Return (51, 89) bool: the nodes of the lattice at which the ninja fits between the tiles, (25, 44) uint8."""
    free = np.zeros(FIELD_SHAPE, dtype=np.bool_)
    find_free_nodes(solid_mask(tiles), free)
    return free


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
            seed(out[plane], left & seen_nodes(point, closed), point, 0.0)
        spread(out, plane, left)
    write_shares(out, AREA, left, max(np.count_nonzero(free), 1), np.empty(free.size, dtype=np.int32))


def nodes_at_doors(doors: np.ndarray) -> np.ndarray:
    """Return (51, 89) bool: the nodes at which the ninja would touch one of some doors."""
    rows, columns = np.indices(FIELD_SHAPE) * SPACING
    touched = np.zeros(FIELD_SHAPE, dtype=np.bool_)
    for door in doors:
        half_x, half_y = (0.0, HALF_DOOR) if door["vertical"] else (HALF_DOOR, 0.0)
        dx = np.maximum(np.abs(columns - door["x"]) - half_x, 0.0)
        dy = np.maximum(np.abs(rows - door["y"]) - half_y, 0.0)
        touched |= dx * dx + dy * dy < CLEARANCE * CLEARANCE
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


@kernel
def write_shares(fields, number, free, total, queue):
    """Write for each free node the size of its connected part as a fraction of ``total``; the field is all infinite.

    Args:
        fields: (F, 51, 89) float32.
        free: (51, 89) bool.
        total: number of nodes that counts as 1.
        queue: (4539,) int32, overwritten.
    """
    rows, columns = free.shape
    for start in range(rows * columns):
        if free[start // columns, start % columns]:
            fields[number, start // columns, start % columns] = -1.0
    for start in range(rows * columns):
        if fields[number, start // columns, start % columns] == -1.0:
            size = collect_part(fields, number, start, queue)
            for place in range(size):
                node = queue[place]
                fields[number, node // columns, node % columns] = size / total


@kernel
def collect_part(fields, number, start, queue):
    """Collect the nodes marked -1 that are connected with one of them in ``queue``, marked -2; return how many."""
    _, rows, columns = fields.shape
    queue[0], size, place = start, 1, 0
    fields[number, start // columns, start % columns] = -2.0
    while place < size:
        j, i = queue[place] // columns, queue[place] % columns
        place += 1
        for row in range(max(j - 1, 0), min(j + 1, rows - 1) + 1):
            for column in range(max(i - 1, 0), min(i + 1, columns - 1) + 1):
                if fields[number, row, column] == -1.0:
                    fields[number, row, column] = -2.0
                    queue[size] = row * columns + column
                    size += 1
    return size
