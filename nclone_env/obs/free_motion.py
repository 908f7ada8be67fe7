"""The writer of ``free_motion``: how far each action takes the ninja by its own motion.

The ninja follows its equations of motion (physics 01, sections 6.1, 10 and 11) among the walls of this moment. Floors
carry it up to their edges, walls and ceilings take its velocity towards them, and a deadly entity or the exit ends the
motion. Drones go on with their patrol, other deadly entities fly on as they do now until a wall stops them; nothing
else moves, and nothing pushes the ninja. ``action_outcomes`` copies the world and simulates all of it.
``obs.spec.FREE_MOTION`` defines the elements.
"""

import math

from nclone_env.game import (
    CELEBRATING,
    CELL_SIZE,
    CHASER_DRONE,
    DEAD,
    EXIT,
    JUMPING,
    KINDS,
    MAX_HORIZONTAL_SPEED,
    MAX_IMPACT,
    MINE,
    MINI_DRONE,
    NUM_ACTIONS,
    NUM_DIRECTIONS,
    RADIUS,
    ZAP_DRONE,
    bits,
)
from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.obs.game_state import clip, objective, path_length
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import FREE_MOTION, columns
from nclone_env.sim import (
    MOVER,
    NINJA_RECORD,
    cells_within,
    closest_point,
    describe,
    frames_to_node,
    integrate,
    mines_of,
    mover_of,
    next_leg,
    radius_of,
    state_of,
    states_of,
    sweep_tiles,
    think,
)

AT, _SIZE = columns(FREE_MOTION), len(FREE_MOTION)
_RECORD_WORDS, _MOVER_WORDS = NINJA_RECORD.itemsize // 8, MOVER.itemsize // 8
_DIRECTIONS = (0, -1, 1)  # of actions, in their order
_DEADLY = bits(kind for kind in KINDS if kind.deadly)
_ARMED = KINDS[MINE].states["armed"]
_LOOK = 2  # frames from one look at the surroundings to the next
_BODY = 9.0  # radius of the disc that walls stop, pixels; smaller than the ninja, whose floor is no wall
_CLEAR = 9.5  # pixels from the centre to a wall that it slides along, more than those of the disc
_STEP = 8.0  # pixels by which a floor may rise or fall from one look to the next
_LIFT = 1.0  # pixels above a floor from which on the ninja has left it
_LEVEL_Y = 0.0001  # normals with less of y are those of vertical walls
_PATROLS = bits(KINDS[number] for number in (ZAP_DRONE, MINI_DRONE, CHASER_DRONE))
_ENEMY_BODY = 5.0  # radius of the disc that walls stop, pixels: narrow enough for the passages of all
_X, _Y, _VX, _VY, _BEGIN, _END, _REACH, _LEG = range(8)
"""Numbers of a leg, straight flight of an enemy: place at its begin, pixels; velocity, pixels per frame; its begin and
end, frames; distance from which on a ninja is safe, pixels. Then their count."""
_LEGS = 128  # at most, the first ones of the entities that the ninja may meet
_LEG_NUMBERS = _LEGS * _LEG


@kernel
def write_free_motion(levels, paths, worlds, index, frames, out):
    """Write the free motion of one world's ninja.

    Args:
        frames: frames for which each action is held.
        out: (6, 10) float32, or the words of float32 or float16 (``obs.half``); in the order of ``Action`` and of
            ``FREE_MOTION``.
    """
    field, slot = objective(levels, paths, worlds, index)
    legs = local_f64(_LEG_NUMBERS, 1)
    met = legs[: list_legs(levels, worlds, index, frames, legs)]
    for action in range(NUM_ACTIONS):
        write_motion(levels, paths, worlds, index, action, frames, field, slot, met, out)


@kernel
def list_legs(levels, worlds, index, frames, legs):
    """Write the legs on which the deadly entities with movers fly that the ninja may meet; return where they end."""
    ninja, end, record = worlds.ninjas[index], 0, local_f64(_MOVER_WORDS).view(MOVER)
    header, mover = levels.header[ninja["level"]], record[0]
    for number in range(header["mover_count"]):
        slot = levels.mover_slots[header["first_mover"] + number]
        entity, state = levels.entities[header["first_entity"] + slot], int(state_of(worlds, index, slot))
        if not _DEADLY >> int(entity["type"]) & 1:
            continue
        record[0] = mover_of(worlds, index, entity["mover"])
        vx, vy, _, _, _, deadly, _ = describe(worlds, index, entity, mover, state)
        reach = radius_of(entity["type"], state) + RADIUS
        if not deadly or abs(mover["x"] - ninja["x"]) > reach + frames * (MAX_HORIZONTAL_SPEED + abs(vx) + abs(vy)):
            continue
        if _PATROLS >> int(entity["type"]) & 1:
            end = list_patrol(levels, worlds, index, entity, mover, state, reach, frames, legs, end)
        else:
            end = list_flight(levels, worlds, index, mover, vx, vy, reach, frames, legs, end)
    return end


