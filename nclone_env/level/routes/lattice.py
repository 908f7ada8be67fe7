"""Path lengths on a fine lattice: nodes every 6 pixels, with the clearance of choice.

A node is the point (6 i, 6 j), i = 0..176, j = 0..100. It is free if a disc of the clearance around it is free of
tiles; a closed door removes the nodes that the ninja cannot be at. Steps lead to the eight neighbours. Gravity does not
count: the lengths guide a search and never touch the physics.
"""

import math

import numpy as np

from nclone_env.game import COLUMNS, FACING_X, FACING_Y, RADIUS, ROWS
from nclone_env.jit import called_kernel, kernel

SPACING = 6.0
LATTICE = (4 * ROWS + 1, 4 * COLUMNS + 1)
HALF_DOOR = 12.0  # pixels, half the length of a door
FAR = 1e9
"""Path length where there is no path."""
_DIAGONAL = math.sqrt(2.0)
_BORDER = 6  # squares of the mask of solids, 2 x 2 pixels each, along the border of the world without free nodes
_MINE_FACTOR = np.float32(4.0)
DOOR_REACH = RADIUS - 1.0
"""Pixels from a door within which the ninja cannot be."""
CLOSEST = 0.01
"""Pixels to which the ninja comes up to a one-way platform."""
_HALF_ONE_WAY = 17.0
"""Pixels from the middle of a one-way platform within which it holds the ninja (physics 02, section 6.10)."""

_Nodes = tuple[slice, slice]
_EVERYWHERE: _Nodes = slice(0, LATTICE[0]), slice(0, LATTICE[1])


def clear_nodes(solid: np.ndarray, clearance: float, shape: tuple[int, int] = LATTICE) -> np.ndarray:
    """Return bool, of a lattice: whether a disc around each node is free of tiles; ``clearance`` is its radius, pixels.

    ``solid`` is (300, 528) bool, as of ``level.routes.distance.solid_mask``; the nodes divide its squares evenly.
    """
    free = np.zeros(shape, dtype=np.bool_)
    find_clear(solid, free, clearance)
    return free


@kernel
def find_clear(solid, free, clearance):
    """Write whether a disc around each node is free; those next to the border of the world are not."""
    reach, squares = int(clearance / 2.0) + 1, solid.shape[0] // (free.shape[0] - 1)
    first = _BORDER // squares
    for j in range(first, free.shape[0] - first):
        for i in range(first, free.shape[1] - first):
            free[j, i] = _is_clear(solid, squares * j, squares * i, reach, clearance)


@kernel
def _is_clear(solid, row, column, reach, clearance):
    """Return whether a disc around a corner of squares of the mask is free."""
    for b in range(-reach, reach):
        for a in range(-reach, reach):
            dx, dy = 2.0 * a + 1.0, 2.0 * b + 1.0
            if solid[row + b, column + a] and dx * dx + dy * dy < clearance * clearance:
                return False
    return True


def node_lengths(
    x: float, y: float, half_width: float = 0.0, half_height: float = 0.0, nodes: _Nodes = _EVERYWHERE
) -> np.ndarray:
    """Return float64: the distance of each node, or of some, from a point, or from a rectangle around it, pixels."""
    rows, columns = nodes
    dx = np.maximum(np.abs(SPACING * np.arange(columns.start, columns.stop) - x) - half_width, 0.0)
    dy = np.maximum(np.abs(SPACING * np.arange(rows.start, rows.stop)[:, None] - y) - half_height, 0.0)
    return np.sqrt(dx * dx + dy * dy)  # unlike hypot, the same on every machine


def nodes_near(x: float, y: float, width: float, height: float) -> _Nodes:
    """Return the rows and columns of all nodes not farther from a point than ``width`` and ``height``, pixels."""
    return slice(*lines_near(y, height, LATTICE[0])), slice(*lines_near(x, width, LATTICE[1]))


