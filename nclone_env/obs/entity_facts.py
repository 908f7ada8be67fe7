"""What ``entity_states`` says of one entity: where it is, how it moves and faces, its phase, and what touching it does.

Phases; kinds that are not named are always at rest:

| kind | 0 | 0.5 | 1 |
|---|---|---|---|
| mines | safe | stepped on | armed |
| exit, doors | closed exit, open door | | open exit, shut door |
| boost pad | free | | touched |
| chaser drone | patrols | | chases |
| laser drone, chaingun drone | patrols, recovers | warns | fires |
| floor guard | waits | | runs |
| thwump | waits | returns | charges |
| shove thwump | waits | is pressed, returns | flies off |
| rocket turret | waits | warns | its rocket flies |
| gauss turret | waits, recovers | aims | is about to shoot |
| evil ninja | waits | is on its way to the place of the touch | follows |
| laser turret, zap drone, mini drone, death ball | | | always |
"""

from __future__ import annotations

import math

from nclone_env import constants as c
from nclone_env.constants import (
    BOOST_PAD,
    BOUNCE_BLOCK,
    CHAINGUN_DRONE,
    CHASER_DRONE,
    DEATH_BALL,
    ENTITY_NAMES,
    EVIL_DELAY,
    EVIL_NINJA,
    EXIT,
    EXIT_SWITCH,
    FACING_X,
    FACING_Y,
    FLOOR_GUARD,
    GAUSS_TURRET,
    GOLD,
    LASER_DRONE,
    LASER_TURRET,
    LAUNCH_PAD,
    LOCKED_DOOR,
    LOCKED_DOOR_SWITCH,
    MINE,
    MINE_ARMED,
    MINE_RADII,
    MINE_STEPPED_ON,
    MINI_DRONE,
    ONE_WAY,
    REGULAR_DOOR,
    ROCKET_TURRET,
    SHOVE_THWUMP,
    THWUMP,
    TOGGLE_MINE,
    TRAP_DOOR,
    TRAP_DOOR_SWITCH,
    ZAP_DRONE,
)
from nclone_env.jit import kernel
from nclone_env.sim.entities import (
    chaser_drone,
    drone,
    evil_ninja,
    floor_guard,
    gauss_turret,
    rocket_turret,
    shooting_drone,
    shove_thwump,
    thwump,
)
from nclone_env.sim.trigonometry import sin_cos

HEADING_X, HEADING_Y = drone.HEADING_X, drone.HEADING_Y
ZAP_SPEED, MINI_SPEED, chaser_speed = drone.ZAP_SPEED, drone.MINI_SPEED, chaser_drone.speed_of
LASER_SPEED, CHAINGUN_SPEED = shooting_drone.LASER_SPEED, shooting_drone.CHAINGUN_SPEED
DRONE_PHASE, PATROL = shooting_drone.PHASE, shooting_drone.PATROL
DRONE_WARNING, DRONE_FIRING = shooting_drone.WARNING, shooting_drone.FIRING
GUARD_SPEED, thwump_axis = floor_guard.SPEED, thwump.axis
CHARGE_SPEED, THWUMP_RETURN, THWUMP_CHARGING = thwump.CHARGE_SPEED, thwump.RETURN_SPEED, thwump.CHARGING
SHOVE_STATE, PRESSED, LAUNCHING = shove_thwump.STATE, shove_thwump.PRESSED, shove_thwump.LAUNCHING
LAUNCH_SPEED, SHOVE_RETURN = shove_thwump.LAUNCH_SPEED, shove_thwump.RETURN_SPEED
FLYING, ROCKET_SPEEDS = rocket_turret.FLYING, rocket_turret.SPEEDS
GAUSS_AIMING, GAUSS_WARNING, GAUSS_RECOVERING = gauss_turret.AIMING, gauss_turret.WARNING, gauss_turret.RECOVERING
EVIL_CHARGING, EVIL_ACTIVE, recall = evil_ninja.CHARGING, evil_ninja.ACTIVE, evil_ninja.recall
CHASING = chaser_drone.CHASING
_CRAWL = 1.0  # pixels per frame of a laser on a surface