@kernel
def list_patrol(levels, worlds, index, entity, mover, state, reach, frames, legs, end):
    """Write the legs of a drone that turns as on its patrol; return where they end."""
    ninja, x, y, begin, time = worlds.ninjas[index], mover["x"], mover["y"], 0.0, 0.0
    while begin < frames:
        vx, vy, _, _, _, _, _ = describe(worlds, index, entity, mover, state)
        following = state
        while following == state and time < frames:
            time += frames_to_node(mover, abs(vx) + abs(vy))
            following = next_leg(levels, worlds, index, entity, mover, state)
        end = list_leg(ninja, x, y, vx, vy, begin, min(time, frames), reach, legs, end)
        if following < 0:
            return list_leg(ninja, mover["x"], mover["y"], 0.0, 0.0, time, frames, reach, legs, end)
        x, y, begin, state = mover["x"], mover["y"], time, following
    return end


@kernel
def list_flight(levels, worlds, index, mover, vx, vy, reach, frames, legs, end):
    """Write the legs of an entity that flies straight on until a wall stops it; return where they end."""
    ninja, x, y, stop = worlds.ninjas[index], mover["x"], mover["y"], 0.0
    if vx != 0.0 or vy != 0.0:
        states, own = states_of(worlds, index)
        mx, my = frames * vx, frames * vy
        stop = frames * sweep_tiles(levels, ninja["level"], states, own, x, y, mx, my, _ENEMY_BODY)
        end = list_leg(ninja, x, y, vx, vy, 0.0, stop, reach, legs, end)
    return list_leg(ninja, x + stop * vx, y + stop * vy, 0.0, 0.0, stop, frames, reach, legs, end)


@kernel
def list_leg(ninja, x, y, vx, vy, begin, stop, reach, legs, end):
    """Write a leg that the ninja may meet, unless there are too many; return where the legs end."""
    last = x + (stop - begin) * vx
    nearest = min(max(ninja["x"], min(x, last)), max(x, last))
    if end == len(legs) or abs(nearest - ninja["x"]) > reach + stop * MAX_HORIZONTAL_SPEED:
        return end
    leg = legs[end : end + _LEG]
    leg[_X], leg[_Y], leg[_VX], leg[_VY] = x, y, vx, vy
    leg[_BEGIN], leg[_END], leg[_REACH] = begin, stop, reach
    return end + _LEG


@called_kernel
def write_motion(levels, paths, worlds, index, action, frames, field, slot, legs, out):
    """Write the free motion of one action.

    Args as in :func:`write_free_motion`, and:
        field: row of the objective in ``paths.fields``.
        slot: entity of the objective.
        legs: (7 k,) float64, those that :func:`list_legs` writes.
    """
    start, values, record = worlds.ninjas[index], local_f64(_SIZE), local_f64(_RECORD_WORDS).view(NINJA_RECORD)
    record[0] = start
    ninja, direction, jump = record[0], _DIRECTIONS[action % NUM_DIRECTIONS], action // NUM_DIRECTIONS
    if ninja["state"] >= DEAD:  # nothing moves any more
        values[AT.arrival if ninja["state"] == CELEBRATING else AT.death] = 1.0
        write_vector(values, out[action])
        return
    length = path_length(paths, field, start)
    early, frame, ended, passed = (frames + 2) // 3, 0, False, False
    while not ended:
        x, y = ninja["x"], ninja["y"]
        integrate(ninja)
        think(ninja, direction, jump)
        ninja["walled"] = 0
        if frame == 0 and ninja["state"] == JUMPING:
            ninja["airborne"] = 1
        integrate(ninja)
        frame += _LOOK
        left = max(frames + 1 - frame, 1) / frames
        ended = look(levels, worlds, index, ninja, x, y, slot, left, values) or frame >= frames
        if meets_enemy(legs, frame, ninja["x"], ninja["y"]):
            values[AT.death], ended = left, True
        think(ninja, direction, jump)
        if not passed and (ended or frame >= early):
            passed = True
            write_place(paths, field, start, length, ninja, early, AT.early_x, values)
    write_place(paths, field, start, length, ninja, frames, AT.late_x, values)
    write_vector(values, out[action])


@kernel
def look(levels, worlds, index, ninja, x, y, slot, left, values):
    """Keep the ninja on its floor and out of walls; write what it meets, and return whether that ends the motion.

    ``ninja`` was at (x, y) at the last look; ``slot`` is the objective, ``left`` the share of the frames that are left.
    """
    if ninja["airborne"] == 0:
        follow_floor(levels, worlds, index, ninja, x, y)
    mx, my = ninja["x"] - x, ninja["y"] - y
    states, own = states_of(worlds, index)
    fraction = sweep_tiles(levels, ninja["level"], states, own, x, y, mx, my, _BODY)
    if fraction < 1.0:
        ninja["x"], ninja["y"] = x + fraction * mx, y + fraction * my
        meet_wall(levels, worlds, index, ninja, left, values)
        if values[AT.contact] == 0.0:
            values[AT.contact] = left
    if touches_mine(levels, worlds, index, ninja["x"], ninja["y"]):
        values[AT.death] = left
    goal = levels.entities[levels.header[ninja["level"]]["first_entity"] + slot]
    arrived = is_within(ninja["x"], ninja["y"], goal["x"], goal["y"], radius_of(goal["type"], 1) + RADIUS)
    if arrived and values[AT.arrival] == 0.0:
        values[AT.arrival] = left
    return values[AT.death] > 0.0 or (arrived and goal["type"] == EXIT)


