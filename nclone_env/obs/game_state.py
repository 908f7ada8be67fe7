"""The writer of ``game_state``, whose elements ``obs.spec.GAME_STATE`` defines, and the objective of the ninja."""

import math

from nclone_env.game import (
    CELL_SIZE,
    COLUMNS,
    JUMPING,
    KINDS,
    MAX_JUMP_DURATION,
    MINE,
    RADIUS,
    ROWS,
    WALL_SLIDING,
    WORLD_HEIGHT,
    WORLD_WIDTH,
)
from nclone_env.jit import kernel, local_f64
from nclone_env.level import NO_CODE, code_at, direction_to, distance_at, follow, nearest_node
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import GAME_STATE, columns
from nclone_env.sim import mines_of, state_of

AT, _SIZE = columns(GAME_STATE), len(GAME_STATE)
_TOP_SPEED = 8.0
_SIGHT = 96.0
_NEAR, _FAR = 126.0, 528.0  # pixels; an objective and a path farther away look alike in local observations
_STEPS = 8  # lattice steps, 96 pixels
_NO_PATH = 10_000.0  # pixels
_NEXT_HOPS, _AHEAD_HOPS = 3, 10  # lattice steps, 36 and 120 pixels
_ARMED = KINDS[MINE].states["armed"]
_MINE_REACH = KINDS[MINE].radii[_ARMED] + RADIUS


@kernel
def open_exit_count(levels, worlds, index):
    """Return how many exits of a world are open."""
    header = levels.header[worlds.ninjas[index]["level"]]
    count = 0
    for number in range(header["exit_count"]):
        if state_of(worlds, index, header["first_exit"] + 2 * number) != 0:
            count += 1
    return count


@kernel
def objective(levels, paths, worlds, index):
    """Return (field, slot) of the objective: its row in ``paths.fields`` and its entity.

    In a level with landmarks, it is the first that has not been visited. In the others it is, until a switch is
    collected, the switch nearest in a straight line, with the field of the shortest path by any switch to its exit;
    then the open exit with the shortest path.
    """
    if paths.header[worlds.ninjas[index]["level"]]["landmark_count"] > 0:
        return next_landmark(paths, worlds, index)
    return nearest_objective(levels, paths, worlds, index)


@kernel
def next_landmark(paths, worlds, index):
    """Return (field, slot) of the first landmark that has not been visited; the exit if there is no other."""
    header = paths.header[worlds.ninjas[index]["level"]]
    first, number = header["first_landmark"], 0
    while number < header["landmark_count"] - 1 and state_of(worlds, index, paths.landmarks[first + number]) != 0:
        number += 1
    return header["first_field"] + number, paths.landmarks[first + number]


@kernel
def nearest_objective(levels, paths, worlds, index):
    """Return (field, slot) of the nearest switch, or of the nearest open exit if there is one."""
    ninja = worlds.ninjas[index]
    header = paths.header[ninja["level"]]
    first_exit, first_field, first_entity = header["first_exit"], header["first_field"], header["first_entity"]
    x, y = ninja["x"], ninja["y"]
    exits_open = open_exit_count(levels, worlds, index) > 0
    found, best, best_field, best_slot = False, 0.0, first_field, first_exit
    for number in range(header["exit_count"]):
        slot = first_exit + 2 * number
        field = first_field
        if exits_open:
            if state_of(worlds, index, slot) == 0:
                continue
            field = first_field + 1 + number
            length = distance_at(paths, field, x, y)
        else:
            slot += 1
            entity = levels.entities[first_entity + slot]
            dx, dy = entity["x"] - x, entity["y"] - y
            length = math.sqrt(dx * dx + dy * dy)
        if not found or length < best:
            found, best, best_field, best_slot = True, length, field, slot
    return best_field, best_slot


@kernel
def path_length(paths, field, ninja):
    """Return the path length by a field from where a ninja is, pixels; ``_NO_PATH`` where no path leads there."""
    length = distance_at(paths, field, ninja["x"], ninja["y"])
    return length if length < _NO_PATH else _NO_PATH


@kernel
def path_remaining(levels, paths, worlds, index):
    """Return the remaining path length as a multiple of the initial one; infinite without a path."""
    field, _ = objective(levels, paths, worlds, index)
    ninja = worlds.ninjas[index]
    return distance_at(paths, field, ninja["x"], ninja["y"]) / paths.header[ninja["level"]]["start_distance"]


@kernel
def write_game_state(levels, paths, worlds, index, settings, vector):
    """Write the 30 elements of one world.

    Args:
        settings: ``SETTINGS`` record with ``max_frames``, and ``local_position`` (``ObservationConfig``): whether to
            leave out what tells where in its level the ninja is.
        vector: (30,) float32, or the words of float32 or float16 (``obs.half``); written.
    """
    ninja, local, out = worlds.ninjas[index], settings["local_position"] != 0, local_f64(_SIZE)
    out[AT.x] = place_in_tile(ninja["x"]) if local else clip(ninja["x"] / (WORLD_WIDTH / 2.0) - 1.0)
    out[AT.y] = place_in_tile(ninja["y"]) if local else clip(ninja["y"] / (WORLD_HEIGHT / 2.0) - 1.0)
    out[AT.vx] = clip(ninja["vx"] / _TOP_SPEED)
    out[AT.vy] = clip(ninja["vy"] / _TOP_SPEED)
    out[AT.airborne] = ninja["airborne"]
    out[AT.wall_normal] = clip(ninja["wall_normal"]) if ninja["walled"] != 0 else 0.0
    jumping = ninja["state"] == JUMPING
    out[AT.jumping] = 1.0 if jumping else 0.0
    out[AT.wall_sliding] = 1.0 if ninja["state"] == WALL_SLIDING else 0.0
    out[AT.floor_normal_x] = clip(ninja["floor_x"])
    out[AT.floor_normal_y] = clip(ninja["floor_y"])
    out[AT.jump_duration] = clip(ninja["jump_duration"] / MAX_JUMP_DURATION) if jumping else 0.0
    out[AT.jump_held] = ninja["jump_held"]
    out[AT.floor_jump_buffer] = buffer_remaining(ninja["floor_buffer"])
    out[AT.wall_jump_buffer] = buffer_remaining(ninja["wall_buffer"])
    out[AT.exit_open] = 1.0 if open_exit_count(levels, worlds, index) > 0 else 0.0
    write_path(levels, paths, worlds, index, local, out)
    write_mine(levels, worlds, index, out)
    out[AT.time_remaining] = 0.0 if local else clip(1.0 - ninja["frame"] / settings["max_frames"])
    write_vector(out, vector)