def _by_kind(values: dict[int, float]) -> tuple[float, ...]:
    return tuple(float(values.get(kind, 0.0)) for kind in range(len(ENTITY_NAMES)))


_RADII: dict[int, float] = {
    c.GOLD: 6,
    c.EXIT: 12,
    c.EXIT_SWITCH: 6,
    c.LOCKED_DOOR_SWITCH: 5,
    c.TRAP_DOOR_SWITCH: 5,
    c.LAUNCH_PAD: 6,
}
_RADII |= {c.REGULAR_DOOR: 12, c.LOCKED_DOOR: 12, c.TRAP_DOOR: 12, c.ONE_WAY: 12, c.BOOST_PAD: 6, c.FLOOR_GUARD: 6}
_RADII |= {c.CHAINGUN_DRONE: 7.5, c.LASER_DRONE: 7.5, c.ZAP_DRONE: 7.5, c.CHASER_DRONE: 7.5, c.MINI_DRONE: 4}
_RADII |= {c.BOUNCE_BLOCK: 9, c.THWUMP: 9, c.SHOVE_THWUMP: 12, c.DEATH_BALL: 5, c.EVIL_NINJA: 10}
RADIUS_OF = _by_kind(_RADII)
"""Radius or half side in pixels by kind; of mines by state; what only shoots has none."""
SHOOTS = _by_kind(
    dict.fromkeys((c.CHAINGUN_DRONE, c.LASER_DRONE, c.ROCKET_TURRET, c.GAUSS_TURRET, c.LASER_TURRET), 1.0)
)
COLLECTABLE = _by_kind(dict.fromkeys((c.GOLD, c.EXIT_SWITCH, c.LOCKED_DOOR_SWITCH, c.TRAP_DOOR_SWITCH), 1.0))


@kernel
def matters(kind, state):
    """Return whether an entity is listed: not if it is taken or used for good, and doors are listed by themselves."""
    if kind == GOLD or kind == EXIT_SWITCH or kind == LOCKED_DOOR or kind == TRAP_DOOR:
        return state == 0
    return kind != REGULAR_DOOR


@kernel
def listed_kind(kind):
    """Return the kind an entity is listed as: of a locked or trap door the table holds the switch."""
    if kind == LOCKED_DOOR:
        return LOCKED_DOOR_SWITCH
    if kind == TRAP_DOOR:
        return TRAP_DOOR_SWITCH
    return kind


@kernel
def place_of(worlds, index, entity):
    """Return where an entity is now, pixels."""
    if entity["mover"] >= 0 and entity["type"] != EXIT_SWITCH:
        mover = worlds.movers[index, entity["mover"]]
        return mover["x"], mover["y"]
    return float(entity["x"]), float(entity["y"])


@kernel
def radius_of(kind, state):
    """Return the radius or half side of an entity, pixels."""
    if kind == MINE or kind == TOGGLE_MINE:
        return MINE_RADII[state]
    if kind == EVIL_NINJA and state == EVIL_ACTIVE:
        return 6.0
    return RADIUS_OF[kind]