@kernel
def follow_floor(levels, worlds, index, ninja, x, y):
    """Put a ninja on the ground on its floor, with its velocity along it, or let it leave an edge."""
    level = ninja["level"]
    states, own = states_of(worlds, index)
    top, fall = y - _STEP, sweep_tiles(levels, level, states, own, ninja["x"], y - _STEP, 0.0, 2.0 * _STEP, _BODY)
    if fall == 0.0:  # a ceiling is that low: begin half way to it
        top = y - 0.5 * _STEP * sweep_tiles(levels, level, states, own, ninja["x"], y, 0.0, -_STEP, _BODY)
        fall = sweep_tiles(levels, level, states, own, ninja["x"], top, 0.0, y + _STEP - top, _BODY)
    floor = top + (y + _STEP - top) * fall - (RADIUS - _BODY)
    if fall == 1.0 or ninja["y"] < floor - _LIFT:
        ninja["airborne"] = 1
    elif fall > 0.0:
        ninja["y"] = floor
        slide_along(ninja, ninja["x"] - x, floor - y)


@kernel
def slide_along(ninja, dx, dy):
    """Turn the velocity along a direction, and lose what is across; a stop without a direction is one downwards."""
    square = dx * dx + dy * dy
    if square == 0.0:
        ninja["vy"] = 0.0
    else:
        along = (ninja["vx"] * dx + ninja["vy"] * dy) / square
        ninja["vx"], ninja["vy"] = along * dx, along * dy


@kernel
def meet_wall(levels, worlds, index, ninja, left, values):
    """Let a ninja slide along what stops it, or land on it; write whether it lands, and whether that kills."""
    level = ninja["level"]
    states, own = states_of(worlds, index)
    facing, a, b = closest_point(levels, level, states, own, ninja["x"], ninja["y"], RADIUS)
    dx, dy = ninja["x"] - a, ninja["y"] - b
    distance = math.sqrt(dx * dx + dy * dy)
    if facing == 0 or distance == 0.0:
        ninja["vx"], ninja["vy"] = 0.0, 0.0
        return
    nx, ny = dx / distance, dy / distance
    impact, clear = -(nx * ninja["vx"] + ny * ninja["vy"]), _CLEAR
    if ninja["airborne"] != 0 and abs(ny) > _LEVEL_Y:
        if impact > MAX_IMPACT - (4.0 / 3.0) * abs(ny):  # physics 01, section 9.5
            values[AT.death] = left
            return
        if ny < 0.0:
            if values[AT.contact] == 0.0:
                values[AT.landing] = 1.0
            ninja["airborne"], clear = 0, RADIUS
    if impact > 0.0:
        ninja["vx"] += impact * nx
        ninja["vy"] += impact * ny
    ninja["x"], ninja["y"] = a + clear * nx, b + clear * ny


@called_kernel
def touches_mine(levels, worlds, index, x, y):
    """Return whether a ninja at (x, y) would touch a mine that is on."""
    level = worlds.ninjas[index]["level"]
    first_entity = levels.header[level]["first_entity"]
    first_column, last_column, first_row, last_row = cells_within(x, y, CELL_SIZE)
    for column in range(first_column, last_column + 1):
        first, end = mines_of(levels, level, column, first_row, last_row)
        for i in range(first, end):
            mine, state = levels.entities[first_entity + levels.mines[i]], int(state_of(worlds, index, levels.mines[i]))
            if is_within(x, y, mine["x"], mine["y"], radius_of(mine["type"], state) + RADIUS) and state == _ARMED:
                return True
    return False


@kernel
def meets_enemy(legs, frame, x, y):
    """Return whether a ninja at (x, y) meets one of the enemies after so many frames."""
    for first in range(0, len(legs), _LEG):
        leg = legs[first : first + _LEG]
        flown = frame - leg[_BEGIN]
        if flown >= 0.0 and frame <= leg[_END]:
            if is_within(x, y, leg[_X] + flown * leg[_VX], leg[_Y] + flown * leg[_VY], leg[_REACH]):
                return True
    return False


@kernel
def is_within(xa, ya, xb, yb, reach):
    """Return whether two points are closer than ``reach``."""
    dx, dy = xa - xb, ya - yb
    return dx * dx + dy * dy < reach * reach


@kernel
def write_place(paths, field, start, length, ninja, frames, first, values):
    """Write how far the ninja has got: its displacement, and how much shorter the path is."""
    scale = MAX_HORIZONTAL_SPEED * frames
    values[first] = clip((ninja["x"] - start["x"]) / scale)
    values[first + 1] = clip((ninja["y"] - start["y"]) / scale)
    values[first + 2] = clip((length - path_length(paths, field, ninja)) / scale)
