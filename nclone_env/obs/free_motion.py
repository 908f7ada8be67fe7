"""The writer of ``free_motion``: how far each action takes the ninja by its own motion.

The ninja follows its equations of motion (physics 01, sections 6.1, 10 and 11) among the walls of this moment. Floors
carry it up to their edges, walls and ceilings take its velocity towards them; mines, pads, one-way platforms and blocks
act as they stand now. A deadly entity or the exit ends the motion. Drones go on with their patrol, other deadly
entities fly on as they do now until a wall stops them; nothing else moves or changes. ``action_outcomes`` copies the
world and simulates all of it. ``obs.spec.FREE_MOTION`` defines the elements.
"""

import math

import numpy as np

from nclone_env.game import (
    BOOST_PAD,
    CELEBRATING,
    CHASER_DRONE,
    DEAD,
    EXIT,
    JUMPING,
    KINDS,
    LAUNCH_PAD,
    MAX_HORIZONTAL_SPEED,
    MAX_IMPACT,
    MINE,
    MINI_DRONE,
    NUM_DIRECTIONS,
    ONE_WAY,
    RADIUS,
    ZAP_DRONE,
    bits,
)
from nclone_env.jit import called_kernel, kernel, local_f64
from nclone_env.level import NO_ENTITY
from nclone_env.obs.game_state import clip, objective, path_length
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import FREE_MOTION, columns
from nclone_env.sim import (
    CONTACT_SLOTS,
    FIRST,
    MOVER,
    NINJA_RECORD,
    boost,
    cell_of,
    closest_point,
    describe,
    discs_overlap,
    first_near,
    frames_to_node,
    hash_ninja,
    integrate,
    meets,
    mover_of,
    next_leg,
    push_one_way,
    radius_of,
    square_penetration,
    state_of,
    states_of,
    sweep_tiles,
    think,
    touch_launch_pad,
)

AT, _SIZE = columns(FREE_MOTION), len(FREE_MOTION)
_RECORD_WORDS, _MOVER_WORDS = NINJA_RECORD.itemsize // 8, MOVER.itemsize // 8
_DIRECTIONS = (0, -1, 1)  # of actions, in their order
_DEADLY = bits(kind for kind in KINDS if kind.deadly)
_ARMED = KINDS[MINE].states["armed"]
_SETTLED = 8  # frames after which the press of a jump has no more effect, a multiple of those from look to look
_NO_MARK = np.uint64(0)
_LOOK = 2  # frames from one look at the surroundings to the next
_BODY = 9.0  # radius of the disc that walls stop, pixels; smaller than the ninja, whose floor is no wall
_CLEAR = 9.5  # pixels from the centre to a wall that it slides along, more than those of the disc
_STEP = 8.0  # pixels by which a floor may rise or fall from one look to the next
_DEEPEST = 20.0  # pixels by which a ninja may have passed the plane of a platform since the last look
_LIFT = 1.0  # pixels above a floor from which on the ninja has left it
_LEVEL_Y = 0.0001  # normals with less of y are those of vertical walls
_IN_THE_WAY = _DEADLY | bits(kind for kind in KINDS if kind.solid)
_PATROLS = bits(KINDS[number] for number in (ZAP_DRONE, MINI_DRONE, CHASER_DRONE))
_ENEMY_BODY = 5.0  # radius of the disc that walls stop, pixels: narrow enough for the passages of all
_X, _Y, _VX, _VY, _BEGIN, _END, _REACH, _LEG = range(8)
"""Numbers of a leg, straight flight of an enemy: place at its begin, pixels; velocity, pixels per frame; its begin and
end, frames; distance from which on a ninja is safe, pixels. Then their count."""
_LEGS = 128  # at most, the first ones of the entities that the ninja may meet
_LEG_NUMBERS = _LEGS * _LEG
_BLOCK_X, _BLOCK_Y, _HALF, _FACE_X, _FACE_Y, _BLOCK = range(6)
"""Numbers of a block, an entity that stands in the way: its centre; its half side and the radius of the ninja, pixels;
the side that kills, a unit vector or zeros. Then their count."""
_BLOCKS = 64  # at most, the first ones of the entities that the ninja may meet
_BLOCK_NUMBERS = _BLOCKS * _BLOCK


