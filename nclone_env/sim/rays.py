"""Rays through the cells, line of sight and shots (physics 01, section 3.10; physics 03, sections 3.2 to 3.5).

Tiles and closed doors stop a ray, open doors do not (physics 03, section 14, rule S6); other entities never do. The
sweep is that of a point, so a segment does not stop a ray that starts on its inner part.
"""

import math

from nclone_env.constants import CELL_SIZE, COLUMNS, RADIUS, ROWS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level import DOOR_CLOSED_AT_0, STRAIGHT
from nclone_env.sim.geometry import (
    clamp_cell,
    disc_meets_segment,
    discs_overlap,
    greater,
    lesser,
    sweep_arc,
    sweep_straight,
)
from nclone_env.sim.life import is_targetable
from nclone_env.sim.query import is_absent

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
def unit(dx, dy):
    """Return a vector divided by its length; (1, 0) for the zero vector (physics 03, section 3.5)."""
    length = math.sqrt(dx * dx + dy * dy)
    if length == 0.0:
        return 1.0, 0.0
    return dx / length, dy / length


@kernel
def direction(dx, dy):
    """Return a vector divided by its length; zeros for the zero vector."""
    length = math.sqrt(dx * dx + dy * dy)
    if length == 0.0:
        return 0.0, 0.0
    return dx / length, dy / length


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
    """Return the length of a ray up to the first wall, pixels, or ``NOTHING``.

    Args:
        states: (N, E) entity states of the worlds, for the doors.
        x, y: start, pixels.
        dx: direction; with ``dy`` a unit vector.
        dy: direction.
    """
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
    first_column, last_column = clamp_cell(lesser(x, xe), COLUMNS - 1), clamp_cell(greater(x, xe), COLUMNS - 1)
    first_row, last_row = clamp_cell(lesser(y, ye), ROWS - 1), clamp_cell(greater(y, ye), ROWS - 1)
    for column in range(first_column, last_column + 1):
        for row in range(first_row, last_row + 1):
            if sweep_cell(levels, states, index, level, column * ROWS + row, x, y, mx, my) < 1.0:
                return True
    return False
