"""Keys of worlds for searches: a hash of what decides the future, and a key of a coarse cell of states.

Both derive from the table of kinds which entities count: those whose state the ninja or time can change, if the change
can affect a living ninja. Gold never does, and a mine only changes by killing.

:func:`hash_future` leaves out of a world what is only written (the direction the ninja faces, gold, the fraction of the
last frame) and what the rules overwrite before they read it: the normal of a floor that the ninja left too long ago to
jump off, timers that have expired, the length of a jump that is over. The frame counter and the path of the ninja count
once an evil ninja was touched, because it follows that path. Orders of entry count relative to the next one.
"""

import math
from typing import NamedTuple

import numpy as np

from nclone_env.game import DEAD, DOOR_SWITCHES, EVIL_NINJA, EXIT_SWITCH, JUMPING, KINDS, MOVER, STATE, SWITCH_OF, bits
from nclone_env.jit import each, kernel
from nclone_env.level import LevelSet
from nclone_env.sim.state import FIRST, NO_CELL, finish, mix
from nclone_env.sim.state import MOVER as MOVER_RECORD
from nclone_env.sim.store import mover_of, recall, state_of, trail_count

_GOLD_LIKE = tuple(kind for kind in KINDS if kind.collectable and kind.number not in SWITCH_OF.values())
_FATAL = tuple(kind for kind in KINDS if kind.deadly and not kind.acts)
_COUNTING = bits(
    kind for kind in KINDS if STATE in kind.ninja_changes + kind.clock and kind not in (*_GOLD_LIKE, *_FATAL)
)
"""Kinds whose state byte can affect a living ninja, a bit each."""
_SWITCHED = (EXIT_SWITCH, *DOOR_SWITCHES)
"""Kinds whose state byte is changed once, by the ninja, at a switch."""
_RESTING = tuple(
    kind.number for kind in KINDS if MOVER in kind.ninja_changes and "idle" in kind.states and not kind.shoots
)
"""Kinds that rest where the ninja made them rest; others move on their own, return or follow."""

_ALWAYS_FLOATS = ("x", "y", "vx", "vy", "gravity", "drag")
_ALWAYS_NUMBERS = ("level", "state", "airborne", "walled", "jump_held")
_MOVER_FLOATS = tuple(name for name in MOVER_RECORD.names or () if MOVER_RECORD[name].kind == "f")
_MOVER_NUMBERS = tuple(name for name in MOVER_RECORD.names or () if MOVER_RECORD[name].kind == "i" and name != "order")
_LAST_FOOTING, _LAST_PAD = 3, 2
"""The last values of the timers from which the next frame can still jump (physics 01, section 11.1)."""
_WAITING = KINDS[EVIL_NINJA].states["waiting"]
_PLACES = 1 << 16  # values of a coordinate in a cell key


class KeyParts(NamedTuple):
    """What belongs to the cell key of a level besides the ninja.

    Attributes:
        switches: (S,) int16; entities that are exit switches, locked doors and trap doors.
        movers: (M,) int16; mover records of entities that rest where the ninja made them rest.
    """

    switches: np.ndarray
    movers: np.ndarray


def key_parts(levels: LevelSet, level: int = 0) -> KeyParts:
    """Return the parts of the cell key of a level."""
    entities = levels.entities_of(level)
    switches = np.flatnonzero(np.isin(entities["type"], _SWITCHED))
    movers = entities["mover"][np.isin(entities["type"], _RESTING)]
    return KeyParts(switches.astype(np.int16), movers.astype(np.int16))


@kernel
def cell_key(worlds, index, parts, size, speed):
    """Return a 64-bit key of the cell of states that a world is in.

    Worlds have the same key if position and velocity of the ninja fall in the same squares, all switches agree, and all
    entities that rest where the ninja made them rest are in the same squares of 12 pixels.

    Args:
        worlds: ``WorldArrays``.
        index: world.
        parts: ``KeyParts`` of its level.
        size: side of a square of positions, pixels.
        speed: side of a square of velocities, pixels per frame; one is centred on standing still.
    """
    ninja = worlds.ninjas[index]
    place = square(ninja["x"], size) * _PLACES + square(ninja["y"], size)
    motion = square(ninja["vx"] + 0.5 * speed, speed) * _PLACES + square(ninja["vy"] + 0.5 * speed, speed)
    value = FIRST
    for number in range(parts.switches.shape[0]):
        value = value * np.uint64(3) + np.uint64(state_of(worlds, index, parts.switches[number]))
    value = mix(value, np.uint64(place * _PLACES * _PLACES + motion))
    for number in range(parts.movers.shape[0]):
        mover = mover_of(worlds, index, parts.movers[number])
        value = mix(value, np.uint64(square(mover["x"], 12.0) * _PLACES + square(mover["y"], 12.0)))
    return value