@kernel
def lines_near(place, reach, count):
    """Return (first, end) of the lines of the lattice, of so many, not farther from a coordinate than ``reach``."""
    first, last = int(math.floor((place - reach) / SPACING)), int(math.ceil((place + reach) / SPACING))
    return max(first, 0), max(min(last + 1, count), 0)


@kernel
def node_length(row, column, x, y, half_width, half_height):
    """Return the distance of a node from a rectangle around a point, pixels."""
    dx, dy = abs(SPACING * column - x) - half_width, abs(SPACING * row - y) - half_height
    dx, dy = dx if dx > 0.0 else 0.0, dy if dy > 0.0 else 0.0
    return math.sqrt(dx * dx + dy * dy)


def nodes_at_door(door: np.void, reach: float = DOOR_REACH) -> np.ndarray:
    """Return (101, 177) bool: the nodes that a ``DOOR`` blocks while it is closed, those nearer than ``reach``."""
    blocked = np.zeros(LATTICE, dtype=np.bool_)
    block_door(float(door["x"]), float(door["y"]), bool(door["vertical"]), reach, blocked, True)
    return blocked


@kernel
def block_door(x, y, vertical, reach, nodes, value):
    """Give the nodes (101, 177) that are nearer to a door than ``reach`` a value."""
    half_width, half_height = (0.0, HALF_DOOR) if vertical else (HALF_DOOR, 0.0)
    first_row, end_row = lines_near(y, half_height + reach, nodes.shape[0])
    first_column, end_column = lines_near(x, half_width + reach, nodes.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if node_length(row, column, x, y, half_width, half_height) < reach:
                nodes[row, column] = value


@kernel
def add_mine(costs, x, y, reach):
    """Make steps into the nodes longer at which the ninja touches a mine, at a distance of ``reach`` pixels.

    ``costs``, (101, 177) float32, are factors of the lengths of steps into nodes.
    """
    first_row, end_row = lines_near(y, reach, costs.shape[0])
    first_column, end_column = lines_near(x, reach, costs.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if node_length(row, column, x, y, 0.0, 0.0) < reach:
                costs[row, column] = _MINE_FACTOR


@kernel
def bar_steps(barred, x, y, orientation, closest):
    """Bar the steps against a one-way platform, and those that lead closer to its face than ``closest``, pixels.

    ``barred`` is (101, 177) uint8: the steps from each node, a bit each (:func:`step_bit`).
    """
    fx, fy = FACING_X[orientation], FACING_Y[orientation]
    before = closest + 2.0 * SPACING
    reach = before if before > _HALF_ONE_WAY else _HALF_ONE_WAY
    first_row, end_row = lines_near(y, reach, barred.shape[0])
    first_column, end_column = lines_near(x, reach, barred.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            dx, dy = SPACING * column - x, SPACING * row - y
            ahead, aside = dx * fx + dy * fy, abs(dy * fx - dx * fy)
            if 0.01 < ahead < before and aside < _HALF_ONE_WAY:
                for b in range(-1, 2):
                    for a in range(-1, 2):
                        step = SPACING * (a * fx + b * fy)
                        if step < 0.0 and ahead + step <= closest:
                            barred[row, column] |= 1 << step_bit(a, b)


@kernel
def step_bit(a, b):
    """Return the bit of a step by (a, b) nodes."""
    number = 3 * (b + 1) + a + 1
    return number - 1 if number > 4 else number


def path_lengths(
    costs: np.ndarray,
    x: float,
    y: float,
    reach: float,
    onward: float = 0.0,
    barred: np.ndarray | None = None,
    towards: bool = True,
) -> np.ndarray:
    """Return (101, 177) float32: the length of the shortest path from each node to a target, ``FAR`` without one.

    Args:
        costs: (101, 177) float32; factor of the length of a step into each node, 0 where it is blocked.
        x: centre of the target, pixels.
        y: likewise.
        reach: radius of the target; if no free node is that near, the nearest ones within three times as far count.
        onward: length of the path from the target on.
        barred: (101, 177) uint8 of :func:`bar_steps`; None: no step is.
        towards: False for paths from the target to each node.
    """
    field = seeds_of(costs, x, y, reach, onward)
    spread(field, costs, SPACING, barred, towards)
    return field


def seeds_of(costs: np.ndarray, x: float, y: float, reach: float, onward: float) -> np.ndarray:
    """Return (101, 177) float32: the lengths of :func:`path_lengths` from nodes at the target, ``FAR`` elsewhere."""
    field = np.zeros(LATTICE, dtype=np.float32)
    write_seeds(field, costs, x, y, reach, onward)
    return field


@kernel
def write_seeds(field, costs, x, y, reach, onward):
    """Write what :func:`seeds_of` returns."""
    farthest, nearest = 3.0 * reach, math.inf
    for row in range(field.shape[0]):
        for column in range(field.shape[1]):
            field[row, column] = FAR
    first_row, end_row = lines_near(y, farthest, field.shape[0])
    first_column, end_column = lines_near(x, farthest, field.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if costs[row, column] > 0.0:
                length = node_length(row, column, x, y, 0.0, 0.0)
                nearest = length if length < nearest else nearest
    if nearest > farthest:
        return
    reach = reach if reach > nearest else nearest
    first_row, end_row = lines_near(y, reach, field.shape[0])
    first_column, end_column = lines_near(x, reach, field.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            length = node_length(row, column, x, y, 0.0, 0.0)
            if costs[row, column] > 0.0 and length <= reach:
                field[row, column] = onward + length


def spread(
    field: np.ndarray, costs: np.ndarray, spacing: float, barred: np.ndarray | None = None, towards: bool = True
) -> None:
    """Shorten the lengths of a seeded field until none can be, pixels, in place.

    Args:
        field: (rows, columns) float32, ``FAR`` or infinite where nothing is known.
        costs: factors as for :func:`path_lengths`, or whether a node is free; none at the border is.
        spacing: pixels from one node to the next; ``barred`` and ``towards`` are as for :func:`path_lengths`.
    """
    steps = np.zeros(field.shape, dtype=np.uint8) if barred is None else barred
    queue, queued = np.empty(field.size, dtype=np.int32), np.zeros(field.shape, dtype=np.bool_)
    spread_lengths(field, costs.astype(np.float32, copy=False), steps, towards, spacing, queue, queued)


@called_kernel
def spread_lengths(field, costs, barred, towards, spacing, queue, queued):
    """Do as :func:`spread` says; scratch for each node, int32 and bool."""
    rows, columns = field.shape
    diagonal = spacing * _DIAGONAL
    first, waiting = 0, 0
    for node in range(rows * columns):
        if field[node // columns, node % columns] < FAR:
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
                row, column = j + b, i + a
                cost = costs[row, column]
                length = np.float32(field[j, i] + cost * (spacing if a == 0 or b == 0 else diagonal))
                if cost > 0.0 and length < field[row, column] and (a != 0 or b != 0):
                    steps = barred[row, column] >> step_bit(-a, -b) if towards else barred[j, i] >> step_bit(a, b)
                    if steps & 1:
                        continue
                    field[row, column] = length
                    if not queued[row, column]:
                        queued[row, column] = True
                        last = first + waiting
                        queue[last if last < queue.shape[0] else last - queue.shape[0]] = row * columns + column
                        waiting += 1


@kernel
def length_at(fields, number, x, y):
    """Return the path length from a point by one of (F, 101, 177) fields: of the nearest node, or of its neighbours."""
    rows, columns = fields.shape[1], fields.shape[2]
    i, j = int((x + 0.5 * SPACING) / SPACING), int((y + 0.5 * SPACING) / SPACING)
    i = 1 if i < 1 else (columns - 2 if i > columns - 2 else i)
    j = 1 if j < 1 else (rows - 2 if j > rows - 2 else j)
    best = fields[number, j, i]
    if best >= FAR:
        for b in range(-1, 2):
            for a in range(-1, 2):
                if fields[number, j + b, i + a] < best:
                    best = fields[number, j + b, i + a]
    return best