@kernel
def velocity_of(worlds, index, entity, state):
    """Return how an entity moves, pixels per frame."""
    kind = entity["type"]
    mover = worlds.movers[index, max(entity["mover"], 0)]
    if kind == BOUNCE_BLOCK or kind == DEATH_BALL:
        return mover["ux"], mover["uy"]
    if kind == ZAP_DRONE or kind == MINI_DRONE or kind == CHASER_DRONE or kind == LASER_DRONE or kind == CHAINGUN_DRONE:
        speed = drone_speed(kind, state)
        return speed * HEADING_X[state & 3], speed * HEADING_Y[state & 3]
    if kind == FLOOR_GUARD:
        return guard_side(state) * GUARD_SPEED, 0.0
    if kind == ROCKET_TURRET and state >= FLYING:
        speed = ROCKET_SPEEDS[state - FLYING]
        return speed * mover["ux"], speed * mover["uy"]
    if kind == LASER_TURRET and state != 0:
        sine, cosine = sin_cos(mover["ux"])
        sense = _CRAWL if state == 1 else -_CRAWL
        return -sine * sense, cosine * sense
    if kind == EVIL_NINJA:
        return evil_velocity(worlds, index, entity, mover, state)
    return block_velocity(kind, entity, mover, state)


@kernel
def drone_speed(kind, state):
    """Return the speed of a drone along its heading, pixels per frame."""
    if kind == MINI_DRONE:
        return MINI_SPEED
    if kind == CHASER_DRONE:
        return chaser_speed(state)
    if kind == ZAP_DRONE:
        return ZAP_SPEED
    if state & DRONE_PHASE != PATROL:
        return 0.0
    return LASER_SPEED if kind == LASER_DRONE else CHAINGUN_SPEED


@kernel
def guard_side(state):
    """Return where a floor guard runs to: 1 right, -1 left, 0 nowhere."""
    if state == 1:
        return 1.0
    return -1.0 if state == 2 else 0.0


@kernel
def block_velocity(kind, entity, mover, state):
    """Return how a thwump or shove thwump moves, pixels per frame; nothing for others."""
    vx, vy = 0.0, 0.0
    if kind == THWUMP and state != 0:
        horizontal, direction = thwump_axis(entity)
        speed = direction * (CHARGE_SPEED if state == THWUMP_CHARGING else -THWUMP_RETURN)
        if horizontal:
            vx = speed
        else:
            vy = speed
    elif kind == SHOVE_THWUMP and state & SHOVE_STATE > PRESSED:
        speed = -LAUNCH_SPEED if state & SHOVE_STATE == LAUNCHING else SHOVE_RETURN
        vx, vy = speed * mover["ux"], speed * mover["uy"]
    return vx, vy


@kernel
def evil_velocity(worlds, index, entity, mover, state):
    """Return how far an evil ninja will move in the next frame, pixels."""
    frame, met, ordinal = worlds.ninjas[index]["frame"], int(mover["ux"]), int(mover["uy"])
    begin = met + EVIL_DELAY * ordinal
    if state == EVIL_ACTIVE:
        x, y = recall(worlds.trail, index, frame - EVIL_DELAY * ordinal + 2)
        return x - mover["x"], y - mover["y"]
    if state == EVIL_CHARGING and frame > begin - EVIL_DELAY and frame > met + 1:
        x, y = recall(worlds.trail, index, met + 1)
        return (x - entity["x"]) / EVIL_DELAY, (y - entity["y"]) / EVIL_DELAY
    return 0.0, 0.0


@kernel
def facing_of(entity, mover, state):
    """Return the direction an entity faces, charges, flies or shoots in: a unit vector, or zeros."""
    kind = entity["type"]
    if kind == ONE_WAY or kind == LAUNCH_PAD:
        return FACING_X[entity["orientation"]], FACING_Y[entity["orientation"]]
    if kind == THWUMP:
        horizontal, direction = thwump_axis(entity)
        return (1.0 * direction, 0.0) if horizontal else (0.0, 1.0 * direction)
    if kind == LASER_DRONE or kind == CHAINGUN_DRONE:
        if state & DRONE_PHASE == DRONE_WARNING or state & DRONE_PHASE == DRONE_FIRING:
            return towards(mover["x"], mover["y"], mover["ux"], mover["uy"])
        return HEADING_X[state & 3], HEADING_Y[state & 3]
    if kind == ZAP_DRONE or kind == MINI_DRONE or kind == CHASER_DRONE:
        return HEADING_X[state & 3], HEADING_Y[state & 3]
    if kind == FLOOR_GUARD:
        return guard_side(state), 0.0
    if kind == GAUSS_TURRET:
        return towards(mover["x"], mover["y"], mover["ux"], mover["uy"])
    if kind == LASER_TURRET:
        sine, cosine = sin_cos(mover["uy"])
        return cosine, sine
    if kind == ROCKET_TURRET and state >= FLYING:
        return mover["ux"], mover["uy"]
    if kind == SHOVE_THWUMP and state & SHOVE_STATE != 0:
        sign = -1.0 if state & SHOVE_STATE == LAUNCHING else 1.0
        return sign * mover["ux"], sign * mover["uy"]
    return 0.0, 0.0


