"""The ninja's motion of one frame: integrate, collide, settle the contacts (physics 01, sections 6 to 9).

Two passes visit the entities in the nine cells around the ninja (physics 02, sections 4.4 and 5), column by column, and
within a cell in the order in which they entered it: *push* asks the solid ones before each collision with the tiles,
*touch* asks all of them once afterwards. A pass sees the list as it was at its beginning: an exit that opens during it
is met in the next frame.
"""

import math

import numpy as np

from nclone_env.game import (
    BOUNCE_BLOCK,
    CELEBRATING,
    COLUMNS,
    KINDS,
    MAX_IMPACT,
    ONE_WAY,
    RADIUS,
    ROWS,
    SWEEP_RADIUS,
    THWUMP,
    bits,
)
from nclone_env.jit import kernel
from nclone_env.level import NO_ENTITY
from nclone_env.sim import dispatch
from nclone_env.sim.geometry import clamp_cell, unit
from nclone_env.sim.ninja import (
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
    kill,
)
from nclone_env.sim.query import cell_of, closest_point, first_near, sweep_tiles, wall_normal
from nclone_env.sim.store import mover_of, movers_of, states_of

# Slots of the scratch that lists movers around a cell: the cell, their count, their keys. A key is exact in a float64:
# it has the difference of the cells (6 bits), the order and the number of the mover.
NEAR_CELL, NEAR_COUNT, NEAR_FIRST = 0, 1, 2
NEAR_SLOTS = 64
_NEAR_MOST = NEAR_SLOTS - NEAR_FIRST
_ORDER_BITS, _NUMBER_BITS = 31, 15
_NUMBER = (1 << _NUMBER_BITS) - 1
_BLOCKS = bits(kind for kind in KINDS if kind.solid and kind.has_mover)
_SPAN = np.uint32(2 * (ROWS + 1))  # between the first and the last of the nine cells
_PASSES = 4
_PUSHES = 32
_TOUCHING = 0.0000001
_LEAST_CRUSH = 0.05  # smallest share of the pushes that may remain when they cancel each other
_NUDGE = 7.105427357601002e-15  # 2 ** -47
# Positions at which the original game has a corner defect (physics 01, section 8.2, step 3).
_NUDGE_LEFT_1, _NUDGE_LEFT_2, _NUDGE_RIGHT = 50.51197510492316, 49.23232124849253, 49.153536108584795


@kernel
def clear_near(near):
    """Forget the list of movers around the ninja: no cell has the number -1."""
    near[NEAR_CELL] = -1.0


@kernel
def visit(levels, worlds, index, near, contacts, x0, y0, pushing):
    """Visit the entities around the ninja and let each push or touch it; return how many pushed it.

    ``near``, ``NEAR_SLOTS`` float64, is kept from one pass of a frame to the next; (x0, y0) is where the ninja was
    before it moved, pixels. Movers and others are merged by cell and order; what is still to be visited changes neither
    during a pass. Of a crowd of movers ``near`` holds a part at a time.
    """
    ninja = worlds.ninjas[index]
    level = ninja["level"]
    header = levels.header[level]
    first_entity, first_mover = header["first_entity"], header["first_mover"]
    centre, before = cell_of(ninja["x"], ninja["y"]), ninja["next_order"]
    i = first_near(levels, level, centre)
    if pushing and header["has_platforms"] == 0:
        i = header["first_near"]  # the empty list
    pushes, last = 0, -1.0
    while True:
        total = list_movers(levels, worlds, index, near, centre, before, pushing, last)
        k, end = NEAR_FIRST, NEAR_FIRST + min(total, _NEAR_MOST)
        while k < end or (levels.near[i] != NO_ENTITY and total <= _NEAR_MOST):
            slot = levels.near[i]
            if slot != NO_ENTITY and (k == end or entity_key(levels.entities[first_entity + slot], centre) <= near[k]):
                i += 1
            else:
                slot = levels.mover_slots[first_mover + number_of(near[k])]
                k += 1
            pushes += meet(worlds, index, levels.entities[first_entity + slot], slot, contacts, x0, y0, pushing)
        if total <= _NEAR_MOST:
            return pushes
        last = near[end - 1]


