"""Which kernels each kind of entity has: the only place that knows all files under ``sim.entities``.

Every verb is one chain of kinds. A kind that is not in a chain does nothing there.

====================== ==================================================================================
:func:`start`          set the initial state
:func:`move`           move on its own, before anything thinks (physics 02, section 4.5)
:func:`think`          look out, aim, shoot, count
:func:`push`           push the ninja out before a collision with tiles (physics 01, section 7)
:func:`touch`          act on a ninja that is around it (physics 01, section 9.1)
:func:`describe`       velocity, facing, phase, and whether it kills and is solid now, for observations
:func:`radius_of`      radius or half side now, for observations
:func:`beam`           its beam, shot or line of aim, for pictures
====================== ==================================================================================
"""

from typing import Any

from nclone_env import game
from nclone_env.jit import kernel
from nclone_env.sim import dispatch
from nclone_env.sim.entities import blocks, drone, fixed, hunters, turrets
from nclone_env.sim.entities.laser import turret as laser_turret
from nclone_env.sim.sight import NO_BEAM, NOTHING, RAY_LENGTH, TO_THE_WALL, ray
from nclone_env.sim.store import mover_of, movers_of, states_of

_DRONES = game.bits(kind for kind in game.KINDS if kind.has_heading)
_RADII = tuple(kind.radii[0] for kind in game.KINDS)


def _over_run(act: Any, has_mover: bool = True) -> Any:
    """Return a kernel that lets every entity of a run act, by a kernel of its kind.

    Each kind gets a loop of its own: one loop around a chain of kinds makes crowds of drones half as slow again.
    """

    @kernel
    def loop(levels, worlds, index, base, first, stop, shift):
        movers, own = movers_of(worlds, index)
        slot = int(first)
        while slot < stop:  # fewer instructions than a range of 16-bit numbers
            mover = movers[own + (shift + slot if has_mover else 0)]
            act(levels, worlds, index, slot, levels.entities[base + slot], mover)
            slot += 1

    return loop


_move_chaser_drones, _move_shooting_drones = _over_run(drone.move_chaser), _over_run(drone.move_shooting)
_move_floor_guards, _move_bounce_blocks = _over_run(hunters.move_floor_guard), _over_run(blocks.move_bounce_block)
_move_thwumps = _over_run(blocks.move_thwump)
_think_regular_doors = _over_run(fixed.think_regular_door, has_mover=False)
_think_shooting_drones, _think_floor_guards = _over_run(drone.think_shooting), _over_run(hunters.think_floor_guard)
_think_rocket_turrets, _think_gauss_turrets = _over_run(turrets.think_rocket), _over_run(turrets.think_gauss)
_think_laser_turrets = _over_run(laser_turret.think)
_think_thwumps, _think_shove_thwumps = _over_run(blocks.think_thwump), _over_run(blocks.think_shove_thwump)


@kernel
def start(levels, worlds, index, kind, slot, entity, mover):
    """Put an entity with a mover at its start; its position, order and cell are set already."""
    states, own = states_of(worlds, index)
    if _DRONES >> kind & 1:
        drone.start(entity, mover, states, own, slot)
    elif kind == game.ROCKET_TURRET:
        turrets.rest_rocket(entity, mover)
    elif kind == game.GAUSS_TURRET:
        turrets.rest_gauss(entity, mover)
    elif kind == game.LASER_TURRET:
        laser_turret.start(levels, worlds.ninjas[index]["level"], entity, mover, states, own, slot)


@kernel
def move(levels, worlds, index, run, base):
    """Move the entities of a run; ``base`` is the first entity of the level."""
    kind, first, stop, shift = run["type"], run["first"], run["stop"], run["shift"]
    if kind == game.ZAP_DRONE:
        drone.move_zaps(levels, worlds, index, base, first, stop, shift)
    elif kind == game.MINI_DRONE:
        drone.move_minis(levels, worlds, index, base, first, stop, shift)
    elif kind == game.CHASER_DRONE:
        _move_chaser_drones(levels, worlds, index, base, first, stop, shift)
    elif kind == game.CHAINGUN_DRONE or kind == game.LASER_DRONE:
        _move_shooting_drones(levels, worlds, index, base, first, stop, shift)
    elif kind == game.FLOOR_GUARD:
        _move_floor_guards(levels, worlds, index, base, first, stop, shift)
    elif kind == game.BOUNCE_BLOCK:
        _move_bounce_blocks(levels, worlds, index, base, first, stop, shift)
    elif kind == game.THWUMP:
        _move_thwumps(levels, worlds, index, base, first, stop, shift)
    elif kind == game.BOOST_PAD:
        fixed.move_boost_pads(levels, worlds, index, base, first, stop)