@kernel
def write_free_motion(levels, paths, worlds, index, frames, out):
    """Write the free motion of one world's ninja, whose actions are each held for so many frames.

    ``out`` is (6, 10) float32, or the words of float32 or float16 (``obs.half``), in the order of ``Action`` and of
    ``FREE_MOTION``.
    """
    field, slot = objective(levels, paths, worlds, index)
    legs, blocks = local_f64(_LEG_NUMBERS, 1), local_f64(_BLOCK_NUMBERS, 1)
    last_leg, last_block = list_movers(levels, worlds, index, frames, legs, blocks)
    legs, blocks = legs[:last_leg], blocks[:last_block]
    for action in range(NUM_DIRECTIONS):
        mark = write_motion(levels, paths, worlds, index, action, frames, field, slot, legs, blocks, _NO_MARK, out)
        jump = action + NUM_DIRECTIONS
        write_motion(levels, paths, worlds, index, jump, frames, field, slot, legs, blocks, mark, out)


@kernel
def list_movers(levels, worlds, index, frames, legs, blocks):
    """Write the legs and blocks of the entities with movers that the ninja may meet; return where they end."""
    ninja, last_leg, last_block = worlds.ninjas[index], 0, 0
    header, record = levels.header[ninja["level"]], local_f64(_MOVER_WORDS).view(MOVER)
    mover = record[0]
    for number in range(header["mover_count"]):
        slot = levels.mover_slots[header["first_mover"] + number]
        entity, state = levels.entities[header["first_entity"] + slot], int(state_of(worlds, index, slot))
        kind = int(entity["type"])
        if not _IN_THE_WAY >> kind & 1:
            continue
        record[0] = mover_of(worlds, index, entity["mover"])
        vx, vy, fx, fy, _, deadly, solid = describe(worlds, index, entity, mover, state)
        reach = radius_of(kind, state) + RADIUS
        if abs(mover["x"] - ninja["x"]) > reach + frames * (MAX_HORIZONTAL_SPEED + abs(vx) + abs(vy)):
            continue
        if solid and not (deadly and (vx != 0.0 or vy != 0.0)):
            last_block = list_block(mover, reach, fx, fy, deadly, blocks, last_block)
        elif deadly and _PATROLS >> kind & 1:
            last_leg = list_patrol(levels, worlds, index, entity, mover, state, reach, frames, legs, last_leg)
        elif deadly:
            last_leg = list_flight(levels, worlds, index, mover, vx, vy, reach, frames, legs, last_leg)
    return last_leg, last_block


@kernel
def list_block(mover, half, fx, fy, deadly, blocks, end):
    """Write a block unless there are too many; return where the blocks end."""
    if end == len(blocks):
        return end
    block = blocks[end : end + _BLOCK]
    block[_BLOCK_X], block[_BLOCK_Y], block[_HALF] = mover["x"], mover["y"], half
    block[_FACE_X], block[_FACE_Y] = (fx, fy) if deadly else (0.0, 0.0)
    return end + _BLOCK


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
def write_motion(levels, paths, worlds, index, action, frames, field, slot, legs, blocks, mark, out):
    """Write the free motion of one action; return the mark of the ninja after ``_SETTLED`` frames, if it goes on.

    Args as in :func:`write_free_motion`, and:
        field: row of the objective in ``paths.fields``.
        slot: entity of the objective.
        legs, blocks: (7 k,), (5 k,) float64, those that :func:`list_movers` writes.
        mark: of the action without the jump. A ninja that comes to the same in spite of the jump moves on as there.
    """
    start, values, record = worlds.ninjas[index], local_f64(_SIZE), local_f64(_RECORD_WORDS).view(NINJA_RECORD)
    record[0] = start
    ninja, direction, jump = record[0], _DIRECTIONS[action % NUM_DIRECTIONS], action // NUM_DIRECTIONS
    if ninja["state"] >= DEAD:  # nothing moves any more
        values[AT.arrival if ninja["state"] == CELEBRATING else AT.death] = 1.0
        write_vector(values, out[action])
        return _NO_MARK
    length = path_length(paths, field, start)
    early, frame, ended, passed, settled = (frames + 2) // 3, 0, False, False, _NO_MARK
    while not ended:
        x, y = ninja["x"], ninja["y"]
        integrate(ninja)
        think(ninja, direction, jump)
        if frame == 0 and ninja["state"] == JUMPING:
            ninja["airborne"] = 1
        integrate(ninja)
        frame += _LOOK
        left = max(frames + 1 - frame, 1) / frames
        ended = look(levels, worlds, index, ninja, x, y, slot, blocks, left, values) or frame >= frames
        if meets_enemy(legs, frame, ninja["x"], ninja["y"]):
            values[AT.death], ended = left, True
        think(ninja, direction, jump)
        if not passed and (ended or frame >= early):
            passed = True
            write_place(paths, field, start, length, ninja, early, AT.early_x, values)
        if frame == _SETTLED and not ended:
            settled = mark_without_jump(ninja)
            if settled == mark:
                for place in range(out.shape[1]):
                    out[action, place] = out[action - NUM_DIRECTIONS, place]
                return mark
    write_place(paths, field, start, length, ninja, frames, AT.late_x, values)
    write_vector(values, out[action])
    return settled


