"""The writers of ``entity_states``, the entities that are nearest to the ninja and still matter, and of ``graph``.

The kinds are numbers in an array of their own, not one-hot columns: an embedding takes them as they are (0, the
padding, is no entity), one-hot columns can be made on the learner's device, and 28 columns of mostly zeros a row would
be most of the bytes.

The phase of an entity; kinds that are not named have phase 0:

| kind | 0 | 0.5 | 1 |
|---|---|---|---|
| mines | safe | stepped on | armed |
| exit, doors | closed exit, open door | | open exit, closed door |
| boost pad | idle | | touched |
| chaser drone | patrols | | chases |
| laser drone, chaingun drone | patrols, recovers | warns | fires |
| floor guard | idle | | runs |
| thwump | idle | returns | charges |
| shove thwump | idle | is pressed, returns | is launched |
| rocket turret | idle | warns | its rocket flies |
| gauss turret | idle, recovers | aims | is about to shoot |
| evil ninja | waits | moves to the place of the touch | follows |
| laser turret, zap drone, mini drone, death ball | | | always |
"""

import math

import numpy as np

from nclone_env.config import MOST_LISTED_ENTITIES
from nclone_env.game import DOOR_SWITCHES, KINDS, LOCKED_DOOR, REGULAR_DOOR, TRAP_DOOR, bits
from nclone_env.jit import kernel, local_f64
from nclone_env.level import NO_NODE, SPACING
from nclone_env.obs.game_state import clip
from nclone_env.obs.half import write_vector
from nclone_env.obs.spec import ENTITY_STATE, columns
from nclone_env.sim import describe, is_closed, mover_of, place_of, radius_of, state_of

_VANISHES = bits(kind for kind in KINDS if kind.vanishes)
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)
_COLLECTABLE = bits(kind for kind in KINDS if kind.collectable)
_LISTED_AS = tuple(DOOR_SWITCHES.get(number, number) for number in range(len(KINDS)))
_FAR = 528.0  # pixels
_TOP_SPEED = 8.0
_LARGEST = 24.0
AT, _SIZE = columns(ENTITY_STATE), len(ENTITY_STATE)
_NUMBERS = MOST_LISTED_ENTITIES  # first slot of the numbers in the scratch, behind the squared distances
_SLOTS = 2 * MOST_LISTED_ENTITIES

PRESENT, CLOSED = 1, 2
NO_LATTICE: np.ndarray = np.zeros((0, 0, 0), np.int16)
NO_LATTICE.flags.writeable = False


