"""Laser drones and chaingun drones (physics 03, section 11; section 17, choices D1, D2 and D3).

They patrol like other drones until they see the ninja; then they stand still, warn, fire and recover. Touching one
is harmless, so they are in no cell.

State: bits 0 and 1 the heading, 2 and 3 the phase; of a firing chaingun drone bit 4, the side it sweeps to, and bits 5
to 7, the shots fired. The mover's pair is the node a patrolling drone flies to; of one that stands it is the point it
aims at, and ``order`` keeps the node's coordinate along the heading. ``timer`` counts the frames of the phase, or
those since the last shot.

Evidence: two ports of the predecessor, rescaled from 40 to 60 frames a second. No recording contains one.
"""

from __future__ import annotations

from nclone_env.constants import LASER_DRONE
from nclone_env.jit import kernel
from nclone_env.sim.entities import drone
from nclone_env.sim.life import is_targetable, kill
from nclone_env.sim.rays import sees, shot, unit

PATROL, WARNING, FIRING, RECOVERING = 0, 4, 8, 12
HEADING, PHASE, SIDE, SHOT = 3, 12, 16, 32
LASER_SPEED, CHAINGUN_SPEED = 0.2857142857142857, 0.4285714285714285
_LASER_WARNING, _CHAINGUN_WARNING = 45, 52
_LASER_RECOVERY, _CHAINGUN_RECOVERY = 60, 90
_BEAM, _SHOT_INTERVAL, _SHOTS = 80, 9, 7  # frames, frames, shots of a burst

start, fly, advance, choose = drone.start, drone.fly, drone.advance, drone.choose


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Patrol; stand still in the other phases."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    if states[index, slot] & PHASE != PATROL:
        return
    speed = LASER_SPEED if entity["type"] == LASER_DRONE else CHAINGUN_SPEED
    reached, left = fly(mover, states[index, slot], speed)
    if reached:
        heading = choose(levels, ninja["level"], False, entity["mode"], mover, states, index, states[index, slot])
        if heading >= 0:
            states[index, slot] = heading
            advance(mover, heading, speed - left)


@kernel
def think(levels, worlds, index, slot, entity, mover):
    """Look for the ninja, warn, fire, recover."""
    ninja, states = worlds.ninjas[index], worlds.entity_states
    phase, laser = states[index, slot] & PHASE, entity["type"] == LASER_DRONE
    if phase == FIRING:
        fire(levels, ninja, laser, mover, states, index, slot)
    elif phase == WARNING:
        warn(ninja, laser, mover, states, index, slot)
    else:
        if phase == RECOVERING:
            mover["timer"] += 1
            if mover["timer"] < (_LASER_RECOVERY if laser else _CHAINGUN_RECOVERY):
                return
        if sees(levels, states, index, ninja, mover["x"], mover["y"]):
            acquire(ninja, mover, states, index, slot)
        elif phase == RECOVERING:
            resume(mover, states, index, slot)


@kernel
def enter(mover, states, index, slot, phase):
    """Begin a phase; the heading stays."""
    states[index, slot] = (states[index, slot] & HEADING) | phase
    mover["timer"] = 0


@kernel
def acquire(ninja, mover, states, index, slot):
    """Stand still, aim at the ninja and warn it; a drone that patrolled keeps its node in mind."""
    if states[index, slot] & PHASE == PATROL:
        upright = states[index, slot] & 1
        mover["order"] = int(mover["uy"] if upright else mover["ux"])
    mover["ux"], mover["uy"] = ninja["x"], ninja["y"]
    enter(mover, states, index, slot, WARNING)


@kernel
def resume(mover, states, index, slot):
    """Fly on to the node."""
    upright = states[index, slot] & 1
    mover["ux"], mover["uy"] = mover["x"], mover["y"]
    if upright:
        mover["uy"] = mover["order"]
    else:
        mover["ux"] = mover["order"]
    enter(mover, states, index, slot, PATROL)


@kernel
def warn(ninja, laser, mover, states, index, slot):
    """Wait, then begin to fire; a chaingun drone aims again and sweeps to the side the ninja moves to."""
    if not is_targetable(ninja):
        enter(mover, states, index, slot, RECOVERING)
        return
    mover["timer"] += 1
    if mover["timer"] < (_LASER_WARNING if laser else _CHAINGUN_WARNING):
        return
    enter(mover, states, index, slot, FIRING)
    if not laser:
        mover["ux"], mover["uy"] = ninja["x"], ninja["y"]
        ux, uy = unit(ninja["x"] - mover["x"], ninja["y"] - mover["y"])
        if -uy * ninja["vx"] + ux * ninja["vy"] < 0.0:
            states[index, slot] |= SIDE


@kernel
def fire(levels, ninja, laser, mover, states, index, slot):
    """Fire if it is time; recover at the end."""
    mover["timer"] += 1
    dx, dy = unit(mover["ux"] - mover["x"], mover["uy"] - mover["y"])
    if not laser:
        if mover["timer"] < _SHOT_INTERVAL:
            return
        mover["timer"] = 0
        if states[index, slot] >= _SHOTS * SHOT:
            enter(mover, states, index, slot, RECOVERING)
            return
        states[index, slot] += SHOT
        dx, dy = swept(mover, states[index, slot], dx, dy)
    if shot(levels, states, index, ninja, mover["x"], mover["y"], dx, dy):
        kill(ninja)
    if laser and mover["timer"] >= _BEAM:
        enter(mover, states, index, slot, RECOVERING)


@kernel
def swept(mover, state, ux, uy):
    """Return the direction of a shot of a burst around (ux, uy): from behind the ninja's motion to ahead of it."""
    if mover["ux"] == mover["x"] and mover["uy"] == mover["y"]:
        return ux, uy  # it aims at itself (section 11.3)
    wx, wy = (uy, -ux) if state & SIDE != 0 else (-uy, ux)
    aside = ((state // SHOT) / 6.0 - 0.5) * 0.3
    return unit(ux + aside * wx, uy + aside * wy)