@kernel
def list_movers(levels, worlds, index, near, centre, before, pushing, last):
    """List the movers in the nine cells around a cell that are to be visited next; return how many are left to visit.

    They are those that entered their cell ``before`` the pass, and whose key is above ``last``, the lowest keys first.
    The list of those that push is kept as long as it is whole and the cell is the same.
    """
    header = levels.header[worlds.ninjas[index]["level"]]
    if pushing and header["has_blocks"] == 0:
        return 0
    if pushing and near[NEAR_CELL] == centre:
        return int(near[NEAR_COUNT])
    near[NEAR_CELL], near[NEAR_COUNT] = -1.0, 0.0
    if pushing:
        for r in range(header["first_run"], header["first_run"] + header["run_count"]):
            run = levels.runs[r]
            if _BLOCKS >> int(run["type"]) & 1:
                first, stop = run["first"] + run["shift"], run["stop"] + run["shift"]
                list_range(worlds, index, near, centre, before, last, first, stop)
        if last < 0.0 and near[NEAR_COUNT] <= _NEAR_MOST:
            near[NEAR_CELL] = centre
    else:
        list_range(worlds, index, near, centre, before, last, 0, header["mover_count"])
    return int(near[NEAR_COUNT])


@kernel
def list_range(worlds, index, near, centre, before, last, first, stop):
    """Add those of the movers ``first`` to ``stop - 1`` to the list; of more than it holds, the lowest keys stay."""
    row, first_cell = centre % ROWS, centre - (ROWS + 1)
    movers, own = movers_of(worlds, index)
    number = first - 1
    while number + 1 < stop:
        number += 1
        if number + 4 <= stop and not any_near(movers, own + number, first_cell):
            number += 3
            continue
        cell = movers[own + number]["cell"]
        if np.uint32(cell - first_cell) > _SPAN:  # more than a column away, as most are
            continue
        order = movers[own + number]["order"]
        # rows next to each other cannot be two columns apart here
        if cell >= 0 and abs(cell % ROWS - row) <= 1 and 0 <= order < before:
            key = float((visiting_key(cell, order, centre) << _NUMBER_BITS) + number)
            if key > last:
                insert(near, key)


@kernel
def any_near(movers, place, first_cell):
    """Return whether one of four movers is at most a column away: a branch for all of them, as most are not."""
    return (
        (np.uint32(movers[place]["cell"] - first_cell) <= _SPAN)
        | (np.uint32(movers[place + 1]["cell"] - first_cell) <= _SPAN)
        | (np.uint32(movers[place + 2]["cell"] - first_cell) <= _SPAN)
        | (np.uint32(movers[place + 3]["cell"] - first_cell) <= _SPAN)
    )


@kernel
def insert(near, key):
    """Put a key into the sorted list of movers around the ninja and count it; a full one loses its highest key."""
    count = int(near[NEAR_COUNT])
    near[NEAR_COUNT] = count + 1
    place = NEAR_FIRST + count
    if count >= _NEAR_MOST:
        place = NEAR_SLOTS - 1
        if near[place] <= key:
            return
    while place > NEAR_FIRST and near[place - 1] > key:
        near[place] = near[place - 1]
        place -= 1
    near[place] = key


@kernel
def visiting_key(cell, order, centre):
    """Return a number by which entities in the nine cells around a cell are visited: by cell, then by order."""
    return (np.int64(cell - centre + ROWS + 1) << _ORDER_BITS) + order


@kernel
def entity_key(entity, centre):
    """Return the key of an entity that never changes its cell, as those of movers in the list."""
    cell = clamp_cell(entity["x"], COLUMNS - 1) * ROWS + clamp_cell(entity["y"], ROWS - 1)
    return float(visiting_key(cell, entity["order"], centre) << _NUMBER_BITS)


@kernel
def number_of(key):
    """Return the number of the mover of a key."""
    return np.int64(key) & _NUMBER


@kernel
def meet(worlds, index, entity, slot, contacts, x0, y0, pushing):
    """Let one entity push or touch the ninja; return 1 if it pushes it out, else 0."""
    if pushing:
        return push(worlds, index, entity, slot, contacts, x0, y0)
    touch(worlds, index, entity, slot, contacts, x0, y0)
    return 0


@kernel
def push(worlds, index, entity, slot, contacts, x0, y0):
    """Let one entity push the ninja out; return 1 if it does, else 0 (physics 01, section 7)."""
    mover = mover_of(worlds, index, max(entity["mover"], 0))
    hit, nx, ny, length = dispatch.push(worlds, index, entity, slot, mover, x0, y0)
    if not hit:
        return 0
    apply_push(worlds.ninjas[index], contacts, entity["type"], nx, ny, length)
    return 1


