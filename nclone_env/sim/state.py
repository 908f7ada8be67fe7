"""The state of a batch of worlds, a fixed number of bytes per world, no pointers; copies, comparisons and hashes of it.

All of these work on every array of ``WorldArrays``. A new array needs a loop in :func:`copy_world`,
:func:`equal_worlds` and :func:`hash_world`; new fields of a record are included automatically.

The hash mixes a world into 64 bits, word by word: fields of the ninja, eight entity states at a time, fields of each
mover, coordinates of the trail; a float is its bits, an integer is sign-extended.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.jit import each, kernel
from nclone_env.level import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.sim.mixing import FIRST, finish, mix

NINJA_RECORD = np.dtype(
    [
        ("x", "f8"),
        ("y", "f8"),
        ("vx", "f8"),
        ("vy", "f8"),
        ("gravity", "f8"),
        ("drag", "f8"),
        ("floor_x", "f8"),
        ("floor_y", "f8"),
        ("wall_normal", "f8"),
        ("pad_x", "f8"),
        ("pad_y", "f8"),
        ("finish_fraction", "f8"),
        ("frame", "i4"),
        ("level", "i4"),
        ("next_order", "i4"),
        ("gold", "i2"),
        ("state", "i1"),
        ("airborne", "i1"),
        ("walled", "i1"),
        ("facing", "i1"),
        ("jump_held", "i1"),
        ("jump_duration", "i1"),
        ("jump_buffer", "i1"),
        ("floor_buffer", "i1"),
        ("wall_buffer", "i1"),
        ("pad_buffer", "i1"),
    ],
    align=True,
)
"""The ninja (physics 01, section 5; pixels, pixels per frame, frames), the frame counter, the level played, and the
order number for the next entity that enters a cell."""

MOVER = np.dtype(
    [("x", "f8"), ("y", "f8"), ("a", "f8"), ("b", "f8"), ("order", "i4"), ("cell", "i2"), ("timer", "i2")], align=True
)
"""An entity that moves or aims: position (pixels), the cell it is registered in (-1: none), its order of entry.

