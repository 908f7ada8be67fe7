"""Queries about a place: cells and their entities, the lattice of obstacles, segments, rays, sight and shots.

A cell's list holds its entities in the order in which they entered it, in which they act (physics 02, section 4.3).
Entities that never leave their cell are sorted in the level; a mover carries its cell and an order number that grows
with every entry, so it sorts behind earlier ones.

An edge of the half-cell lattice is an obstacle to entities that move if tiles contribute to it or a closed door lies on
it (physics 01, section 3.14; physics 02, section 4.8).

Searches over the segments around a place follow physics 01, sections 3.1, 3.5, 3.9 and 9.2. Cells are numbered column
by column, so the cells of one column of a rectangle are one run of segments, and visiting the runs from left to right
follows the order of the specification.

Tiles and closed doors stop a ray, open doors do not (physics 01, section 3.10; physics 03, sections 3.2 to 3.5, and
section 14, rule S6); other entities never do. The sweep is that of a point, so a segment does not stop a ray that
starts on its inner part.
"""

import math

from nclone_env.game import CELL_SIZE, COLUMNS, KINDS, RADIUS, ROWS, TRAP_DOOR, WALL_REACH, bits
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import CONVEX, DOOR_CLOSED_AT_0, EDGE_DOOR, EDGE_VALUE, HORIZONTAL, STRAIGHT, VERTICAL
from nclone_env.sim.geometry import (
    clamp_cell,
    closest_on_arc,
    closest_on_straight,
    disc_meets_segment,
    discs_overlap,
    greater,
    lesser,
    sweep_arc,
    sweep_straight,
)
from nclone_env.sim.ninja import is_targetable

_LAST_COLUMN, _LAST_ROW = 88, 50

_HAS_MOVER = bits(kind for kind in KINDS if kind.has_mover)
_FAR = 9999999.0
_FRONT_BONUS = 0.1  # subtracted from the squared distance of front faces (physics 01, section 3.5)

RAY_LENGTH = 2000.0
NOTHING = -1.0
"""The length of a ray that leaves the cells and meets nothing."""

NO_BEAM, BEAM, SHOT_FIRED, AIM, ROCKET_TRAIL = -1, 0, 1, 2, 3
"""Emissions of an entity: none, a beam that kills in the next frame, a shot fired in one of the last ``SHOT_SHOWN``
frames, an aiming line, the trail of a rocket; the last three are harmless."""
SHOT_SHOWN = 4  # frames, including that of the shot: one agent step at the default frame_skip
TO_THE_WALL = -1.0
"""The length of a beam that ends at the first wall."""

_NEVER = 999999.0
_SLACK = 0.001  # far above the rounding error of a distance, pixels
_MOST_CELLS = COLUMNS + ROWS  # that a straight line can meet


@kernel
def cell_of(x, y):
    """Return the clamped cell number of a position."""
    return clamp_cell(x, COLUMNS - 1) * ROWS + clamp_cell(y, ROWS - 1)


@kernel
def refresh(ninja, mover):
    """Register a mover in the cell of its position, behind the others there, if that cell has changed."""
    if not is_within(mover["cell"], mover["x"], mover["y"]):
        cell = cell_of(mover["x"], mover["y"])
        if cell != mover["cell"]:
            enter(ninja, mover, cell)


@kernel
def is_within(cell, x, y):
    """Return whether a position lies in a cell: the common case, decided without a division."""
    row = whole_24ths(int(y))
    return cell == whole_24ths(int(x)) * ROWS + row and 0 <= row < ROWS


@kernel
def whole_24ths(number):
    """Return ``number // 24`` for whole numbers from 0 to 2**29: the factor is 2**32 / 24, rounded up."""
    return (number * 178956971) >> 32


@kernel
def enter(ninja, mover, cell):
    """Register a mover in a cell, behind the others there."""
    mover["cell"] = cell
    mover["order"] = ninja["next_order"]
    ninja["next_order"] += 1


