"""The writer of ``entity_states``: the entities that are nearest to the ninja and still matter.

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

from __future__ import annotations

from nclone_env.config import MOST_LISTED_ENTITIES
from nclone_env.jit import kernel, local_f64
from nclone_env.kinds import DOOR_SWITCHES, KINDS, LOCKED_DOOR, REGULAR_DOOR, bits
from nclone_env.obs.game_state import clip
from nclone_env.sim.dispatch import describe, radius_of
from nclone_env.sim.entities.door import is_closed
from nclone_env.sim.query import place_of

_VANISHES = bits(kind for kind in KINDS if kind.vanishes)
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)
_COLLECTABLE = bits(kind for kind in KINDS if kind.collectable)
_LISTED_AS = tuple(DOOR_SWITCHES.get(number, number) for number in range(len(KINDS)))
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
        if matters(int(entity["type"]), worlds.entity_states[index, slot]):
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
def write_entity(levels, worlds, index, slot, out, row, place):
    """Write a row about one entity of the table; return the kind it is listed as."""
    ninja = worlds.ninjas[index]
    entity = levels.entities[levels.header[ninja["level"]]["first_entity"] + slot]
    state = int(worlds.entity_states[index, slot])
    mover = worlds.movers[index, max(entity["mover"], 0)]
    kind = _LISTED_AS[entity["type"]]
    x, y = place_of(worlds, index, entity)
    write_place(ninja, x, y, out, row, place)
    vx, vy, facing_x, facing_y, phase, deadly, solid = describe(worlds, index, entity, mover, state)
    out[row, place, 2], out[row, place, 3] = clip(vx / _TOP_SPEED), clip(vy / _TOP_SPEED)
    out[row, place, 4], out[row, place, 5] = clip(facing_x), clip(facing_y)
    out[row, place, 6] = radius_of(kind, state) / _LARGEST
    out[row, place, 7] = phase
    out[row, place, 8] = 1.0 if deadly else 0.0
    out[row, place, 9] = _SHOOTS >> kind & 1
    out[row, place, 10] = 1.0 if solid else 0.0
    out[row, place, 11] = _COLLECTABLE >> kind & 1
    return kind


@kernel
def write_door(ninja, door, state, out, row, place):
    """Write a row about a door itself; its switch has a row of its own."""
    write_place(ninja, door["x"], door["y"], out, row, place)
    closed = 1.0 if is_closed(door["type"], state) else 0.0
    for column in range(2, out.shape[2]):
        out[row, place, column] = 0.0
    out[row, place, 4 if door["vertical"] != 0 else 5] = 1.0
    out[row, place, 6] = radius_of(door["type"], state) / _LARGEST
    out[row, place, 7], out[row, place, 10] = closed, closed


@kernel
def write_place(ninja, x, y, out, row, place):
    """Write where a place is as seen from the ninja."""
    out[row, place, 0], out[row, place, 1] = clip((x - ninja["x"]) / _FAR), clip((y - ninja["y"]) / _FAR)
