"""Entities that never leave their place: gold, exits, doors and their switches, mines, pads and one-way platforms.

Those of physics 02, sections 6.1 to 6.10 and 6.19. A closed exit is in no cell; it enters its cell when its switch is
taken, so the earliest touch is in the next frame (physics 01, section 12.4). The state of a regular door is 0 while it
is closed, else 1 + frames since the ninja left it (physics 03, section 14, rule S1). Whether the segment and the
lattice edges of a door are present follows from its state alone. Launch pads and one-way platforms use no state.
"""

import math

from nclone_env.game import (
    BOOST_PAD,
    CELEBRATING,
    DEAD,
    DISABLED,
    DYING,
    EXIT,
    EXIT_SWITCH,
    FACING_X,
    FACING_Y,
    FALL_GRAVITY,
    FALLING,
    GOLD,
    JUMPING,
    KINDS,
    LAUNCH_PAD,
    LOCKED_DOOR_SWITCH,
    MINE,
    RADIUS,
    REGULAR_DOOR,
    TRAP_DOOR,
)
from nclone_env.jit import kernel
from nclone_env.level import NO_ENTITY
from nclone_env.sim.geometry import sweep_point
from nclone_env.sim.ninja import FLOORS, kill, meets, touches, win
from nclone_env.sim.query import cell_of, enter, first_near
from nclone_env.sim.store import mover_of, states_of

_UNTOUCHED, _TAKEN = KINDS[GOLD].states.values()  # and of all switches; that of a door is one entity with the door
_GOLD_RADIUS, _EXIT_RADIUS, _EXIT_SWITCH_RADIUS, _DOOR_SWITCH_RADIUS, _LAUNCH_PAD_RADIUS, _BOOST_PAD_RADIUS = (
    KINDS[kind].radii[0] for kind in (GOLD, EXIT, EXIT_SWITCH, LOCKED_DOOR_SWITCH, LAUNCH_PAD, BOOST_PAD)
)
_EXIT_OPEN = KINDS[EXIT].states["open"]
_CLOSED, _JUST_OPENED, _LAST_OPEN = KINDS[REGULAR_DOOR].states.values()
_TRAP_OPEN = KINDS[TRAP_DOOR].states["open"]
_REGULAR_DOOR_RADIUS = 10.0
_ARMED, _SAFE, _STEPPED_ON = KINDS[MINE].states.values()
_MINE_RADII = KINDS[MINE].radii  # by state
_LAUNCH_STRENGTH = 36.0 / 7.0
_BEHIND = -0.1  # the ninja's rearmost point may be this far beyond the pad's plane
_PAD_IDLE, _PAD_TOUCHED = KINDS[BOOST_PAD].states.values()
_BOOST = 2.0
_INWARD_LIMIT, _OUTWARD_LIMIT = 21.0, 17.1  # lateral reach of a platform, by whether the ninja moves to its middle
_DEEPEST = 1.1  # how far the ninja may already have been inside before it moved


@kernel
def touch_gold(ninja, entity, states, own, slot):
    """Count and take the gold unless the ninja has won (physics 02, section 6.2)."""
    if states[own + slot] != _UNTOUCHED or ninja["state"] == CELEBRATING:
        return
    if touches(ninja, entity["x"], entity["y"], _GOLD_RADIUS):
        states[own + slot] = _TAKEN
        ninja["gold"] += 1


@kernel
def touch_exit(ninja, entity, x0, y0):
    """Win; store the fraction of the frame used, and rewrite it as long as the contact lasts (section 6.3)."""
    x, y = ninja["x"], ninja["y"]
    if touches(ninja, entity["x"], entity["y"], _EXIT_RADIUS):
        win(ninja)
        ninja["finish_fraction"] = sweep_point(x0, y0, x - x0, y - y0, entity["x"], entity["y"], _EXIT_RADIUS + RADIUS)


