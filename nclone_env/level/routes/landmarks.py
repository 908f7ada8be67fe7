"""The landmarks of a level in order, and path lengths to each: kernels, for guides and for pages alike.

A level at one clearance is a ``Terrain``. An order is a list of rows of its ``places``: the switches of locked doors,
then the switch and the exit of each exit in turn, then the gold that counts. ``taken`` is how many of an order have
been visited: their doors are open.
"""

import math
from typing import NamedTuple

import numpy as np

from nclone_env.game import EXIT, EXIT_SWITCH, KINDS, LOCKED_DOOR, LOCKED_DOOR_SWITCH, MINE, ONE_WAY, RADIUS
from nclone_env.jit import called_kernel, kernel
from nclone_env.level.compile import DOOR
from nclone_env.level.routes.distance import SOLID_SHAPE, write_solid
from nclone_env.level.routes.fields import write_field
from nclone_env.level.routes.lattice import (
    CLOSEST,
    DOOR_REACH,
    FAR,
    LATTICE,
    SPACING,
    add_mine,
    bar_steps,
    block_door,
    find_clear,
    node_length,
    spread_lengths,
    write_seeds,
)

PLACE = np.dtype([("x", "f8"), ("y", "f8"), ("reach", "f8"), ("slot", "i2")], align=True)
"""Where to go, pixels, how near, and the entity whose state says that the ninja has been there; -1 for gold."""
DOORS, EXITS, GOLDS = range(3)
MOST_DOORS = 100
"""Locked doors whose switches the path takes in order."""
CLEARANCES = (9.0, 7.0)
"""Radii of the disc that must fit, pixels, in the order they are tried; smaller than the ninja, whose path may touch
walls between two nodes."""
STRAIGHT, THROUGH_DOORS, BY_SWITCHES = range(3)
"""How a path leads to an exit."""
_LISTS = 4
_EXIT_REACH = KINDS[EXIT].radii[0] + RADIUS
_EXIT_SWITCH_REACH = KINDS[EXIT_SWITCH].radii[0] + RADIUS
_DOOR_SWITCH_REACH = KINDS[LOCKED_DOOR_SWITCH].radii[0] + RADIUS
_MINE_REACH = KINDS[MINE].radii[0] + RADIUS


class Terrain(NamedTuple):
    """The lattice of a level at one clearance.

    Attributes:
        costs: (101, 177) float32; factor of the length of a step into each node with all doors open, 0 where blocked.
        barred: (101, 177) uint8; steps against one-way platforms (``lattice.bar_steps``).
        doors: ``DOOR``, those that are locked.
        places: ``PLACE``.
        counts: (3,) int64; ``DOORS``, ``EXITS`` and ``GOLDS`` of the level.
        spawn: (2,) float64, pixels.
        open: (101, 177) float32; the costs with some doors closed, overwritten, as is what follows.
        field: (101, 177) float32.
        solid: (300, 528) bool.
        free: (101, 177) bool.
        queue: (101 * 177,) int32.
        queued: (101, 177) bool, all False between two calls.
        lists: (4, n) int16 for n - 2 doors.
    """

    costs: np.ndarray
    barred: np.ndarray
    doors: np.ndarray
    places: np.ndarray
    counts: np.ndarray
    spawn: np.ndarray
    open: np.ndarray
    field: np.ndarray
    solid: np.ndarray
    free: np.ndarray
    queue: np.ndarray
    queued: np.ndarray
    lists: np.ndarray


def terrain_room(doors: int, places: int) -> Terrain:
    """Return zeroed arrays for a level with so many locked doors and places."""
    real, flag = np.float32, np.bool_
    return Terrain(
        costs=np.zeros(LATTICE, real),
        barred=np.zeros(LATTICE, np.uint8),
        doors=np.zeros(doors, DOOR),
        places=np.zeros(places, PLACE),
        counts=np.zeros(3, np.int64),
        spawn=np.zeros(2),
        open=np.zeros(LATTICE, real),
        field=np.zeros(LATTICE, real),
        solid=np.zeros(SOLID_SHAPE, flag),
        free=np.zeros(LATTICE, flag),
        queue=np.zeros(LATTICE[0] * LATTICE[1], np.int32),
        queued=np.zeros(LATTICE, flag),
        lists=np.zeros((_LISTS, doors + 2), np.int16),
    )