@kernel
def mark_without_jump(ninja):
    """Return a hash of a ninja that does not depend on whether the jump is held."""
    held = ninja["jump_held"]
    ninja["jump_held"] = 0
    mark = hash_ninja(ninja, FIRST)
    ninja["jump_held"] = held
    return mark


@kernel
def look(levels, worlds, index, ninja, x, y, slot, blocks, left, values):
    """Keep the ninja on its floor and out of walls; write what it meets, and return whether that ends the motion.

    ``ninja`` was at (x, y) at the last look; ``slot`` is the objective, ``left`` the share of the frames that are left.
    """
    grounded = ninja["airborne"] == 0
    if grounded:
        follow_floor(levels, worlds, index, ninja, x, y)
    mx, my = ninja["x"] - x, ninja["y"] - y
    ninja["walled"] = 1 if ninja["walled"] != 0 and abs(mx) < _CLEAR - _BODY else 0
    states, own = states_of(worlds, index)
    fraction = sweep_tiles(levels, ninja["level"], states, own, x, y, mx, my, _BODY)
    if fraction < 1.0:
        ninja["x"], ninja["y"] = x + fraction * mx, y + fraction * my
        meet_wall(levels, worlds, index, ninja, left, values)
    meet_blocks(ninja, blocks, grounded, left, values)
    meet_near(levels, worlds, index, ninja, grounded, x, y, left, values)
    goal = levels.entities[levels.header[ninja["level"]]["first_entity"] + slot]
    arrived = discs_overlap(ninja["x"], ninja["y"], goal["x"], goal["y"], radius_of(goal["type"], 1) + RADIUS)
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
    """Put a ninja that a wall stops beside it, on a floor upon it, and let it slide along or stand."""
    level = ninja["level"]
    states, own = states_of(worlds, index)
    facing, a, b = closest_point(levels, level, states, own, ninja["x"], ninja["y"], RADIUS)
    dx, dy = ninja["x"] - a, ninja["y"] - b
    distance = math.sqrt(dx * dx + dy * dy)
    if facing == 0 or distance == 0.0:
        ninja["vx"], ninja["vy"] = 0.0, 0.0
        return
    nx, ny = dx / distance, dy / distance
    clear = RADIUS if ninja["airborne"] != 0 and ny < -_LEVEL_Y else _CLEAR
    stop(ninja, nx, ny, left, values)
    ninja["x"], ninja["y"] = a + clear * nx, b + clear * ny