@kernel
def think(levels, worlds, index, run, base):
    """Let the entities of a run think; ``base`` is the first entity of the level."""
    kind, first, stop, shift = run["type"], run["first"], run["stop"], run["shift"]
    if kind == game.REGULAR_DOOR:
        _think_regular_doors(levels, worlds, index, base, first, stop, shift)
    elif kind == game.CHAINGUN_DRONE or kind == game.LASER_DRONE:
        _think_shooting_drones(levels, worlds, index, base, first, stop, shift)
    elif kind == game.FLOOR_GUARD:
        _think_floor_guards(levels, worlds, index, base, first, stop, shift)
    elif kind == game.ROCKET_TURRET:
        _think_rocket_turrets(levels, worlds, index, base, first, stop, shift)
    elif kind == game.GAUSS_TURRET:
        _think_gauss_turrets(levels, worlds, index, base, first, stop, shift)
    elif kind == game.THWUMP:
        _think_thwumps(levels, worlds, index, base, first, stop, shift)
    elif kind == game.TOGGLE_MINE:
        fixed.think_mines(levels, worlds, index, base, first, stop)
    elif kind == game.EVIL_NINJA:
        hunters.think_evil_ninjas(levels, worlds, index, base, first, stop, shift)
    elif kind == game.LASER_TURRET:
        _think_laser_turrets(levels, worlds, index, base, first, stop, shift)
    elif kind == game.DEATH_BALL:
        hunters.think_death_balls(levels, worlds, index, first + shift, stop + shift)
    elif kind == game.SHOVE_THWUMP:
        _think_shove_thwumps(levels, worlds, index, base, first, stop, shift)


@kernel
def push(worlds, index, entity, slot, mover, x0, y0):
    """Return (hit, nx, ny, length): whether an entity pushes the ninja, which came from (x0, y0), and how."""
    kind, ninja = entity["type"], worlds.ninjas[index]
    states, own = states_of(worlds, index)
    hit, nx, ny, length = False, 0.0, 0.0, 0.0
    if kind == game.ONE_WAY:
        hit, nx, ny, length = fixed.push_one_way(ninja, entity, x0, y0, 0.0)
    elif kind == game.BOUNCE_BLOCK:
        hit, nx, ny, length = blocks.push_bounce_block(ninja, mover)
    elif kind == game.THWUMP:
        hit, nx, ny, length = blocks.push_thwump(ninja, mover)
    elif kind == game.SHOVE_THWUMP:
        hit, nx, ny, length = blocks.push_shove_thwump(ninja, mover, states, own, slot)
    return hit, nx, ny, length


@kernel
def touch(worlds, index, entity, slot, contacts, x0, y0):
    """Let an entity act on the ninja, which came from (x0, y0); return the wall normal it reports, 0 if none."""
    kind, ninja = entity["type"], worlds.ninjas[index]
    states, own = states_of(worlds, index)
    wall = 0.0
    if kind == game.GOLD:
        fixed.touch_gold(ninja, entity, states, own, slot)
    elif kind == game.MINE or kind == game.TOGGLE_MINE:
        fixed.touch_mine(ninja, entity, states, own, slot)
    elif kind == game.EXIT:
        fixed.touch_exit(ninja, entity, x0, y0)
    elif kind == game.EXIT_SWITCH:
        fixed.touch_exit_switch(worlds, index, entity, slot)
    elif kind == game.REGULAR_DOOR:
        fixed.touch_regular_door(ninja, entity, states, own, slot)
    elif kind == game.LOCKED_DOOR or kind == game.TRAP_DOOR:
        fixed.touch_switched_door(ninja, entity, states, own, slot)
    elif kind == game.LAUNCH_PAD:
        fixed.touch_launch_pad(ninja, entity, contacts)
    elif kind == game.ONE_WAY:
        wall = fixed.touch_one_way(ninja, entity, x0, y0)
    elif kind != game.BOOST_PAD:
        wall = touch_mover(worlds, index, entity, slot, mover_of(worlds, index, entity["mover"]))
    return wall


@kernel
def touch_mover(worlds, index, entity, slot, mover):
    """Do as :func:`touch` for an entity with a mover."""
    kind, ninja = entity["type"], worlds.ninjas[index]
    states, own = states_of(worlds, index)
    wall = 0.0
    if kind == game.BOUNCE_BLOCK:
        wall = blocks.touch_bounce_block(ninja, mover)
    elif kind == game.THWUMP:
        wall = blocks.touch_thwump(ninja, entity, mover)
    elif kind == game.SHOVE_THWUMP:
        wall = blocks.touch_shove_thwump(ninja, mover, states, own, slot)
    elif kind == game.ZAP_DRONE or kind == game.MINI_DRONE or kind == game.CHASER_DRONE:
        drone.touch(ninja, entity, mover)
    elif kind == game.FLOOR_GUARD:
        hunters.touch_floor_guard(ninja, mover)
    elif kind == game.DEATH_BALL:
        hunters.touch_death_ball(ninja, mover)
    elif kind == game.EVIL_NINJA:
        hunters.touch_evil_ninja(ninja, mover, states, own, slot)
    elif kind == game.ROCKET_TURRET:
        turrets.touch_rocket(ninja, entity, mover, states, own, slot)
    return wall


