"""The writer of ``entity_states``: the entities that are nearest to the ninja and still matter.

The kinds are numbers in an array of their own, not one-hot columns: an embedding takes them as they are (0, the
padding, is no entity), one-hot columns are made on the learner's device if wanted, and 28 columns of mostly zeros a row
would be most of the bytes.
"""

from __future__ import annotations

from nclone_env.config import MOST_LISTED_ENTITIES
from nclone_env.constants import LOCKED_DOOR
from nclone_env.jit import kernel, local_f64
from nclone_env.obs.entity_facts import (
    COLLECTABLE,
    SHOOTS,
    facing_of,
    is_deadly,
    is_shut,
    is_solid,
    listed_kind,
    matters,
    phase_of,
    place_of,
    radius_of,
    velocity_of,
)
from nclone_env.obs.game_state import clip

_FAR = 528.0  # pixels
_TOP_SPEED = 8.0
_LARGEST = 24.0
_NUMBERS = MOST_LISTED_ENTITIES  # first slot of the numbers in the scratch, behind the squared distances
_SLOTS = 2 * MOST_LISTED_ENTITIES


@kernel
def write_entity_states(levels, worlds, index, out_row, out, row, kinds, count):
    """List the entities of one world, nearest first; of equally near ones the earlier in the level's table.

    Args:
        levels: ``LevelArrays``.
        worlds: ``WorldArrays``.
        index: world.
        out_row: row of ``out`` to write.
        out: (r, K, 12) float32, ``obs.spec.ENTITY_STATE``; entries beyond the count are zeroed.
        row: row of ``kinds`` and ``count`` to write.
        kinds: (n, K) uint8, entity types; 0 beyond the count.
        count: (n, 1) uint8.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    near = local_f64(_SLOTS)
    listed = find_nearest(levels, worlds, index, near, out.shape[1])
    for place in range(listed):
        number = int(near[_NUMBERS + place])
        if number < header["entity_count"]:
            kinds[row, place] = write_entity(levels, worlds, index, number, out, out_row, place)
        else:
            door = levels.doors[header["first_door"] + number - header["entity_count"]]
            kinds[row, place] = door["type"]
            write_door(ninja, door, worlds.entity_states[index, door["owner"]], out, out_row, place)
    for place in range(listed, out.shape[1]):
        kinds[row, place] = 0
        for column in range(out.shape[2]):
            out[out_row, place, column] = 0.0
    count[row, 0] = listed


@kernel
def find_nearest(levels, worlds, index, near, most):
    """Put squared distances and numbers of the ``most`` nearest into ``near``, sorted; return how many there are.

    Numbers are those of the entities, then those of the doors. The list is bounded: one comparison with its last entry
    dismisses all that are farther away.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    x, y, first = ninja["x"], ninja["y"], header["first_entity"]
    listed = 0
    for slot in range(header["entity_count"]):
        entity = levels.entities[first + slot]
        if matters(entity["type"], worlds.entity_states[index, slot]):
            px, py = place_of(worlds, index, entity)
            dx, dy = px - x, py - y
            listed = insert(near, listed, most, dx * dx + dy * dy, slot)
    for number in range(header["door_count"]):
        door = levels.doors[header["first_door"] + number]
        if door["type"] != LOCKED_DOOR or worlds.entity_states[index, door["owner"]] == 0:
            dx, dy = door["x"] - x, door["y"] - y
            listed = insert(near, listed, most, dx * dx + dy * dy, header["entity_count"] + number)
    return listed


@kernel
def insert(near, listed, most, distance, number):
    """Insert an entry behind those that are not farther away; return how many there are now."""
    if listed == most:
        if not distance < near[most - 1]:
            return listed
        listed -= 1
    place = listed
    while place > 0 and distance < near[place - 1]:
        near[place] = near[place - 1]
        near[_NUMBERS + place] = near[_NUMBERS + place - 1]
        place -= 1
    near[place] = distance
    near[_NUMBERS + place] = number
    return listed + 1


@kernel
def write_entity(levels, worlds, index, slot, out, row, place):
    """Write a row about one entity of the table; return the kind it is listed as."""
    ninja = worlds.ninjas[index]
    entity = levels.entities[levels.header[ninja["level"]]["first_entity"] + slot]
    state = int(worlds.entity_states[index, slot])
    mover = worlds.movers[index, max(entity["mover"], 0)]
    kind = listed_kind(int(entity["type"]))
    x, y = place_of(worlds, index, entity)
    write_place(ninja, x, y, out, row, place)
    vx, vy = velocity_of(worlds, index, entity, state)
    out[row, place, 2], out[row, place, 3] = clip(vx / _TOP_SPEED), clip(vy / _TOP_SPEED)
    facing_x, facing_y = facing_of(entity, mover, state)
    out[row, place, 4], out[row, place, 5] = clip(facing_x), clip(facing_y)
    out[row, place, 6] = radius_of(kind, state) / _LARGEST
    out[row, place, 7] = phase_of(kind, state)
    out[row, place, 8] = 1.0 if is_deadly(kind, state) else 0.0
    out[row, place, 9] = SHOOTS[kind]
    out[row, place, 10] = 1.0 if is_solid(kind, state) else 0.0
    out[row, place, 11] = COLLECTABLE[kind]
    return kind


@kernel
def write_door(ninja, door, state, out, row, place):
    """Write a row about a door, as apart from the switch that works it."""
    write_place(ninja, door["x"], door["y"], out, row, place)
    shut = 1.0 if is_shut(door["type"], state) else 0.0
    for column in range(2, out.shape[2]):
        out[row, place, column] = 0.0
    out[row, place, 4 if door["vertical"] != 0 else 5] = 1.0
    out[row, place, 6] = radius_of(door["type"], state) / _LARGEST
    out[row, place, 7], out[row, place, 10] = shut, shut


@kernel
def write_place(ninja, x, y, out, row, place):
    """Write where a place is as seen from the ninja."""
    out[row, place, 0], out[row, place, 1] = clip((x - ninja["x"]) / _FAR), clip((y - ninja["y"]) / _FAR)
