"""The ninja's motion of one frame: integrate, collide, settle the contacts (physics 01, sections 6 to 9)."""

from __future__ import annotations

import math

from nclone_env._jit import kernel
from nclone_env.constants import (
    CELEBRATING,
    DYING,
    FALL_GRAVITY,
    JUMPING,
    MAX_IMPACT,
    RADIUS,
)
from nclone_env.sim.query import closest_point, sweep_tiles, wall_normal

# Slots of the contact scratch: how many floors and ceilings were touched, and the sums of their normals.
FLOORS, FLOOR_X, FLOOR_Y, CEILINGS, CEILING_X, CEILING_Y = range(6)
CONTACT_SLOTS = 6

_PASSES = 4
_PUSHES = 32
_TOUCHING = 0.0000001
_LEVEL_Y = -0.0001  # normals with at least this y count as ceilings, vertical walls included
_NUDGE = 7.105427357601002e-15  # 2 ** -47
# Positions at which the original game has a corner defect (section 8.2, step 3).
_NUDGE_LEFT_1, _NUDGE_LEFT_2, _NUDGE_RIGHT = 50.51197510492316, 49.23232124849253, 49.153536108584795


@kernel
def move(levels, ninja, contacts):
    """Integrate and collide with the tiles; return the velocity before the collisions.

    The four passes of the specification stop as soon as one changes nothing: the rest would repeat it.

    Args:
        levels: ``LevelArrays``.
        ninja: world head, changed in place.
        contacts: (``CONTACT_SLOTS``,) float64 zeros; filled with the contacts.
    """
    x0, y0 = ninja["x"], ninja["y"]
    impact_vx = ninja["vx"] * ninja["drag"]
    impact_vy = ninja["vy"] * ninja["drag"] + ninja["gravity"]
    vx, vy = impact_vx, impact_vy
    x, y = x0 + vx, y0 + vy
    level = ninja["level"]
    for _ in range(_PASSES):
        mx, my = x - x0, y - y0
        fraction = sweep_tiles(levels.segment_start, levels.segments, level, x0, y0, mx, my)
        swept_x, swept_y = x0 + fraction * mx, y0 + fraction * my
        unmoved = swept_x == x and swept_y == y
        x, y, vx, vy, pushes = depenetrate(levels, level, swept_x, swept_y, vx, vy, contacts)
        if unmoved and pushes == 0:
            break
    ninja["x"], ninja["y"], ninja["vx"], ninja["vy"] = x, y, vx, vy
    return impact_vx, impact_vy


@kernel
def depenetrate(levels, level, x, y, vx, vy, contacts):
    """Push the ninja out of the tiles; return its position, velocity and the number of pushes (section 8.2)."""
    pushes = 0
    while pushes < _PUSHES:
        facing, a, b = closest_point(levels.segment_start, levels.segments, level, x, y)
        if facing == 0:
            break
        dx, dy = x - a, y - b
        dx = mend_corner(x, dx)
        square = dx * dx + dy * dy
        d = math.sqrt(square)
        depth = RADIUS - d * facing
        if d == 0.0 or depth < _TOUCHING:
            break
        nx, ny = dx / d, dy / d
        x += nx * depth
        y += ny * depth
        if vx * dx + vy * dy < 0.0:
            z = (vx * dy - vy * dx) / (d * d)
            vx, vy = z * dy, z * (-dx)
        add_contact(contacts, nx, ny, dy)
        pushes += 1
    return x, y, vx, vy, pushes


@kernel
def mend_corner(x, dx):
    """Return dx with tiny values zeroed and three known corner cases of the game nudged (section 8.2, step 3)."""
    if abs(dx) <= _TOUCHING:
        dx = 0.0
        if x == _NUDGE_LEFT_1 or x == _NUDGE_LEFT_2:
            dx = -_NUDGE
        elif x == _NUDGE_RIGHT:
            dx = _NUDGE
    return dx


@kernel
def add_contact(contacts, nx, ny, steepness):
    """Count a contact normal as a floor or a ceiling; vertical walls are ceilings (section 8.2, step 9)."""
    if steepness >= _LEVEL_Y:
        contacts[CEILINGS] += 1.0
        contacts[CEILING_X] += nx
        contacts[CEILING_Y] += ny
    else:
        contacts[FLOORS] += 1.0
        contacts[FLOOR_X] += nx
        contacts[FLOOR_Y] += ny


@kernel
def settle(levels, ninja, contacts, impact_vx, impact_vy):
    """Set the airborne and walled flags and the floor normal; kill on a hard impact (sections 9.2 to 9.5)."""
    was_airborne = ninja["airborne"]
    ninja["airborne"] = 1
    ninja["walled"] = 0
    wall = wall_normal(levels.segment_start, levels.segments, ninja["level"], ninja["x"], ninja["y"])
    if wall != 0.0:
        ninja["walled"] = 1
        ninja["wall_normal"] = wall
    if contacts[FLOORS] > 0.0:
        ninja["airborne"] = 0
        nx, ny = unit_or(contacts[FLOOR_X], contacts[FLOOR_Y], -1.0)
        ninja["floor_x"], ninja["floor_y"] = nx, ny
        if was_airborne != 0:
            hit(ninja, nx, ny, impact_vx, impact_vy)
    if contacts[CEILINGS] > 0.0:
        nx, ny = unit_or(contacts[CEILING_X], contacts[CEILING_Y], 1.0)
        hit(ninja, nx, ny, impact_vx, impact_vy)


@kernel
def unit_or(x, y, default_y):
    """Return (x, y) scaled to length 1, or (0, default_y) if it is zero."""
    n = math.sqrt(x * x + y * y)
    if n == 0.0:
        return 0.0, default_y
    return x / n, y / n


@kernel
def hit(ninja, nx, ny, impact_vx, impact_vy):
    """Kill the ninja if it met a surface with unit normal (nx, ny) too fast; celebrating ninjas survive."""
    if ninja["state"] == CELEBRATING:
        return
    impact = -(nx * impact_vx + ny * impact_vy)
    if impact > MAX_IMPACT - (4.0 / 3.0) * abs(ny):
        ninja["vx"], ninja["vy"] = impact_vx, impact_vy
        kill(ninja)


@kernel
def kill(ninja):
    """Kill the ninja unless it is dead, dying or has won (section 12.2)."""
    leave_play(ninja, DYING)


@kernel
def leave_play(ninja, state):
    """Enter a final state from one in which the ninja still plays; a jump in progress ends."""
    if ninja["state"] < 6:
        if ninja["state"] == JUMPING:
            ninja["gravity"] = FALL_GRAVITY
        ninja["state"] = state