@kernel
def write_terrain(levels, level, clearance, closest, terrain):
    """Write the lattice of a level without gold.

    Args:
        levels: ``LevelArrays``.
        level: index of the level.
        clearance: radius of the disc that must fit, pixels.
        closest: pixels to which the ninja comes up to a one-way platform.
        terrain: written.
    """
    header, costs, counts = levels.header[level], terrain.costs, terrain.counts
    write_solid(levels.tiles[level], terrain.solid)
    find_clear(terrain.solid, terrain.free, clearance)
    for row in range(costs.shape[0]):
        for column in range(costs.shape[1]):
            costs[row, column], terrain.barred[row, column] = 1.0, 0
    counts[DOORS], counts[EXITS], counts[GOLDS] = 0, 0, 0
    terrain.spawn[0], terrain.spawn[1] = header["spawn_x"], header["spawn_y"]
    for number in range(header["door_count"]):
        door = levels.doors[header["first_door"] + number]
        if door["type"] == LOCKED_DOOR:
            terrain.doors[counts[DOORS]] = door
            _write_place(levels, header, door["owner"], _DOOR_SWITCH_REACH, terrain.places[counts[DOORS]])
            counts[DOORS] += 1
    for slot in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + slot]
        x, y = float(entity["x"]), float(entity["y"])
        if entity["type"] == MINE:
            add_mine(costs, x, y, _MINE_REACH)
        elif entity["type"] == ONE_WAY:
            bar_steps(terrain.barred, x, y, entity["orientation"], closest)
        elif entity["type"] == EXIT:
            place = counts[DOORS] + 2 * counts[EXITS]
            _write_place(levels, header, slot + 1, _EXIT_SWITCH_REACH, terrain.places[place])
            _write_place(levels, header, slot, _EXIT_REACH, terrain.places[place + 1])
            counts[EXITS] += 1
    for row in range(costs.shape[0]):
        for column in range(costs.shape[1]):
            if not terrain.free[row, column]:
                costs[row, column] = 0.0


@kernel
def _write_place(levels, header, slot, reach, place):
    """Write the place of an entity."""
    entity = levels.entities[header["first_entity"] + slot]
    place["x"], place["y"], place["reach"], place["slot"] = entity["x"], entity["y"], reach, slot


@called_kernel
def close_doors(terrain, order, taken, has_doors):
    """Write the costs with those doors closed whose switches are not taken; without ``has_doors`` none is."""
    costs, is_open = terrain.open, False
    for row in range(costs.shape[0]):
        for column in range(costs.shape[1]):
            costs[row, column] = terrain.costs[row, column]
    for number in range(terrain.counts[DOORS] if has_doors else 0):
        is_open = False
        for place in range(taken):
            is_open |= order[place] == number
        if not is_open:
            door = terrain.doors[number]
            block_door(float(door["x"]), float(door["y"]), door["vertical"] != 0, DOOR_REACH, costs, np.float32(0.0))


@called_kernel
def find_lengths(terrain, x, y, reach, onward, towards, field):
    """Write the path lengths to a target, or from it (``lattice.path_lengths``), with the costs of ``close_doors``."""
    write_seeds(field, terrain.open, x, y, reach, onward)
    spread_lengths(field, terrain.open, terrain.barred, towards, SPACING, terrain.queue, terrain.queued)


@kernel
def find_from(terrain, x, y, order, taken, has_doors):
    """Write the path lengths from where the ninja is at (x, y) to ``terrain.field``."""
    close_doors(terrain, order, taken, has_doors)
    find_lengths(terrain, x, y, RADIUS, 0.0, False, terrain.field)


@called_kernel
def length_from(field, x, y, reach):
    """Return the path length from the centre of a place, by the free nodes within its reach; ``FAR`` without one."""
    column, row = int((x + 0.5 * SPACING) / SPACING), int((y + 0.5 * SPACING) / SPACING)
    around, best = int(reach / SPACING), FAR
    for j in range(max(row - around, 0), min(row + around + 1, LATTICE[0])):
        for i in range(max(column - around, 0), min(column + around + 1, LATTICE[1])):
            dx, dy = SPACING * i - x, SPACING * j - y
            length = field[j, i] + math.sqrt(dx * dx + dy * dy)
            if length < best:
                best = length
    return best


@kernel
def _length(terrain, number):
    """Return the length of the path from a place by ``terrain.field``."""
    place = terrain.places[number]
    return length_from(terrain.field, place["x"], place["y"], place["reach"])


@kernel
def find_landmarks(terrain, has_doors, order):
    """Write the landmarks in order, the exit last; return how many, 0 if no exit can be reached.

    With ``has_doors`` locked doors are closed until their switch is taken: first every switch in reach is taken to
    open its door until an exit and the gold can be reached, then those are dropped that turn out not to be needed, and
    the others are visited nearest first.
    """
    lists, doors = terrain.lists, terrain.counts[DOORS]
    needed, wanted = lists[0], lists[1]
    count = _find_needed(terrain, needed, lists[1], lists[2], lists[3]) if has_doors else 0
    if count < 0:
        return 0
    for number in range(terrain.counts[EXITS]):
        switch = doors + 2 * number
        for place in range(count):
            wanted[place] = needed[place]
        wanted[count] = switch
        if _order_nearest(terrain, wanted, count + 1, has_doors, order):
            last = terrain.places[order[count]]
            find_from(terrain, last["x"], last["y"], order, count + 1, has_doors)
            if _length(terrain, switch + 1) < FAR:
                order[count + 1] = switch + 1
                return count + 2
    return 0


