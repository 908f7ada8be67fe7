"""Laser drones and chaingun drones (physics 03, section 11; section 17, choices D1, D2 and D3).

They patrol like other drones until they see the ninja; then they stop, warn, fire and recover. Touching one
is harmless, so they are in no cell.

Bits 0 and 1 of the state are the heading, 2 and 3 the phase; of a firing chaingun drone bit 4 is the side it sweeps to,
and bits 5 to 7 are the shots fired. ``a`` and ``b`` of the mover are the node that a patrolling drone flies to, or the
point aimed at after a stop; ``order`` then keeps the node's coordinate along the heading. ``timer`` counts
the frames of the phase, or those since the last shot.

Evidence: two ports of the predecessor, rescaled from 40 to 60 frames a second. No recording contains one.
"""

from nclone_env.game import KINDS, LASER_DRONE
from nclone_env.jit import kernel
from nclone_env.sim.entities.drone import HEADING, HEADING_X, HEADING_Y, NODE_X, NODE_Y, patrol
from nclone_env.sim.geometry import unit
from nclone_env.sim.ninja import is_targetable, kill
from nclone_env.sim.query import AIM, BEAM, NO_BEAM, SHOT_FIRED, SHOT_SHOWN, sees, shot

PATROL, WARNING, FIRING, RECOVERING = KINDS[LASER_DRONE].states.values()
PHASE, SIDE, SHOT = 12, 16, 32  # bits of the state
AIM_X, AIM_Y, KEPT_NODE, FRAMES = "a", "b", "order", "timer"
_LASER_SPEED, _CHAINGUN_SPEED = 0.2857142857142857, 0.4285714285714285
_LASER_WARNING, _CHAINGUN_WARNING = 45, 52
_LASER_RECOVERY, _CHAINGUN_RECOVERY = 60, 90
_BEAM, _SHOT_INTERVAL, _SHOTS = 80, 9, 7  # frames, frames, shots of a burst


@kernel
def move(levels, worlds, index, slot, entity, mover):
    """Patrol; stay in place in the other phases."""
    if worlds.entity_states[index, slot] & PHASE == PATROL:
        speed = _LASER_SPEED if entity["type"] == LASER_DRONE else _CHAINGUN_SPEED
        patrol(levels, worlds, index, slot, entity, mover, False, speed)


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
            mover[FRAMES] += 1
            if mover[FRAMES] < (_LASER_RECOVERY if laser else _CHAINGUN_RECOVERY):
                return
        if sees(levels, states, index, ninja, mover["x"], mover["y"]):
            acquire(ninja, mover, states, index, slot)
        elif phase == RECOVERING:
            resume(mover, states, index, slot)


@kernel
def enter(mover, states, index, slot, phase):
    """Begin a phase; the heading stays."""
    states[index, slot] = (states[index, slot] & HEADING) | phase
    mover[FRAMES] = 0


@kernel
def acquire(ninja, mover, states, index, slot):
    """Stop, aim at the ninja and warn it; a drone that patrolled keeps its node."""
    if states[index, slot] & PHASE == PATROL:
        upright = states[index, slot] & 1
        mover[KEPT_NODE] = int(mover[NODE_Y] if upright else mover[NODE_X])
    mover[AIM_X], mover[AIM_Y] = ninja["x"], ninja["y"]
    enter(mover, states, index, slot, WARNING)


@kernel
def resume(mover, states, index, slot):
    """Resume the flight to the node."""
    upright = states[index, slot] & 1
    mover[NODE_X], mover[NODE_Y] = mover["x"], mover["y"]
    if upright:
        mover[NODE_Y] = mover[KEPT_NODE]
    else:
        mover[NODE_X] = mover[KEPT_NODE]
    enter(mover, states, index, slot, PATROL)


@kernel
def warn(ninja, laser, mover, states, index, slot):
    """Wait, then begin to fire; a chaingun drone aims again and sweeps to the side of the ninja's motion."""
    if not is_targetable(ninja):
        enter(mover, states, index, slot, RECOVERING)
        return
    mover[FRAMES] += 1
    if mover[FRAMES] < (_LASER_WARNING if laser else _CHAINGUN_WARNING):
        return
    enter(mover, states, index, slot, FIRING)
    if not laser:
        mover[AIM_X], mover[AIM_Y] = ninja["x"], ninja["y"]
        ux, uy = unit(ninja["x"] - mover["x"], ninja["y"] - mover["y"], 1.0, 0.0)
        if -uy * ninja["vx"] + ux * ninja["vy"] < 0.0:
            states[index, slot] |= SIDE


@kernel
def fire(levels, ninja, laser, mover, states, index, slot):
    """Fire if it is time; recover at the end."""
    mover[FRAMES] += 1
    dx, dy = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 1.0, 0.0)
    if not laser:
        if mover[FRAMES] < _SHOT_INTERVAL:
            return
        mover[FRAMES] = 0
        if states[index, slot] >= _SHOTS * SHOT:
            enter(mover, states, index, slot, RECOVERING)
            return
        states[index, slot] += SHOT
        dx, dy = swept(mover, states[index, slot], dx, dy)
    if shot(levels, states, index, ninja, mover["x"], mover["y"], dx, dy):
        kill(ninja)
    if laser and mover[FRAMES] >= _BEAM:
        enter(mover, states, index, slot, RECOVERING)


@kernel
def swept(mover, state, ux, uy):
    """Return the direction of a shot of a burst around (ux, uy): from behind the ninja's motion to ahead of it."""
    if mover[AIM_X] == mover["x"] and mover[AIM_Y] == mover["y"]:
        return ux, uy  # it aims at itself (section 11.3)
    wx, wy = (uy, -ux) if state & SIDE != 0 else (-uy, ux)
    aside = ((state // SHOT) / 6.0 - 0.5) * 0.3
    return unit(ux + aside * wx, uy + aside * wy, 1.0, 0.0)


@kernel
def describe(entity, mover, state):
    """Describe a laser or chaingun drone, see ``sim.dispatch.describe``."""
    phase, speed = state & PHASE, 0.0
    hx, hy = HEADING_X[state & HEADING], HEADING_Y[state & HEADING]
    if phase == PATROL:
        speed = _LASER_SPEED if entity["type"] == LASER_DRONE else _CHAINGUN_SPEED
    facing_x, facing_y = hx, hy
    if phase == WARNING or phase == FIRING:
        facing_x, facing_y = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 0.0, 0.0)
    progress = 1.0 if phase == FIRING else (0.5 if phase == WARNING else 0.0)
    return speed * hx, speed * hy, facing_x, facing_y, progress, False, False


@kernel
def beam(entity, mover, state):
    """Return (emission, dx, dy): a laser drone's line of warning and beam, a chaingun drone's last shot."""
    emission, phase = NO_BEAM, state & PHASE
    dx, dy = unit(mover[AIM_X] - mover["x"], mover[AIM_Y] - mover["y"], 1.0, 0.0)
    if entity["type"] == LASER_DRONE:
        if phase == WARNING:
            emission = AIM
        elif phase == FIRING:
            emission = BEAM
    elif phase == FIRING and state >= SHOT and mover[FRAMES] < SHOT_SHOWN:
        emission = SHOT_FIRED
        dx, dy = swept(mover, state, dx, dy)
    return emission, dx, dy