@kernel
def half_cell(value):
    """Return the half-cell coordinate of a pixel coordinate, not clamped."""
    return int(math.floor(value / 12.0))


@kernel
def tile_edge(levels, level, direction, column, row):
    """Return the contribution of the tiles to the clamped lattice edge: 0 open, 1 half-solid, 2 solid."""
    i, j = min(max(column, 0), _LAST_COLUMN), min(max(row, 0), _LAST_ROW)
    return levels.grid[level, direction, j, i] & EDGE_VALUE


@kernel
def is_blocked(levels, states, index, level, direction, column, row):
    """Return whether the clamped lattice edge is an obstacle in a world."""
    i, j = min(max(column, 0), _LAST_COLUMN), min(max(row, 0), _LAST_ROW)
    value = levels.grid[level, direction, j, i]
    if value == 0:
        return False
    if value & EDGE_VALUE:
        return True
    return value & EDGE_DOOR != 0 and closed_door_on(levels, states, index, level, direction, i, j)


@kernel
def closed_door_on(levels, states, index, level, direction, i, j):
    """Return whether a door that is closed in a world lies on a lattice edge."""
    first = levels.header[level]["first_door"]
    for number in range(first, first + levels.header[level]["door_count"]):
        door = levels.doors[number]
        a, b = 2 * door["column"], 2 * door["row"]
        if direction == VERTICAL:
            on_edge = door["vertical"] != 0 and i == a + 2 and (j == b or j == b + 1)
        else:
            on_edge = door["vertical"] == 0 and j == b + 2 and (i == a or i == a + 1)
        if on_edge and (states[index, door["owner"]] != 0) == (door["type"] == TRAP_DOOR):
            return True
    return False


@kernel
def empty_row(levels, states, index, level, first, last, row, direction):
    """Return whether the lower (1) or upper (-1) edges of half-cell columns ``first`` to ``last`` of a row are free."""
    line = row + 1 if direction == 1 else row
    for column in range(first, last + 1):
        if is_blocked(levels, states, index, level, HORIZONTAL, column, line):
            return False
    return direction == 1 or direction == -1


@kernel
def empty_column(levels, states, index, level, column, first, last, direction):
    """Return whether the right (1) or left (-1) edges of half-cell rows ``first`` to ``last`` of a column are free."""
    line = column + 1 if direction == 1 else column
    for row in range(first, last + 1):
        if is_blocked(levels, states, index, level, VERTICAL, line, row):
            return False
    return direction == 1 or direction == -1


@kernel
def empty_line(levels, states, index, level, horizontal, along, first, last, direction):
    """Return :func:`empty_column` for horizontal motion, :func:`empty_row` for vertical, at ``along``."""
    if horizontal:
        return empty_column(levels, states, index, level, along, first, last, direction)
    return empty_row(levels, states, index, level, first, last, along, direction)


@kernel
def is_absent(segment, states, index):
    """Return whether a segment belongs to a door that is open in a world."""
    kind = segment["kind"]
    if kind < DOOR_CLOSED_AT_0:
        return False
    return (states[index, segment["owner"]] == 0) != (kind == DOOR_CLOSED_AT_0)


@kernel
def closest_on(segment, px, py):
    """Return (back-facing, a, b) of one segment record; doors have no back."""
    kind = segment["kind"]
    x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
    if kind == STRAIGHT:
        return closest_on_straight(x1, y1, x2, y2, px, py)
    if kind >= DOOR_CLOSED_AT_0:
        _, a, b = closest_on_straight(x1, y1, x2, y2, px, py)
        return False, a, b
    return closest_on_arc(x1, y1, x2, y2, kind == CONVEX, px, py)


@kernel
def place_of(worlds, index, entity):
    """Return the present position of an entity, pixels. A switch shares its exit's mover, but does not move."""
    if _HAS_MOVER >> int(entity["type"]) & 1:
        mover = worlds.movers[index, entity["mover"]]
        return mover["x"], mover["y"]
    return float(entity["x"]), float(entity["y"])