@kernel
def square(value, size):
    """Return the number of the interval of a size that a value lies in, 0 .. 65535; those far apart repeat."""
    return int(math.floor(value / size)) & (_PLACES - 1)


@kernel
def hash_future(levels, worlds, index):
    """Return a 64-bit hash of everything in a world that its future depends on.

    Two living worlds with the same hash have the same future, except by chance; gold that is left may differ. Worlds
    with the same future may have different hashes. All worlds in which the ninja is dead, or has won, are alike.
    """
    ninja = worlds.ninjas[index]
    if ninja["state"] >= DEAD:
        return finish(mix(FIRST, np.uint64(ninja["state"])))
    value = hash_living(ninja, FIRST)
    header = levels.header[ninja["level"]]
    followed = False
    for slot in range(header["entity_count"]):
        kind = levels.entities[header["first_entity"] + slot]["type"]
        if _COUNTING >> kind & 1:
            state = state_of(worlds, index, slot)
            value = mix(value, np.uint64(state))
            followed = followed or (kind == EVIL_NINJA and state != _WAITING)
    for number in range(header["mover_count"]):
        value = hash_placed(mover_of(worlds, index, number), ninja["next_order"], header["entity_count"], value)
    if followed:
        value = mix(value, np.uint64(ninja["frame"]))
        for past in range(ninja["frame"] - trail_count(worlds, index), ninja["frame"]):
            for coordinate in recall(worlds, index, past):
                value = mix(value, np.float64(coordinate).view(np.uint64))
    return finish(value)


@kernel
def hash_living(ninja, value):
    """Return a hash with what counts of a living ninja mixed into it."""
    for name in each(_ALWAYS_FLOATS):
        value = mix(value, np.float64(ninja[name]).view(np.uint64))
    for name in each(_ALWAYS_NUMBERS):
        value = mix(value, np.uint64(np.int64(ninja[name])))
    floor, wall = left_of(ninja["floor_buffer"], _LAST_FOOTING), left_of(ninja["wall_buffer"], _LAST_FOOTING)
    pad, jump = left_of(ninja["pad_buffer"], _LAST_PAD), left_of(ninja["jump_buffer"], _LAST_FOOTING)
    value = mix(value, np.uint64(floor | wall << 8 | pad << 16 | jump << 24))
    if floor != 0:
        value = mix(value, np.float64(ninja["floor_x"]).view(np.uint64))
        value = mix(value, np.float64(ninja["floor_y"]).view(np.uint64))
    if wall != 0:
        value = mix(value, np.float64(ninja["wall_normal"]).view(np.uint64))
    if pad != 0:
        value = mix(value, np.float64(ninja["pad_x"]).view(np.uint64))
        value = mix(value, np.float64(ninja["pad_y"]).view(np.uint64))
    if ninja["state"] == JUMPING:
        value = mix(value, np.uint64(ninja["jump_duration"]))
    return value


@kernel
def left_of(timer, last):
    """Return 1 + a timer that still counts in the next frame, 0 for one that does not."""
    return timer + 1 if 0 <= timer <= last else 0


@kernel
def hash_placed(mover, next_order, entity_count, value):
    """Return a hash with a mover mixed into it; an order of entry during play counts back from the next one."""
    for name in each(_MOVER_FLOATS):
        value = mix(value, np.float64(mover[name]).view(np.uint64))
    for name in each(_MOVER_NUMBERS):
        value = mix(value, np.uint64(np.int64(mover[name])))
    order = np.int64(mover["order"])
    if mover["cell"] != NO_CELL and order >= entity_count:
        order -= next_order
    return mix(value, np.uint64(order))