@kernel
def apply_push(ninja, contacts, kind, nx, ny, length):
    """Move the ninja by a push and change its velocity as the kind demands (physics 01, section 7, steps 1 to 6)."""
    push_x, push_y = nx * length, ny * length
    ninja["x"] += push_x
    ninja["y"] += push_y
    if kind != BOUNCE_BLOCK:
        add_crush(contacts, push_x, push_y, length)
    if kind == THWUMP:
        contacts[CRUSHABLE] = 1.0
    if kind == ONE_WAY:
        z = ninja["vx"] * ny - ninja["vy"] * nx
        ninja["vx"], ninja["vy"] = z * ny, z * (-nx)
    else:
        ninja["vx"] += push_x
        ninja["vy"] += push_y
    add_contact(contacts, nx, ny, ny)


@kernel
def touch(worlds, index, entity, slot, contacts, x0, y0):
    """Let one entity act on the ninja; keep the first wall normal that is reported (physics 01, section 9.1)."""
    wall = dispatch.touch(worlds, index, entity, slot, contacts, x0, y0)
    if wall != 0.0 and contacts[WALL] == 0.0:
        contacts[WALL] = wall


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
    header = levels.header[ninja["level"]]
    has_solids = header["has_platforms"] != 0 or header["has_blocks"] != 0
    for _ in range(_PASSES):
        pushes = 0
        if has_solids:
            pushes = visit(levels, worlds, index, near, contacts, x0, y0, True)
        if not collide_with_tiles(levels, worlds, index, contacts, x0, y0) and pushes == 0:
            break


@kernel
def collide_with_tiles(levels, worlds, index, contacts, x0, y0):
    """Sweep the ninja from (x0, y0) to its position, push it out of the tiles; return whether that changed anything."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    level, x, y = ninja["level"], ninja["x"], ninja["y"]
    mx, my = x - x0, y - y0
    fraction = sweep_tiles(levels, level, states, own, x0, y0, mx, my, SWEEP_RADIUS)
    swept_x, swept_y = x0 + fraction * mx, y0 + fraction * my
    x, y, vx, vy, pushes = depenetrate(levels, level, states, own, swept_x, swept_y, ninja["vx"], ninja["vy"], contacts)
    unmoved = swept_x == ninja["x"] and swept_y == ninja["y"]
    ninja["x"], ninja["y"], ninja["vx"], ninja["vy"] = x, y, vx, vy
    return not unmoved or pushes != 0


@kernel
def depenetrate(levels, level, states, own, x, y, vx, vy, contacts):
    """Push the ninja out of the tiles; return its position, velocity and the number of pushes (section 8.2)."""
    pushes = 0
    while pushes < _PUSHES:
        facing, a, b = closest_point(levels, level, states, own, x, y, RADIUS)
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
        states, own = states_of(worlds, index)
        wall = wall_normal(levels, ninja["level"], states, own, ninja["x"], ninja["y"])
    if wall != 0.0:
        ninja["walled"] = 1
        ninja["wall_normal"] = wall
    if contacts[FLOORS] > 0.0:
        ninja["airborne"] = 0
        nx, ny = unit(contacts[FLOOR_X], contacts[FLOOR_Y], 0.0, -1.0)
        ninja["floor_x"], ninja["floor_y"] = nx, ny
        if was_airborne != 0:
            hit(ninja, nx, ny, impact_vx, impact_vy)
    if contacts[CEILINGS] > 0.0:
        nx, ny = unit(contacts[CEILING_X], contacts[CEILING_Y], 0.0, 1.0)
        hit(ninja, nx, ny, impact_vx, impact_vy)
    if contacts[CRUSHABLE] != 0.0 and contacts[CRUSH_LENGTH] > 0.0:
        cx, cy = contacts[CRUSH_X], contacts[CRUSH_Y]
        if math.sqrt(cx * cx + cy * cy) / contacts[CRUSH_LENGTH] < _LEAST_CRUSH:
            kill(ninja)


@kernel
def hit(ninja, nx, ny, impact_vx, impact_vy):
    """Kill the ninja if it met a surface with unit normal (nx, ny) too fast; celebrating ninjas survive."""
    if ninja["state"] == CELEBRATING:
        return
    impact = -(nx * impact_vx + ny * impact_vy)
    if impact > MAX_IMPACT - (4.0 / 3.0) * abs(ny):
        ninja["vx"], ninja["vy"] = impact_vx, impact_vy
        kill(ninja)