@kernel
def towards(x, y, goal_x, goal_y):
    """Return the unit vector from a point to another; zeros if they coincide."""
    dx, dy = goal_x - x, goal_y - y
    length = math.sqrt(dx * dx + dy * dy)
    if length == 0.0:
        return 0.0, 0.0
    return dx / length, dy / length


@kernel
def phase_of(kind, state):
    """Return the phase of an entity, see the table above; doors have theirs from :func:`is_shut`."""
    if kind == MINE or kind == TOGGLE_MINE:
        return 1.0 if state == MINE_ARMED else (0.5 if state == MINE_STEPPED_ON else 0.0)
    if kind == EXIT or kind == BOOST_PAD or kind == FLOOR_GUARD:
        return 1.0 if state != 0 else 0.0
    if kind == CHASER_DRONE:
        return 1.0 if state & CHASING != 0 else 0.0
    if kind == LASER_DRONE or kind == CHAINGUN_DRONE:
        phase = state & DRONE_PHASE
        return 1.0 if phase == DRONE_FIRING else (0.5 if phase == DRONE_WARNING else 0.0)
    if kind == THWUMP:
        return 1.0 if state == THWUMP_CHARGING else (0.5 if state != 0 else 0.0)
    if kind == SHOVE_THWUMP:
        phase = state & SHOVE_STATE
        return 1.0 if phase == LAUNCHING else (0.5 if phase != 0 else 0.0)
    if kind == ROCKET_TURRET:
        return 1.0 if state >= FLYING else (0.5 if state != 0 else 0.0)
    if kind == GAUSS_TURRET:
        if state >= GAUSS_RECOVERING or state < GAUSS_AIMING:
            return 0.0
        return 1.0 if state >= GAUSS_WARNING else 0.5
    if kind == EVIL_NINJA:
        return 1.0 if state == EVIL_ACTIVE else (0.5 if state != 0 else 0.0)
    moves = kind == LASER_TURRET or kind == ZAP_DRONE or kind == MINI_DRONE or kind == DEATH_BALL
    return 1.0 if moves else 0.0


@kernel
def is_deadly(kind, state):
    """Return whether touching an entity, or one side or the core of it, kills now."""
    if kind == MINE or kind == TOGGLE_MINE:
        return state == MINE_ARMED
    if kind == ROCKET_TURRET:
        return state >= FLYING
    if kind == EVIL_NINJA:
        return state == EVIL_ACTIVE
    if kind == SHOVE_THWUMP:
        return state & SHOVE_STATE > PRESSED
    drones = kind == ZAP_DRONE or kind == MINI_DRONE or kind == CHASER_DRONE
    return drones or kind == FLOOR_GUARD or kind == THWUMP or kind == DEATH_BALL


@kernel
def is_solid(kind, state):
    """Return whether an entity that is no door pushes the ninja out."""
    if kind == SHOVE_THWUMP:
        return state & SHOVE_STATE <= PRESSED
    return kind == ONE_WAY or kind == BOUNCE_BLOCK or kind == THWUMP


@kernel
def is_shut(kind, state):
    """Return whether a door is shut, by its kind and the state of its entity."""
    return state != 0 if kind == TRAP_DOOR else state == 0