@kernel
def cells_between(left, top, right, bottom):
    """Return (first column, last column, first row, last row) of the cells of a rectangle."""
    first_column, last_column = clamp_cell(left, COLUMNS - 1), clamp_cell(right, COLUMNS - 1)
    return first_column, last_column, clamp_cell(top, ROWS - 1), clamp_cell(bottom, ROWS - 1)


@kernel
def cells_within(x, y, reach):
    """Return the same of the cells of a square around (x, y)."""
    return cells_between(x - reach, y - reach, x + reach, y + reach)


@kernel
def closest_point(segment_start, segments, level, states, index, px, py, reach):
    """Return (facing, a, b): the closest point of the segments in the cells within ``reach``.

    Facing is 0 without a segment, 1 in front, -1 behind. There is no limit on the distance (physics 01, section 3.5).
    """
    first_column, last_column, first_row, last_row = cells_within(px, py, reach)
    best, facing, best_a, best_b = _FAR, 0, 0.0, 0.0
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if is_absent(segments[i], states, index):
                continue
            back, a, b = closest_on(segments[i], px, py)
            dx, dy = px - a, py - b
            distance = dx * dx + dy * dy
            if not back:
                distance -= _FRONT_BONUS
            if distance < best:
                best, best_a, best_b = distance, a, b
                facing = -1 if back else 1
    return facing, best_a, best_b


@kernel
def sweep_tiles(segment_start, segments, level, states, index, xs, ys, mx, my, radius):
    """Return the fraction of the displacement (mx, my) up to the first contact of a disc (physics 01, section 3.9)."""
    margin = radius + 1.0
    xe, ye = xs + mx, ys + my
    left, right = lesser(xs, xe) - margin, greater(xs, xe) + margin
    top, bottom = lesser(ys, ye) - margin, greater(ys, ye) + margin
    first_column, last_column, first_row, last_row = cells_between(left, top, right, bottom)
    fraction = 1.0
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            segment = segments[i]
            x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
            if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
                # A segment outside the swept box is out of reach: its exact result is 1.
                if max(x1, x2) < left or min(x1, x2) > right or max(y1, y2) < top or min(y1, y2) > bottom:
                    continue
                if is_absent(segment, states, index):
                    continue
                f = sweep_straight(xs, ys, mx, my, x1, y1, x2, y2, radius)
            else:
                f = sweep_arc(xs, ys, mx, my, x1, y1, x2, y2, radius)
            fraction = lesser(fraction, f)
    return fraction


@kernel
def wall_normal(segment_start, segments, level, states, index, px, py):
    """Return the horizontal normal, about -1 or 1, of the first wall within reach, else 0 (physics 01, section 9.2)."""
    first_column, last_column, first_row, last_row = cells_within(px, py, WALL_REACH)
    for column in range(first_column, last_column + 1):
        start = segment_start[level, column * ROWS + first_row]
        stop = segment_start[level, column * ROWS + last_row + 1]
        for i in range(start, stop):
            if is_absent(segments[i], states, index):
                continue
            _, a, b = closest_on(segments[i], px, py)
            dx, dy = px - a, py - b
            if abs(dy) < 0.00001:
                distance = math.sqrt(dx * dx + dy * dy)
                if dx != 0.0 and 0.0 < distance <= WALL_REACH:
                    return dx / distance
    return 0.0


@kernel
def sweep_cell(levels, states, index, level, cell, x, y, mx, my):
    """Return the fraction of the displacement (mx, my) that a point can move before it meets a segment of a cell."""
    fraction = 1.0
    for i in range(levels.segment_start[level, cell], levels.segment_start[level, cell + 1]):
        segment = levels.segments[i]
        if is_absent(segment, states, index):
            continue
        x1, y1, x2, y2 = segment["x1"], segment["y1"], segment["x2"], segment["y2"]
        if segment["kind"] == STRAIGHT or segment["kind"] >= DOOR_CLOSED_AT_0:
            fraction = lesser(fraction, sweep_straight(x, y, mx, my, x1, y1, x2, y2, 0.0))
        else:
            fraction = lesser(fraction, sweep_arc(x, y, mx, my, x1, y1, x2, y2, 0.0))
    return fraction