@kernel
def _find_needed(terrain, needed, first, fewer, found):
    """Write the door switches without which no exit can be reached; return how many, -1 if none can with all."""
    for number in range(terrain.counts[DOORS]):
        fewer[number] = number
    whole = _find_opened(terrain, fewer, terrain.counts[DOORS], first)
    for place in range(whole):
        needed[place] = first[place]
    count = whole
    for dropped in range(whole - 1, -1, -1):
        left = 0
        for place in range(count):
            if needed[place] != first[dropped]:
                fewer[left] = needed[place]
                left += 1
        enough = _find_opened(terrain, fewer, left, found)
        if enough >= 0:
            count = enough
            for place in range(count):
                needed[place] = found[place]
    return count


@called_kernel
def _find_opened(terrain, allowed, most, taken):
    """Write the door switches to take until an exit, its switch and the gold can be reached; return how many, or -1."""
    count = 0
    while True:
        find_from(terrain, terrain.spawn[0], terrain.spawn[1], taken, count, True)
        if _reaches_all(terrain):
            return count
        before = count
        for place in range(most):
            is_taken = False
            for earlier in range(before):
                is_taken |= taken[earlier] == allowed[place]
            if not is_taken and _length(terrain, allowed[place]) < FAR:
                taken[count] = allowed[place]
                count += 1
        if count == before:
            return -1


@kernel
def _reaches_all(terrain):
    """Return whether some exit with its switch, and all gold, are in reach by ``terrain.field``."""
    first, exits, golds = terrain.counts[DOORS], terrain.counts[EXITS], terrain.counts[GOLDS]
    has_exit = False
    for number in range(exits):
        switch = first + 2 * number
        has_exit |= _length(terrain, switch) < FAR and _length(terrain, switch + 1) < FAR
    if not has_exit:
        return False
    for number in range(golds):  # noqa: SIM110 - a kernel has no generators
        if _length(terrain, first + 2 * exits + number) >= FAR:
            return False
    return True


@kernel
def _order_nearest(terrain, wanted, count, has_doors, order):
    """Write the order in which the nearest place in reach is always the next; return whether there is one."""
    x, y = terrain.spawn[0], terrain.spawn[1]
    for number in range(count):
        find_from(terrain, x, y, order, number, has_doors)
        best, nearest = FAR, -1
        for place in range(count):
            if wanted[place] >= 0:
                length = _length(terrain, wanted[place])
                if length < best:
                    best, nearest = length, place
        if nearest < 0:
            return False
        order[number], wanted[nearest] = wanted[nearest], -1
        x, y = terrain.places[order[number]]["x"], terrain.places[order[number]]["y"]
    return True


@kernel
def write_lengths(terrain, order, number, has_doors, onward, field):
    """Write the path lengths by landmark ``number`` of an order on; ``onward`` is the length of the path from it.

    Return the path length by it from the landmark before, 0 if it is the first.
    """
    target = terrain.places[order[number]]
    close_doors(terrain, order, number, has_doors)
    find_lengths(terrain, target["x"], target["y"], target["reach"], onward, True, field)
    if number == 0:
        return 0.0
    before = terrain.places[order[number - 1]]
    return length_from(field, before["x"], before["y"], before["reach"])


@kernel
def find_route(levels, level, terrain, order):
    """Write the landmarks of a level in order, its terrain, and return (count, way): how the path leads to an exit.

    If no path leads to one, doors are taken as open; if there still is none, it is as the crow flies. More than
    ``MOST_DOORS`` doors count as open: finding out which of their switches are needed would take minutes.
    """
    header, doors = levels.header[level], 0
    for number in range(header["door_count"]):
        doors += levels.doors[header["first_door"] + number]["type"] == LOCKED_DOOR
    for way in range(BY_SWITCHES if doors <= MOST_DOORS else THROUGH_DOORS, STRAIGHT, -1):
        for number in range(len(CLEARANCES)):
            write_terrain(levels, level, CLEARANCES[number], CLOSEST, terrain)
            count = find_landmarks(terrain, way == BY_SWITCHES, order)
            if count > 0:
                return count, way
    order[0], order[1] = doors, doors + 1
    return 2, STRAIGHT


@kernel
def write_route(terrain, order, count, way, paths, landmarks, ends):
    """Write the path lengths of a route from every second node, and its entities.

    Args:
        terrain: as :func:`find_route` leaves it, like ``order``, ``count`` and ``way``.
        paths: ``Fields`` or ``Paths`` of ``count`` fields, written.
        landmarks: (count,) int16, written.
        ends: (2,) int64; where codes and rests of the fields end, written.
    """
    onward = 0.0
    ends[0], ends[1] = 0, 0
    for number in range(count - 1, -1, -1):
        place = terrain.places[order[number]]
        landmarks[number] = place["slot"]
        if way != STRAIGHT:
            onward = write_lengths(terrain, order, number, way == BY_SWITCHES, onward, terrain.field)
        else:
            for row in range(0, terrain.field.shape[0], 2):
                for column in range(0, terrain.field.shape[1], 2):
                    length = node_length(row, column, place["x"], place["y"], 0.0, 0.0)
                    terrain.field[row, column] = length + onward
            before = terrain.places[order[0]]
            dx, dy = before["x"] - place["x"], before["y"] - place["y"]
            onward = math.sqrt(dx * dx + dy * dy)
        ends[0], ends[1] = write_field(terrain.field, 2, paths, number, ends[0], ends[1])
