"""The ninja's motion of one frame: integrate, collide, settle the contacts (physics 01, sections 6 to 9)."""

import math

from nclone_env.constants import CELEBRATING, MAX_IMPACT, RADIUS, SWEEP_RADIUS
from nclone_env.jit import kernel
from nclone_env.sim.contacts import (
    CEILING_X,
    CEILING_Y,
    CEILINGS,
    CRUSH_LENGTH,
    CRUSH_X,
    CRUSH_Y,
    CRUSHABLE,
    FLOOR_X,
    FLOOR_Y,
    FLOORS,
    WALL,
    add_contact,
    add_crush,
)
from nclone_env.sim.life import kill
from nclone_env.sim.query import closest_point, sweep_tiles, wall_normal
from nclone_env.sim.touch import visit

_PASSES = 4
_PUSHES = 32
_TOUCHING = 0.0000001
_LEAST_CRUSH = 0.05  # smallest share of the pushes that may remain when they cancel each other
_NUDGE = 7.105427357601002e-15  # 2 ** -47
# Positions at which the original game has a corner defect (section 8.2, step 3).
_NUDGE_LEFT_1, _NUDGE_LEFT_2, _NUDGE_RIGHT = 50.51197510492316, 49.23232124849253, 49.153536108584795


@kernel
def integrate(ninja):
    """Apply drag and gravity and move (section 6.1)."""
    ninja["vx"] = ninja["vx"] * ninja["drag"]
    ninja["vy"] = ninja["vy"] * ninja["drag"]
    ninja["vy"] = ninja["vy"] + ninja["gravity"]
    ninja["x"] = ninja["x"] + ninja["vx"]
    ninja["y"] = ninja["y"] + ninja["vy"]


@kernel
def collide(levels, worlds, index, near, contacts, x0, y0):
    """Collide four times with entities, then tiles; leave the contacts in ``contacts`` (sections 7 and 8).

    The passes stop as soon as one changes nothing: further ones would repeat it.
    """
    ninja = worlds.ninjas[index]
    has_solids = levels.header[ninja["level"]]["has_solids"] != 0
    for _ in range(_PASSES):
        pushes = 0
        if has_solids:
            pushes = visit(levels, worlds, index, near, contacts, x0, y0, True)
        if not collide_with_tiles(levels, worlds, index, contacts, x0, y0) and pushes == 0:
            break


@kernel
def collide_with_tiles(levels, worlds, index, contacts, x0, y0):
    """Sweep the ninja from (x0, y0) to its position, push it out of the tiles; return whether that changed anything."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    level, x, y = ninja["level"], ninja["x"], ninja["y"]
    start, segments = levels.segment_start, levels.segments
    mx, my = x - x0, y - y0
    fraction = sweep_tiles(start, segments, level, states, index, x0, y0, mx, my, SWEEP_RADIUS)
    swept_x, swept_y = x0 + fraction * mx, y0 + fraction * my
    x, y, vx, vy, pushes = depenetrate(
        start, segments, level, states, index, swept_x, swept_y, ninja["vx"], ninja["vy"], contacts
    )
    unmoved = swept_x == ninja["x"] and swept_y == ninja["y"]
    ninja["x"], ninja["y"], ninja["vx"], ninja["vy"] = x, y, vx, vy
    return not unmoved or pushes != 0


@kernel
def depenetrate(segment_start, segments, level, states, index, x, y, vx, vy, contacts):
    """Push the ninja out of the tiles; return its position, velocity and the number of pushes (section 8.2)."""
    pushes = 0
    while pushes < _PUSHES:
        facing, a, b = closest_point(segment_start, segments, level, states, index, x, y, RADIUS)
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
        push_x, push_y = nx * depth, ny * depth
        x += push_x
        y += push_y
        add_crush(contacts, push_x, push_y, depth)
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
def settle(levels, worlds, index, contacts, impact_vx, impact_vy):
    """Set the airborne and walled flags and the floor normal; kill on impact or crush (sections 9.2 to 9.6)."""
    ninja = worlds.ninjas[index]
    was_airborne = ninja["airborne"]
    ninja["airborne"] = 1
    ninja["walled"] = 0
    wall = contacts[WALL]
    if wall == 0.0:
        start, segments, states = levels.segment_start, levels.segments, worlds.entity_states
        wall = wall_normal(start, segments, ninja["level"], states, index, ninja["x"], ninja["y"])
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
    if contacts[CRUSHABLE] != 0.0 and contacts[CRUSH_LENGTH] > 0.0:
        cx, cy = contacts[CRUSH_X], contacts[CRUSH_Y]
        if math.sqrt(cx * cx + cy * cy) / contacts[CRUSH_LENGTH] < _LEAST_CRUSH:
            kill(ninja)


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