@kernel
def grid_steps(position, direction, cell):
    """Return (step of the cell, length between two crossings of its borders, length to the first) on one axis."""
    if direction > 0.0:
        return 1, CELL_SIZE / direction, ((cell + 1) * CELL_SIZE - position) / direction
    if direction < 0.0:
        return -1, -CELL_SIZE / direction, (cell * CELL_SIZE - position) / direction
    return 0, 0.0, _NEVER


@called_kernel
def ray(levels, states, index, level, x, y, dx, dy):
    """Return the length of a ray from (x, y) along a unit vector up to the first wall, pixels, or ``NOTHING``."""
    column, row = int(math.floor(x / CELL_SIZE)), int(math.floor(y / CELL_SIZE))
    step_x, spacing_x, next_x = grid_steps(x, dx, column)
    step_y, spacing_y, next_y = grid_steps(y, dy, row)
    for _ in range(_MOST_CELLS):
        cell = min(max(column, 0), COLUMNS - 1) * ROWS + min(max(row, 0), ROWS - 1)
        fraction = sweep_cell(levels, states, index, level, cell, x, y, RAY_LENGTH * dx, RAY_LENGTH * dy)
        if fraction < 1.0:
            return RAY_LENGTH * fraction
        if next_x < next_y:
            column += step_x
            next_x += spacing_x
        else:
            row += step_y
            next_y += spacing_y
        if column < 0 or column >= COLUMNS or row < 0 or row >= ROWS:
            return NOTHING
    return NOTHING


@kernel
def sees(levels, states, index, ninja, x, y):
    """Return whether a targetable ninja can be seen from a point (physics 03, section 3.3)."""
    if not is_targetable(ninja):
        return False
    dx, dy = ninja["x"] - x, ninja["y"] - y
    distance = math.sqrt(dx * dx + dy * dy)
    if distance < RADIUS:
        return True
    length = ray(levels, states, index, ninja["level"], x, y, dx / distance, dy / distance)
    return length != NOTHING and length > distance - RADIUS


@kernel
def is_beside(ninja, x, y, dx, dy, slack):
    """Return whether a beam of unlimited length may hit the ninja, given an error of ``slack`` pixels."""
    reach = RADIUS + slack
    px, py = ninja["x"] - x, ninja["y"] - y
    return abs(px * dy - py * dx) < reach and px * dx + py * dy > -reach


@kernel
def shot(levels, states, index, ninja, x, y, dx, dy):
    """Return whether a beam from (x, y) along the unit vector (dx, dy) hits the ninja (physics 03, section 3.4)."""
    if not is_targetable(ninja) or not is_beside(ninja, x, y, dx, dy, _SLACK):
        return False
    length = ray(levels, states, index, ninja["level"], x, y, dx, dy)
    if length == NOTHING:
        length = RAY_LENGTH
    if length == 0.0:
        return discs_overlap(ninja["x"], ninja["y"], x, y, RADIUS)
    return disc_meets_segment(ninja["x"], ninja["y"], RADIUS, x, y, x + length * dx, y + length * dy)


@kernel
def step_meets_wall(levels, states, index, level, x, y, mx, my):
    """Return whether a point meets a segment within one step (mx, my), by the cells of the step's rectangle.

    This is the sweep of rockets (physics 03, section 8.2, rules R2 and R3).
    """
    xe, ye = x + mx, y + my
    cells = cells_between(lesser(x, xe), lesser(y, ye), greater(x, xe), greater(y, ye))
    for column in range(cells[0], cells[1] + 1):
        for row in range(cells[2], cells[3] + 1):
            if sweep_cell(levels, states, index, level, column * ROWS + row, x, y, mx, my) < 1.0:
                return True
    return False