@kernel
def stop(ninja, nx, ny, left, values):
    """Let a ninja slide along what it touches, or stand on it; write the first contact, and an impact that kills.

    Args:
        nx, ny: unit vector from what it touches to the ninja.
        left: share of the frames that are left; 0 for a floor that carries it already, which is no contact.
    """
    impact, landing = -(nx * ninja["vx"] + ny * ninja["vy"]), False
    if abs(ny) <= _LEVEL_Y:
        ninja["walled"], ninja["wall_normal"] = 1, nx
    elif ninja["airborne"] != 0:
        kills = impact > MAX_IMPACT - (4.0 / 3.0) * abs(ny)  # physics 01, section 9.5
        values[AT.death] = left if kills else values[AT.death]
        landing = ny < 0.0 and not kills
    if impact > 0.0:
        ninja["vx"] += impact * nx
        ninja["vy"] += impact * ny
    if landing:
        ninja["airborne"], ninja["floor_x"], ninja["floor_y"] = 0, nx, ny
    if values[AT.contact] == 0.0:
        values[AT.contact], values[AT.landing] = left, 1.0 if landing else 0.0


@kernel
def leave(ninja, nx, ny, length, grounded, left, values):
    """Move a ninja out of an entity; one that was on the ground is carried by it if it is a floor."""
    ninja["x"] += length * nx
    ninja["y"] += length * ny
    carried = grounded and ny < 0.0
    if carried:
        ninja["airborne"] = 0
    stop(ninja, nx, ny, 0.0 if carried else left, values)


@kernel
def meet_blocks(ninja, blocks, grounded, left, values):
    """Keep a ninja out of the blocks; write whether one kills it."""
    for first in range(0, len(blocks), _BLOCK):
        block = blocks[first : first + _BLOCK]
        inside, nx, ny, depth, _ = square_penetration(
            block[_BLOCK_X], block[_BLOCK_Y], ninja["x"], ninja["y"], block[_HALF]
        )
        if inside:
            leave(ninja, nx, ny, depth, grounded, left, values)
            if nx * block[_FACE_X] + ny * block[_FACE_Y] > 0.5:
                values[AT.death] = left


@called_kernel
def meet_near(levels, worlds, index, ninja, grounded, x, y, left, values):
    """Let the mines, pads and one-way platforms near a ninja act on it, which was at (x, y); write what it meets."""
    level, contacts = ninja["level"], local_f64(CONTACT_SLOTS)
    first_entity = levels.header[level]["first_entity"]
    i = first_near(levels, level, cell_of(ninja["x"], ninja["y"]))
    while levels.near[i] != NO_ENTITY:
        slot = levels.near[i]
        entity = levels.entities[first_entity + slot]
        kind = entity["type"]
        i += 1
        if kind == ONE_WAY:
            hit, nx, ny, length = push_one_way(ninja, entity, x, y, -_DEEPEST)
            if hit:
                leave(ninja, nx, ny, length, grounded, left, values)
        elif kind == LAUNCH_PAD:
            speed = ninja["vy"]
            touch_launch_pad(ninja, entity, contacts)
            if ninja["vy"] != speed:
                ninja["airborne"] = 1
        elif kind == BOOST_PAD:
            radius = radius_of(kind, 0)
            if meets(ninja, entity["x"], entity["y"], radius):
                if not discs_overlap(x, y, entity["x"], entity["y"], radius + RADIUS):
                    boost(ninja)
        elif _DEADLY >> int(kind) & 1:
            state = int(state_of(worlds, index, slot))
            if state == _ARMED and meets(ninja, entity["x"], entity["y"], radius_of(kind, state)):
                values[AT.death] = left


@kernel
def meets_enemy(legs, frame, x, y):
    """Return whether a ninja at (x, y) meets one of the enemies after so many frames."""
    for first in range(0, len(legs), _LEG):
        leg = legs[first : first + _LEG]
        flown = frame - leg[_BEGIN]
        if flown >= 0.0 and frame <= leg[_END]:
            if discs_overlap(x, y, leg[_X] + flown * leg[_VX], leg[_Y] + flown * leg[_VY], leg[_REACH]):
                return True
    return False


@kernel
def write_place(paths, field, start, length, ninja, frames, first, values):
    """Write how far the ninja has got: its displacement, and how much shorter the path is."""
    scale = MAX_HORIZONTAL_SPEED * frames
    values[first] = clip((ninja["x"] - start["x"]) / scale)
    values[first + 1] = clip((ninja["y"] - start["y"]) / scale)
    values[first + 2] = clip((length - path_length(paths, field, ninja)) / scale)