The file of the kind under ``sim.entities`` names ``a``, ``b`` and ``timer`` by their meaning, and ``order`` of kinds
that are in no cell; other modules use its accessors."""

NO_CELL = -1
_FLOAT, _WHOLE = "f", "iu"
_NINJA_FIELDS, _MOVER_FIELDS = NINJA_RECORD.names or (), MOVER.names or ()
_NINJA_FLOATS = tuple(name for name in _NINJA_FIELDS if NINJA_RECORD[name].kind in _FLOAT)
_NINJA_NUMBERS = tuple(name for name in _NINJA_FIELDS if NINJA_RECORD[name].kind in _WHOLE)
_MOVER_FLOATS = tuple(name for name in _MOVER_FIELDS if MOVER[name].kind in _FLOAT)
_MOVER_NUMBERS = tuple(name for name in _MOVER_FIELDS if MOVER[name].kind in _WHOLE)

_WORD = 8  # bytes; rows of entity states are whole words


class WorldArrays(NamedTuple):
    """The state of N worlds. Equal bytes mean an equal future; padding stays zero.

    Attributes:
        ninjas: (N,) ``NINJA_RECORD``.
        entity_states: (N, E) uint8, one byte an entity in the order of the level's entity table; ``kinds`` names its
            values. 0 is untouched.
        movers: (N, M) ``MOVER``.
        trail: (N, R, 2) float64; past positions of the ninja for the evil ninjas of the level set, pixels, the one at
            the end of frame j in row j % R. One unused row without evil ninjas.
    """

    ninjas: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("worlds", self._asdict(), shared=False)


def make_worlds(count: int, levels: LevelSet, max_frames: int | None = None) -> WorldArrays:
    """Return zeroed worlds that can hold any level of a set.

    Args:
        count: number of worlds.
        levels: levels to play.
        max_frames: a world is restarted after at most so many frames, which bounds the trail; None: no limit.
    """
    entities, movers = max(levels.max_entities, 1), max(levels.max_movers, 1)  # kernels need a valid first record
    trail = levels.max_trail if max_frames is None else min(levels.max_trail, max_frames)
    return WorldArrays(
        np.zeros(count, dtype=NINJA_RECORD),
        np.zeros((count, -(-entities // 8) * 8), dtype=np.uint8),
        np.zeros((count, movers), dtype=MOVER),
        np.zeros((count, max(trail, 1), 2)),
    )


@kernel
def copy_world(source_worlds, source_index, target_worlds, target_index):
    """Copy one world over another; nothing is checked.

    Args:
        source_worlds: ``WorldArrays``.
        source_index: world to copy.
        target_worlds: ``WorldArrays`` for the same level set, changed in place; may be the same.
        target_index: world to overwrite.
    """
    kept = used_rows(source_worlds, source_index)
    cleared = used_rows(target_worlds, target_index)
    copy_ninja(source_worlds.ninjas[source_index], target_worlds.ninjas[target_index])
    for slot in range(source_worlds.entity_states.shape[1]):
        target_worlds.entity_states[target_index, slot] = source_worlds.entity_states[source_index, slot]
    for number in range(source_worlds.movers.shape[1]):
        copy_mover(source_worlds.movers[source_index, number], target_worlds.movers[target_index, number])
    for row in range(kept):
        for axis in range(2):
            target_worlds.trail[target_index, row, axis] = source_worlds.trail[source_index, row, axis]
    for row in range(kept, cleared):
        target_worlds.trail[target_index, row, 0], target_worlds.trail[target_index, row, 1] = 0.0, 0.0


@kernel
def used_rows(worlds, index):
    """Return the number of rows of the trail of a world that its frames so far may have written; others are zero."""
    frame, rows = np.int64(worlds.ninjas[index]["frame"]), worlds.trail.shape[1]
    return frame if 0 <= frame < rows else rows


@kernel
def copy_ninja(source, target):
    """Copy a ``NINJA_RECORD`` field by field."""
    for name in each(_NINJA_FIELDS):
        target[name] = source[name]


@kernel
def copy_mover(source, target):
    """Copy a ``MOVER`` field by field."""
    for name in each(_MOVER_FIELDS):
        target[name] = source[name]


def transfer_world(source: WorldArrays, index: int, target: WorldArrays, place: int, level: int) -> None:
    """Copy a world to worlds of another level set that contains its level.

    Args:
        source: worlds of a level set.
        index: world to copy.
        target: worlds of the other level set, changed in place.
        place: world to overwrite.
        level: number of the level in the other set.
    """
    target.ninjas[place] = source.ninjas[index]
    target.ninjas[place]["level"] = level
    for name in ("entity_states", "movers"):
        given, row = getattr(source, name)[index], getattr(target, name)[place]
        size = min(len(given), len(row))  # what is behind belongs to larger levels
        row[:size], row[size:] = given[:size], np.zeros((), row.dtype)
    # the trail is a ring: the position at the end of frame f is in row f - 1 modulo the number of rows
    given, row = source.trail[index], target.trail[place]
    frame = int(source.ninjas[index]["frame"])
    frames = np.arange(frame - min(frame, len(given), len(row)), frame)
    row[:] = 0.0
    row[frames % len(row)] = given[frames % len(given)]


@kernel
def gather_worlds(source, indices, target):
    """Make world i of ``target`` a copy of world ``indices[i]`` of ``source``; nothing is checked.

    Args:
        source: ``WorldArrays``.
        indices: (n,) integers; any world, any number of times.
        target: ``WorldArrays`` for the same level set with at least n worlds, changed in place; not ``source``.
    """
    for index in range(indices.shape[0]):
        copy_world(source, indices[index], target, index)


@kernel
def equal_worlds(worlds, left, right):
    """Return whether two worlds of the same arrays are equal bit by bit.

    Args:
        worlds: ``WorldArrays``.
        left, right: world.
    """
    if ninja_difference(worlds.ninjas[left], worlds.ninjas[right]) != 0:
        return False
    states, trail = worlds.entity_states, worlds.trail
    for slot in range(states.shape[1]):
        if states[left, slot] != states[right, slot]:
            return False
    for number in range(worlds.movers.shape[1]):
        if mover_difference(worlds.movers[left, number], worlds.movers[right, number]) != 0:
            return False
    for row in range(trail.shape[1]):
        for axis in range(2):
            if difference(trail[left, row, axis], trail[right, row, axis]) != 0:
                return False
    return True


@kernel
def ninja_difference(left, right):
    """Return 0 if all fields of two ``NINJA_RECORD`` are equal."""
    found = np.uint64(0)
    for name in each(_NINJA_FLOATS):
        found |= difference(left[name], right[name])
    for name in each(_NINJA_NUMBERS):
        found |= np.uint64(left[name] != right[name])
    return found


@kernel
def mover_difference(left, right):
    """Return 0 if all fields of two ``MOVER`` are equal."""
    found = np.uint64(0)
    for name in each(_MOVER_FLOATS):
        found |= difference(left[name], right[name])
    for name in each(_MOVER_NUMBERS):
        found |= np.uint64(left[name] != right[name])
    return found


@kernel
def difference(left, right):
    """Return the bits in which two floats differ."""
    return np.float64(left).view(np.uint64) ^ np.float64(right).view(np.uint64)


@kernel
def hash_world(worlds, index):
    """Return a 64-bit hash: equal for equal worlds, different for others except by chance.

    The whole state counts, including the frame counter. Hashes are comparable within a level set.

    Args:
        worlds: ``WorldArrays``.
        index: world.
    """
    value = hash_ninja(worlds.ninjas[index], FIRST)
    states = worlds.entity_states
    for first in range(0, states.shape[1], _WORD):
        word = np.uint64(0)
        for place in range(_WORD):
            word |= np.uint64(states[index, first + place]) << np.uint64(8 * place)
        value = mix(value, word)
    for number in range(worlds.movers.shape[1]):
        value = hash_mover(worlds.movers[index, number], value)
    for row in range(worlds.trail.shape[1]):
        for axis in range(2):
            value = mix(value, np.float64(worlds.trail[index, row, axis]).view(np.uint64))
    return finish(value)


@kernel
def hash_ninja(ninja, value):
    """Return a hash with the fields of a ``NINJA_RECORD`` mixed into it."""
    for name in each(_NINJA_FLOATS):
        value = mix(value, np.float64(ninja[name]).view(np.uint64))
    for name in each(_NINJA_NUMBERS):
        value = mix(value, np.uint64(np.int64(ninja[name])))
    return value


@kernel
def hash_mover(mover, value):
    """Return a hash with the fields of a ``MOVER`` mixed into it."""
    for name in each(_MOVER_FLOATS):
        value = mix(value, np.float64(mover[name]).view(np.uint64))
    for name in each(_MOVER_NUMBERS):
        value = mix(value, np.uint64(np.int64(mover[name])))
    return value