@kernel
def describe(worlds, index, entity, mover, state):
    """Return (vx, vy, facing x, facing y, phase, deadly, solid) of an entity now.

    The velocity is in pixels per frame; the facing, in which it faces, charges, flies or shoots, is a unit vector or
    zeros; the phase is 0, 0.5 or 1 (``obs.entity_states``); deadly and solid are those of a touch now.
    """
    kind = entity["type"]
    if kind == game.MINE or kind == game.TOGGLE_MINE:
        return fixed.describe_mine(state)
    if kind == game.LAUNCH_PAD:
        return fixed.describe_launch_pad(entity)
    if kind == game.ONE_WAY:
        return fixed.describe_one_way(entity)
    if kind == game.CHAINGUN_DRONE or kind == game.LASER_DRONE:
        return drone.describe_shooting(entity, mover, state)
    if kind == game.ZAP_DRONE or kind == game.MINI_DRONE:
        return drone.describe(entity, state)
    if kind == game.CHASER_DRONE:
        return drone.describe_chaser(state)
    if kind == game.FLOOR_GUARD:
        return hunters.describe_floor_guard(state)
    if kind == game.BOUNCE_BLOCK:
        return blocks.describe_bounce_block(mover)
    if kind == game.ROCKET_TURRET:
        return turrets.describe_rocket(mover, state)
    if kind == game.GAUSS_TURRET:
        return turrets.describe_gauss(mover, state)
    if kind == game.THWUMP:
        return blocks.describe_thwump(entity, state)
    if kind == game.EVIL_NINJA:
        return hunters.describe_evil_ninja(worlds, index, entity, mover, state)
    if kind == game.LASER_TURRET:
        return laser_turret.describe(mover, state)
    if kind == game.DEATH_BALL:
        return hunters.describe_death_ball(mover)
    if kind == game.SHOVE_THWUMP:
        return blocks.describe_shove_thwump(mover, state)
    in_use = (kind == game.EXIT or kind == game.BOOST_PAD) and state != 0
    return 0.0, 0.0, 0.0, 0.0, 1.0 if in_use else 0.0, False, False


@kernel
def radius_of(kind, state):
    """Return the radius or half side of an entity, pixels; 0 of one that only shoots."""
    if kind == game.MINE or kind == game.TOGGLE_MINE:
        return fixed.mine_radius(state)
    if kind == game.EVIL_NINJA:
        return hunters.evil_ninja_radius(state)
    return _RADII[kind]


@kernel
def beam(entity, mover, state):
    """Return (emission, dx, dy, length) of an entity: ``sim.sight.BEAM`` or another, a unit vector, pixels."""
    kind = entity["type"]
    emission, dx, dy, length = NO_BEAM, 1.0, 0.0, TO_THE_WALL
    if kind == game.LASER_TURRET:
        emission, dx, dy = laser_turret.beam(mover)
    elif kind == game.LASER_DRONE or kind == game.CHAINGUN_DRONE:
        emission, dx, dy = drone.beam_shooting(entity, mover, state)
    elif kind == game.GAUSS_TURRET:
        emission, dx, dy, length = turrets.beam_gauss(mover, state)
    elif kind == game.ROCKET_TURRET:
        emission, dx, dy, length = turrets.beam_rocket(entity, mover, state)
    return emission, dx, dy, length


@kernel
def beam_of(levels, worlds, index, entity, state):
    """Return (emission, x, y, dx, dy, length) of an entity; the emission is ``NO_BEAM`` if there is none.

    It is ``BEAM``, ``SHOT_FIRED``, ``AIM`` or ``ROCKET_TRAIL`` of ``sim.sight``; then come the start (pixels), the
    direction (a unit vector) and the length (pixels).
    """
    mover = mover_of(worlds, index, max(entity["mover"], 0))
    x, y = mover["x"], mover["y"]
    emission, dx, dy, length = dispatch.beam(entity, mover, state)
    if emission != NO_BEAM and length == TO_THE_WALL:
        states, own = states_of(worlds, index)
        length, _ = ray(levels, states, own, worlds.ninjas[index]["level"], x, y, dx, dy)
        if length == NOTHING:
            length = RAY_LENGTH
    return emission, x, y, dx, dy, length