@kernel
def place_in_tile(value):
    """Return a coordinate from -1, at the left or upper edge of its tile, to 1."""
    return 2.0 * (value / CELL_SIZE - math.floor(value / CELL_SIZE)) - 1.0


@kernel
def write_path(levels, paths, worlds, index, local, out):
    """Write the elements about the objective, the path to it and the clearance around the ninja."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    x, y = ninja["x"], ninja["y"]
    field, slot = objective(levels, paths, worlds, index)
    entity = levels.entities[header["first_entity"] + slot]
    out[AT.objective_x] = clip((entity["x"] - x) / (_NEAR if local else WORLD_WIDTH / 2.0))
    out[AT.objective_y] = clip((entity["y"] - y) / (_NEAR if local else WORLD_HEIGHT / 2.0))
    length, j, i = nearest_node(paths, field, x, y)
    whole = _FAR if local else paths.header[ninja["level"]]["start_distance"]
    out[AT.path_remaining] = clip(length / whole) if length < math.inf and 0.0 < whole < math.inf else 1.0
    write_directions(paths, field, length, j, i, x, y, out)
    out[AT.clearance_left] = clearance(paths, field, j, i, 0, -1)
    out[AT.clearance_right] = clearance(paths, field, j, i, 0, 1)
    out[AT.clearance_up] = clearance(paths, field, j, i, -1, 0)
    out[AT.clearance_down] = clearance(paths, field, j, i, 1, 0)


@kernel
def write_directions(paths, field, length, j, i, x, y, out):
    """Write the directions of the next 36 pixels of the path, and to the point 120 pixels ahead, if there is a path."""
    if length < math.inf:
        codes, first, rows = paths.codes, paths.fields[field]["first"], paths.rows
        near_j, near_i = follow(codes, first, rows, field, j, i, _NEXT_HOPS)
        out[AT.path_direction_x], out[AT.path_direction_y] = direction_to(near_j, near_i, x, y)
        far_j, far_i = follow(codes, first, rows, field, near_j, near_i, _AHEAD_HOPS - _NEXT_HOPS)
        out[AT.lookahead_x], out[AT.lookahead_y] = direction_to(far_j, far_i, x, y)


@kernel
def clearance(paths, field, j, i, down, right):
    """Return the free distance in a direction, in lattice steps, as a share of 96 pixels."""
    for step in range(1, _STEPS + 1):
        row, column = j + step * down, i + step * right
        if row < 0 or row >= paths.rows.shape[1] or code_at(paths, field, row, column) == NO_CODE:
            return (step - 1) / _STEPS
    return 1.0


@kernel
def write_mine(levels, worlds, index, out):
    """Write the elements about the nearest armed mine in the cells within sight."""
    ninja = worlds.ninjas[index]
    level = ninja["level"]
    first_entity = levels.header[level]["first_entity"]
    x, y = ninja["x"], ninja["y"]
    column, cell_row = int(math.floor(x / 24.0)), int(math.floor(y / 24.0))
    first_row, last_row = min(max(cell_row - 4, 0), ROWS - 1), min(max(cell_row + 4, 0), ROWS - 1)
    best, best_dx, best_dy = _SIGHT, 0.0, 0.0
    for c in range(max(column - 4, 0), min(column + 4, COLUMNS - 1) + 1):
        first, end = mines_of(levels, level, c, first_row, last_row)
        for i in range(first, end):
            slot = levels.mines[i]
            entity = levels.entities[first_entity + slot]
            if state_of(worlds, index, slot) == _ARMED:
                dx, dy = entity["x"] - x, entity["y"] - y
                distance = math.sqrt(dx * dx + dy * dy)
                if distance < best:
                    best, best_dx, best_dy = distance, dx, dy
    out[AT.mine_x] = clip(best_dx / _SIGHT)
    out[AT.mine_y] = clip(best_dy / _SIGHT)
    near = clip(1.0 - (best - _MINE_REACH) / (_SIGHT - _MINE_REACH))
    out[AT.mine_proximity] = near if near > 0.0 else 0.0


@kernel
def buffer_remaining(timer):
    """Return the remaining share of a jump buffer's five frames; 0 if its timer does not run."""
    return (5.0 - timer) / 5.0 if 0 <= timer <= 4 else 0.0


@kernel
def clip(value):
    """Return the value clipped to -1..1."""
    if value < -1.0:
        return -1.0
    if value > 1.0:
        return 1.0
    return value