@kernel
def write_entity_states(levels, worlds, index, row, states, kinds, count):
    """List the entities of one world, nearest first; of equally near ones the earlier in the level's table.

    Args:
        row: row of the arrays to write.
        states: (n, K, 12) float32, or the words of float32 or float16 (``obs.half``); entries beyond the count are
            zeroed.
        kinds: (n, K) uint8, entity types; 0 beyond the count.
        count: (n, 1) uint8.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    near, out = local_f64(_SLOTS), local_f64(_SIZE)
    listed = find_nearest(levels, worlds, index, near, states.shape[1])
    for place in range(listed):
        number = int(near[_NUMBERS + place])
        if number < header["entity_count"]:
            kinds[row, place] = write_entity(levels, worlds, index, number, out)
        else:
            door = levels.doors[header["first_door"] + number - header["entity_count"]]
            kinds[row, place] = door["type"]
            write_door(ninja, door, state_of(worlds, index, door["owner"]), out)
        write_vector(out, states[row, place])
    for place in range(listed, states.shape[1]):
        kinds[row, place] = 0
        for column in range(states.shape[2]):
            states[row, place, column] = 0
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
        if matters(int(entity["type"]), state_of(worlds, index, slot)):
            px, py = place_of(worlds, index, entity)
            dx, dy = px - x, py - y
            listed = insert(near, listed, most, dx * dx + dy * dy, slot)
    for number in range(header["door_count"]):
        door = levels.doors[header["first_door"] + number]
        if door["type"] != LOCKED_DOOR or state_of(worlds, index, door["owner"]) == 0:
            dx, dy = door["x"] - x, door["y"] - y
            listed = insert(near, listed, most, dx * dx + dy * dy, header["entity_count"] + number)
    return listed


@kernel
def matters(kind, state):
    """Return whether an entity is listed: not once it is taken or used for good; doors are listed separately."""
    if _VANISHES >> kind & 1:
        return state == 0
    return kind != REGULAR_DOOR


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
def write_entity(levels, worlds, index, slot, out):
    """Write a row about one entity of the table; return the kind it is listed as."""
    ninja = worlds.ninjas[index]
    entity = levels.entities[levels.header[ninja["level"]]["first_entity"] + slot]
    state = int(state_of(worlds, index, slot))
    mover = mover_of(worlds, index, max(entity["mover"], 0))
    kind = _LISTED_AS[entity["type"]]
    x, y = place_of(worlds, index, entity)
    write_place(ninja, x, y, out)
    vx, vy, facing_x, facing_y, phase, deadly, solid = describe(worlds, index, entity, mover, state)
    out[AT.vx], out[AT.vy] = clip(vx / _TOP_SPEED), clip(vy / _TOP_SPEED)
    out[AT.facing_x], out[AT.facing_y] = clip(facing_x), clip(facing_y)
    out[AT.radius] = radius_of(kind, state) / _LARGEST
    out[AT.phase] = phase
    out[AT.deadly] = 1.0 if deadly else 0.0
    out[AT.shoots] = _SHOOTS >> kind & 1
    out[AT.solid] = 1.0 if solid else 0.0
    out[AT.collectable] = _COLLECTABLE >> kind & 1
    return kind


@kernel
def write_door(ninja, door, state, out):
    """Write a row about a door itself; its switch has a row of its own."""
    write_place(ninja, door["x"], door["y"], out)
    closed = 1.0 if is_closed(door["type"], state) else 0.0
    for column in range(AT.vx, _SIZE):
        out[column] = 0.0
    out[AT.facing_x if door["vertical"] != 0 else AT.facing_y] = 1.0
    out[AT.radius] = radius_of(door["type"], state) / _LARGEST
    out[AT.phase], out[AT.solid] = closed, closed


@kernel
def write_place(ninja, x, y, out):
    """Write where a place is as seen from the ninja."""
    out[AT.relative_x], out[AT.relative_y] = clip((x - ninja["x"]) / _FAR), clip((y - ninja["y"]) / _FAR)


@kernel
def write_graph(levels, worlds, index, lattice, row, level, node, entities):
    """Write the dynamic part of a graph.

    Args:
        lattice: (L, 51, 89) int16 of ``Graphs``.
        row: row of the remaining arrays to write.
        level: (n, 1) int32, index of the graph.
        node: (n, 1) int32, place of the free lattice point nearest to the ninja among the 16 around it; ``NO_NODE`` if
            none is free.
        entities: (n, K) uint8, for each entity ``PRESENT`` until it is collected or used up, plus ``CLOSED`` while it
            is a closed door, or the switch of one.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    level[row, 0] = ninja["level"]
    node[row, 0] = nearest_place(lattice, ninja["level"], ninja["x"], ninja["y"])
    for slot in range(entities.shape[1]):
        value = 0
        if slot < header["entity_count"]:
            kind = levels.entities[header["first_entity"] + slot]["type"]
            state = state_of(worlds, index, slot)
            if kind == REGULAR_DOOR or matters(kind, state):
                value += PRESENT
            if (kind == REGULAR_DOOR or kind == LOCKED_DOOR or kind == TRAP_DOOR) and is_closed(kind, state):
                value += CLOSED
        entities[row, slot] = value


@kernel
def nearest_place(lattice, level, x, y):
    """Return the place of the nearest free lattice point of the 16 around (x, y); ``NO_NODE`` if none is free."""
    _, rows, columns = lattice.shape
    i0, j0 = int(math.floor(x / SPACING)), int(math.floor(y / SPACING))
    best, found = math.inf, NO_NODE
    for j in range(max(j0 - 1, 0), min(j0 + 2, rows - 1) + 1):
        for i in range(max(i0 - 1, 0), min(i0 + 2, columns - 1) + 1):
            if lattice[level, j, i] >= 0:
                dx, dy = SPACING * i - x, SPACING * j - y
                length = dx * dx + dy * dy
                if length < best:
                    best, found = length, int(lattice[level, j, i])
    return found