@kernel
def touch_exit_switch(worlds, index, entity, slot):
    """Take the switch and open its exit, the entity before it, whose mover enters its cell now (section 6.4)."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    if states[own + slot] == _UNTOUCHED and touches(ninja, entity["x"], entity["y"], _EXIT_SWITCH_RADIUS):
        states[own + slot], states[own + slot - 1] = _TAKEN, _EXIT_OPEN
        mover = mover_of(worlds, index, entity["mover"])
        enter(ninja, mover, cell_of(mover["x"], mover["y"]))


@kernel
def think_regular_door(levels, worlds, index, slot, entity, mover):
    """Count the frames since the last touch of a regular door; close in the sixth (section 6.5)."""
    states, own = states_of(worlds, index)
    state = states[own + slot]
    if state != _CLOSED:
        states[own + slot] = state + 1 if state < _LAST_OPEN else _CLOSED


@kernel
def touch_regular_door(ninja, entity, states, own, slot):
    """Open on contact."""
    if touches(ninja, entity["x"], entity["y"], _REGULAR_DOOR_RADIUS):
        states[own + slot] = _JUST_OPENED


@kernel
def touch_switched_door(ninja, entity, states, own, slot):
    """Open a locked door or close a trap door, once, at its switch (sections 6.6 to 6.8)."""
    if states[own + slot] == _UNTOUCHED and touches(ninja, entity["x"], entity["y"], _DOOR_SWITCH_RADIUS):
        states[own + slot] = _TAKEN


@kernel
def is_closed(kind, state):
    """Return whether a door is closed, by its kind and the state of its entity."""
    return (state != _TRAP_OPEN) if kind == TRAP_DOOR else (state == _CLOSED)


@kernel
def think_mines(levels, worlds, index, base, first, stop):
    """Let the toggle mines ``first`` to ``stop - 1`` think: those that were stepped on, and those near the ninja.

    A mine that does both thinks twice, which is as good as once.
    """
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    if has_state(states, own, first, stop, _STEPPED_ON):
        for slot in range(first, stop):
            if states[own + slot] == _STEPPED_ON:
                think_mine(ninja, levels.entities[base + slot], states, own, slot)
    i = first_near(levels, ninja["level"], cell_of(ninja["x"], ninja["y"]))
    while levels.near[i] != NO_ENTITY:
        slot = levels.near[i]
        if first <= slot < stop:
            think_mine(ninja, levels.entities[base + slot], states, own, slot)
        i += 1


@kernel
def has_state(states, own, first, stop, state):
    """Return whether any of the entities ``first`` to ``stop - 1`` is in a state."""
    found = False
    for slot in range(first, stop):
        found |= states[own + slot] == state
    return found


@kernel
def think_mine(ninja, entity, states, own, slot):
    """Register the ninja stepping on, arm when it steps off; a ninja that dies on the mine leaves it safe.

    Toggle mines start safe. A mine that is none is safe only after it has killed, and then for good: it need not think
    (section 6.1).
    """
    state = states[own + slot]
    if state == _ARMED:
        return
    touched = meets(ninja, entity["x"], entity["y"], _MINE_RADII[state])
    if state == _STEPPED_ON and not touched:
        gone = ninja["state"] == DEAD or ninja["state"] == DISABLED
        states[own + slot] = _SAFE if gone else _ARMED
    elif state == _SAFE and touched:
        states[own + slot] = _STEPPED_ON


@kernel
def touch_mine(ninja, entity, states, own, slot):
    """Kill a targetable ninja that touches an armed mine; the mine becomes safe."""
    if states[own + slot] == _ARMED and meets(ninja, entity["x"], entity["y"], _MINE_RADII[_ARMED]):
        states[own + slot] = _SAFE
        kill(ninja)


@kernel
def describe_mine(state):
    """Describe a mine, see ``sim.dispatch.describe``."""
    phase = 1.0 if state == _ARMED else (0.5 if state == _STEPPED_ON else 0.0)
    return 0.0, 0.0, 0.0, 0.0, phase, state == _ARMED, False


@kernel
def mine_radius(state):
    """Return the radius of a mine, pixels."""
    return _MINE_RADII[state]


@kernel
def touch_launch_pad(ninja, entity, contacts):
    """Throw a targetable ninja that is not dying and comes from the front (section 6.9; physics 03, rule S3)."""
    px, py, x, y = entity["x"], entity["y"], ninja["x"], ninja["y"]
    if ninja["state"] == DYING or not meets(ninja, px, py, _LAUNCH_PAD_RADIUS):
        return
    fx, fy = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    if (px - (x - RADIUS * fx)) * fx + (py - (y - RADIUS * fy)) * fy >= _BEHIND:
        lift = 1.0 if fy >= 0.0 else 1.0 - fy
        throw(ninja, contacts, fx * _LAUNCH_STRENGTH, fy * _LAUNCH_STRENGTH * lift)


@kernel
def throw(ninja, contacts, boost_x, boost_y):
    """Move the ninja by two thirds of a boost, which become its velocity (physics 02, section 5.3)."""
    wx, wy = boost_x * 2.0 / 3.0, boost_y * 2.0 / 3.0
    ninja["x"] += wx
    ninja["y"] += wy
    ninja["vx"], ninja["vy"] = wx, wy
    contacts[FLOORS] = 0.0
    ninja["floor_buffer"] = -1
    m = math.sqrt(wx * wx + wy * wy)
    ninja["pad_x"], ninja["pad_y"] = wx / m, wy / m
    ninja["pad_buffer"] = 0
    if ninja["state"] == JUMPING:
        ninja["gravity"] = FALL_GRAVITY
    ninja["state"] = FALLING


@kernel
def describe_launch_pad(entity):
    """Describe a launch pad, see ``sim.dispatch.describe``."""
    return 0.0, 0.0, FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]], 0.0, False, False


@kernel
def move_boost_pads(levels, worlds, index, base, first, stop):
    """Let the boost pads ``first`` to ``stop - 1`` act, unless all are idle and none is near the ninja."""
    ninja = worlds.ninjas[index]
    states, own = states_of(worlds, index)
    i = first_near(levels, ninja["level"], cell_of(ninja["x"], ninja["y"]))
    wanted = has_state(states, own, first, stop, _PAD_TOUCHED)
    while levels.near[i] != NO_ENTITY:
        wanted |= first <= levels.near[i] < stop
        i += 1
    if wanted:
        for slot in range(first, stop):
            move_boost_pad(ninja, levels.entities[base + slot], states, own, slot)


@kernel
def move_boost_pad(ninja, entity, states, own, slot):
    """Accelerate a targetable ninja once on arrival, in its direction of motion (section 6.19)."""
    if not meets(ninja, entity["x"], entity["y"], _BOOST_PAD_RADIUS):
        states[own + slot] = _PAD_IDLE
    elif states[own + slot] == _PAD_IDLE:
        boost(ninja)
        states[own + slot] = _PAD_TOUCHED


@kernel
def boost(ninja):
    """Accelerate the ninja in its direction of motion."""
    vx, vy = ninja["vx"], ninja["vy"]
    speed = math.sqrt(vx * vx + vy * vy)
    if speed > 0.0:
        ninja["vx"] = vx + _BOOST * vx / speed
        ninja["vy"] = vy + _BOOST * vy / speed


@kernel
def push_one_way(ninja, entity, x0, y0, least):
    """Return (hit, nx, ny, length): out of the platform if the ninja comes from its front (section 6.10).

    Its centre is farther than ``least`` in front of the platform: 0 in the game, pixels.
    """
    fx, fy = FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    px, py, vx, vy = entity["x"], entity["y"], ninja["vx"], ninja["vy"]
    dx, dy = ninja["x"] - px, ninja["y"] - py
    lateral = dy * fx - dx * fy
    limit = _INWARD_LIMIT if (vy * fx - vx * fy) * lateral < 0.0 else _OUTWARD_LIMIT
    if abs(lateral) >= limit:
        return False, 0.0, 0.0, 0.0
    distance = dx * fx + dy * fy
    if not least < distance <= RADIUS or vx * fx + vy * fy > 0.0:
        return False, 0.0, 0.0, 0.0
    before = (x0 - px) * fx + (y0 - py) * fy
    if RADIUS - before > _DEEPEST:
        return False, 0.0, 0.0, 0.0
    return True, fx, fy, RADIUS - distance


@kernel
def touch_one_way(ninja, entity, x0, y0):
    """Return the wall normal of an upright platform that holds the ninja, otherwise 0."""
    hit, fx, _, _ = push_one_way(ninja, entity, x0, y0, 0.0)
    return fx if hit and abs(fx) == 1.0 else 0.0


@kernel
def describe_one_way(entity):
    """Describe a one-way platform, see ``sim.dispatch.describe``."""
    return 0.0, 0.0, FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]], 0.0, False, True
