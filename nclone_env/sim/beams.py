"""The beams, shots and lines of aim of a world, as its state has them: what a picture shows of them.

What is drawn after a frame is what the next frame tests: a ``BEAM`` kills whatever lies in it then. A ``SHOT`` was
fired in one of the last few frames and does no harm any more; lines of aim and trails never do.
"""

from __future__ import annotations

import math

from nclone_env.constants import CHAINGUN_DRONE, GAUSS_TURRET, LASER_DRONE, LASER_TURRET, ROCKET_TURRET
from nclone_env.jit import kernel
from nclone_env.sim.entities.gauss_turret import AIMING, RECOVERING
from nclone_env.sim.entities.gauss_turret import WARNING as GAUSS_WARNING
from nclone_env.sim.entities.rocket_turret import FLYING
from nclone_env.sim.entities.shooting_drone import FIRING, PHASE, SHOT, WARNING, swept
from nclone_env.sim.geometry import lesser
from nclone_env.sim.rays import NOTHING, RAY_LENGTH, ray, unit
from nclone_env.sim.trigonometry import sin_cos

NO_BEAM, BEAM, SHOT_FIRED, AIM, TRAIL = -1, 0, 1, 2, 3
BEAM_TYPES = (CHAINGUN_DRONE, LASER_DRONE, ROCKET_TURRET, GAUSS_TURRET, LASER_TURRET)
SHOWN = 4  # frames that a shot is shown, that of the shot included: the step of an agent that skips frames
_TRAIL_LENGTH = 12.0
_TO_THE_WALL = -1.0


@kernel
def beam_of(levels, worlds, index, entity, state):
    """Return (what, x, y, dx, dy, length) of what comes out of an entity; what is ``NO_BEAM`` if nothing does.

    Args:
        levels: packed level arrays.
        worlds: packed world arrays.
        index: world.
        entity: record of the entity, one of ``BEAM_TYPES`` or any other.
        state: its state byte.

    Returns:
        ``BEAM``, ``SHOT_FIRED``, ``AIM`` or ``TRAIL``; start (pixels), direction (a unit vector), length (pixels).
    """
    what, dx, dy, length = NO_BEAM, 1.0, 0.0, _TO_THE_WALL
    if entity["mover"] < 0:
        return what, 0.0, 0.0, dx, dy, 0.0
    mover, kind = worlds.movers[index, entity["mover"]], entity["type"]
    x, y = mover["x"], mover["y"]
    if kind == LASER_TURRET:
        what = BEAM
        dy, dx = sin_cos(mover["uy"])
    elif kind == LASER_DRONE or kind == CHAINGUN_DRONE:
        what, dx, dy = of_drone(kind, mover, state)
    elif kind == GAUSS_TURRET:
        what, dx, dy, length = of_gauss(mover, state)
    elif kind == ROCKET_TURRET and state >= FLYING:
        what, dx, dy = TRAIL, -mover["ux"], -mover["uy"]
        length = lesser(_TRAIL_LENGTH, distance(x - entity["x"], y - entity["y"]))
    if what != NO_BEAM and length == _TO_THE_WALL:
        length = ray(levels, worlds.entity_states, index, worlds.ninjas[index]["level"], x, y, dx, dy)
        if length == NOTHING:
            length = RAY_LENGTH
    return what, x, y, dx, dy, length


@kernel
def of_drone(kind, mover, state):
    """Return (what, dx, dy) of a laser or chaingun drone: the line of the warning, the beam, the last shot."""
    what, phase = NO_BEAM, state & PHASE
    dx, dy = unit(mover["ux"] - mover["x"], mover["uy"] - mover["y"])
    if kind == LASER_DRONE:
        if phase == WARNING:
            what = AIM
        elif phase == FIRING:
            what = BEAM
    elif phase == FIRING and state >= SHOT and mover["timer"] < SHOWN:
        what = SHOT_FIRED
        dx, dy = swept(mover, state, dx, dy)
    return what, dx, dy


@kernel
def of_gauss(mover, state):
    """Return (what, dx, dy, length) of a gauss turret: to the point aimed at, then through it to the wall."""
    what, length = NO_BEAM, _TO_THE_WALL
    dx, dy = mover["ux"] - mover["x"], mover["uy"] - mover["y"]
    if AIMING <= state < RECOVERING:
        what = AIM
        if state < GAUSS_WARNING:
            length = distance(dx, dy)
    elif RECOVERING <= state < RECOVERING + SHOWN:
        what = SHOT_FIRED
    dx, dy = unit(dx, dy)
    return what, dx, dy, length


@kernel
def distance(dx, dy):
    """Return the length of a vector."""
    return math.sqrt(dx * dx + dy * dy)
