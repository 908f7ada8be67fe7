"""The state of a batch of worlds, a fixed number of bytes per world, no pointers; copies, comparisons and hashes of it.

All of these work on every array of the state. A new array needs a loop in :func:`copy_world`,
:func:`equal_worlds` and :func:`hash_world`; new fields of a record are included automatically.

A world has room for the largest level of its set, and a level uses what it needs: the rest is zero, is neither copied
nor compared, and takes no memory of the machine as long as no level has used it.

The hash mixes a world into 64 bits, word by word: fields of the ninja, eight entity states at a time, fields of each
mover, coordinates of the trail; a float is its bits, an integer is sign-extended. For each word, modulo 2**64,

    h = (h ^ word) * 0x9E3779B97F4A7C15;  h = h ^ (h >> 32)

and at the end the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), so that any of its bits can index a table.
Every step is invertible, so two states that differ in a single word never have the same hash. Random numbers, which
depend only on a seed and a counter, are mixed likewise.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nclone_env.jit import each, kernel
from nclone_env.level import LevelSet
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim.entities.laser.learn import know_lasers
from nclone_env.sim.geometry import difference
from nclone_env.sim.sight import ENTITIES_USED, FIRST_HINT, MOVERS_USED, TRAIL_USED

RANDOM_BITS = 63
FIRST, _GOLDEN = np.uint64(0x243F6A8885A308D3), np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S1, _S27, _S30, _S31, _S32 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)

NINJA_RECORD: np.dtype = np.dtype(
    [(name, "f8") for name in ("x", "y", "vx", "vy", "gravity", "drag", "floor_x", "floor_y", "wall_normal")]
    + [(name, "f8") for name in ("pad_x", "pad_y", "finish_fraction")]
    + [("frame", "i4"), ("level", "i4"), ("next_order", "i4"), ("gold", "i2")]
    + [(name, "i1") for name in ("state", "airborne", "walled", "facing", "jump_held", "jump_duration")]
    + [(name, "i1") for name in ("jump_buffer", "floor_buffer", "wall_buffer", "pad_buffer")],
    align=True,
)
"""The ninja (physics 01, section 5; pixels, pixels per frame, frames), the frame counter, the level played, and the
order number for the next entity that enters a cell."""

MOVER: np.dtype = np.dtype(
    [("x", "f8"), ("y", "f8"), ("a", "f8"), ("b", "f8"), ("order", "i4"), ("cell", "i2"), ("timer", "i2")], align=True
)
"""An entity that moves or aims: position (pixels), the cell it is registered in (-1: none), its order of entry.

The file of the kind under ``sim.entities`` names ``a``, ``b`` and ``timer`` by their meaning, and ``order`` of kinds
that are in no cell; other modules use its accessors."""

NO_CELL = -1

_WORD = 8  # bytes; rows of entity states are whole words


@kernel
def mix(value, word):
    """Return a hash with one word mixed into it."""
    value = (value ^ word) * _GOLDEN
    return value ^ (value >> _S32)


@kernel
def finish(value):
    """Return a hash whose bits all depend on all bits of ``value``; different for different values."""
    value = (value ^ (value >> _S30)) * _MIX_1
    value = (value ^ (value >> _S27)) * _MIX_2
    return value ^ (value >> _S31)


@kernel
def splitmix(z):
    """Return a uint64 whose bits all depend on all bits of ``z``: a step of SplitMix64."""
    return finish(z + _GOLDEN)


@kernel
def random_bits(seed, number):
    """Return random number ``number`` of 63 bits, uint64, of the sequence of a seed."""
    return splitmix(np.uint64(seed) + _GOLDEN * np.uint64(number)) >> _S1


@kernel
def draw(state, count):
    """Return a random number from 0 to ``count - 1``.

    ``state`` is a record with ``seed`` and ``random``, how many numbers were drawn, which is updated.
    """
    state["random"] += 1
    return np.int64(random_bits(state["seed"], state["random"]) % np.uint64(count))


class WorldArrays(NamedTuple):
    """The state of N worlds. Equal bytes mean an equal future; padding stays zero.

    Attributes:
        ninjas: (N,) ``NINJA_RECORD``.
        entity_states: (N, E) uint8, one byte an entity in the order of the level's entity table; ``kinds`` names its
            values. 0 is untouched.
        movers: (N, M) ``MOVER``.
        trail: (N, R, 2) float64; past positions of the ninja for the evil ninjas of the level set, pixels, the one at
            the end of frame j in row j % R. One unused row without evil ninjas.
        marks: (N, 3 + M) uint16; how many entity states and movers of a world its level has, and whether rows of the
            trail may be written (:func:`adopt_world` sets these for a world whose arrays were written from outside);
            then, of movers that look out, the segment of the level that hid the ninja last (``sim.sight``). No part of
            the state.
    """

    ninjas: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray
    marks: np.ndarray

    def state(self) -> dict[str, np.ndarray]:
        """Return the arrays of the state by name."""
        return {name: getattr(self, name) for name in STATE_ARRAYS}

    def stored(self, where: slice = slice(None)) -> dict[str, np.ndarray]:
        """Return the state of some worlds as it is stored, by name; mover records without use are in no cell."""
        arrays = {name: array[where] for name, array in self.state().items()}
        unused = np.arange(self.movers.shape[1]) >= self.marks[where, MOVERS_USED, None]
        if unused.any():
            arrays["movers"] = arrays["movers"].copy()
            arrays["movers"]["cell"][unused] = NO_CELL
        return arrays

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("worlds", self._asdict(), shared=False)


_NO_TRAIL = np.zeros((1, 1, 2))
"""The trail of single worlds without evil ninjas, in which only zeros are ever written: they share it."""
STATE_ARRAYS = ("ninjas", "entity_states", "movers", "trail")
"""The arrays of ``WorldArrays`` that are copied, compared, hashed and stored."""


def make_worlds(count: int, levels: LevelSet, max_frames: int | None = None) -> WorldArrays:
    """Return zeroed worlds that can hold any level of a set; ``levels.arrays`` get what is known of lasers.

    Args:
        count: number of worlds.
        levels: levels to play.
        max_frames: a world is restarted after at most so many frames, which bounds the trail; None: no limit.
    """
    know_lasers(levels, np.zeros(1, MOVER))
    entities, movers = max(levels.max_entities, 1), max(levels.max_movers, 1)  # kernels need a valid first record
    trail = levels.max_trail if max_frames is None else min(levels.max_trail, max_frames)
    return WorldArrays(
        np.zeros(count, dtype=NINJA_RECORD),
        np.zeros((count, -(-entities // 8) * 8), dtype=np.uint8),
        np.zeros((count, movers), dtype=MOVER),
        _NO_TRAIL if count == 1 and trail == 0 else np.zeros((count, max(trail, 1), 2)),
        np.zeros((count, FIRST_HINT + movers), dtype=np.uint16),
    )


def worlds_of(state: Mapping[str, np.ndarray]) -> WorldArrays:
    """Return worlds in a state, (N, ...) by name of the array, which they share."""
    count, movers = state["movers"].shape
    marks = np.zeros((count, FIRST_HINT + movers), np.uint16)
    marks[:, :FIRST_HINT] = state["entity_states"].shape[1], movers, 1
    return WorldArrays(**{name: state[name] for name in STATE_ARRAYS}, marks=marks)


def _kernels_of(record: np.dtype) -> tuple[Any, Any, Any]:
    """Return the kernels of a record, which take it field by field: copy, difference and hash."""
    names = record.names or ()
    floats = tuple(name for name in names if record[name].kind == "f")
    numbers = tuple(name for name in names if record[name].kind != "f")

    @kernel
    def copy(source, target):
        """Copy a record field by field."""
        for name in each(names):
            target[name] = source[name]

    @kernel
    def differing(left, right):
        """Return 0 if all fields of two records are equal."""
        found = np.uint64(0)
        for name in each(floats):
            found |= difference(left[name], right[name])
        for name in each(numbers):
            found |= np.uint64(left[name] != right[name])
        return found

    @kernel
    def hashed(fields, value):
        """Return a hash with the fields of a record mixed into it."""
        for name in each(floats):
            value = mix(value, np.float64(fields[name]).view(np.uint64))
        for name in each(numbers):
            value = mix(value, np.uint64(np.int64(fields[name])))
        return value

    return copy, differing, hashed


copy_ninja, _ninja_difference, hash_ninja = _kernels_of(NINJA_RECORD)
copy_mover, _mover_difference, _hash_mover = _kernels_of(MOVER)
_MOVER_FIELDS = MOVER.names or ()
_NO_MOVER = np.zeros((), MOVER)
_NO_MOVER["cell"] = NO_CELL
"""How a record that the level does not use is hashed and stored: in no cell."""
_NO_MOVER_WORDS = tuple(
    np.uint64(np.int64(_NO_MOVER[name])) for kind in "fi" for name in _MOVER_FIELDS if MOVER[name].kind == kind
)


@kernel
def clear_mover(mover):
    """Set all fields of a record to zero."""
    for name in each(_MOVER_FIELDS):
        mover[name] = 0


@kernel
def copy_world(source_worlds, source_index, target_worlds, target_index):
    """Copy one world over another; nothing is checked.

    Args:
        source_worlds: ``WorldArrays``.
        source_index: world to copy.
        target_worlds: ``WorldArrays`` for the same level set, changed in place; may be the same.
        target_index: world to overwrite.
    """
    marks = source_worlds.marks
    entities, movers = marks[source_index, ENTITIES_USED], marks[source_index, MOVERS_USED]
    rows = trail_rows(source_worlds, source_index)
    clear_trail(target_worlds, target_index, rows)
    copy_ninja(source_worlds.ninjas[source_index], target_worlds.ninjas[target_index])
    for slot in range(entities):
        target_worlds.entity_states[target_index, slot] = source_worlds.entity_states[source_index, slot]
    for number in range(movers):
        copy_mover(source_worlds.movers[source_index, number], target_worlds.movers[target_index, number])
        target_worlds.marks[target_index, FIRST_HINT + number] = marks[source_index, FIRST_HINT + number]
    for row in range(rows):
        for axis in range(2):
            target_worlds.trail[target_index, row, axis] = source_worlds.trail[source_index, row, axis]
    use(target_worlds, target_index, entities, movers)
    target_worlds.marks[target_index, TRAIL_USED] = marks[source_index, TRAIL_USED]


@kernel
def use(worlds, index, entities, movers):
    """Note that a world uses so many entity states and movers; clear those that it used behind them."""
    marks = worlds.marks
    for slot in range(entities, marks[index, ENTITIES_USED]):
        worlds.entity_states[index, slot] = 0
    for number in range(movers, marks[index, MOVERS_USED]):
        clear_mover(worlds.movers[index, number])
    marks[index, ENTITIES_USED], marks[index, MOVERS_USED] = entities, movers


@kernel
def clear_trail(worlds, index, first):
    """Clear what a world may have written to its trail from a row on; before its frame counter changes."""
    for row in range(first, trail_rows(worlds, index)):
        worlds.trail[index, row, 0], worlds.trail[index, row, 1] = 0.0, 0.0


@kernel
def trail_rows(worlds, index):
    """Return the number of rows of the trail of a world that may be other than zero; a single row is never used."""
    used = worlds.marks[index, TRAIL_USED] != 0 and worlds.trail.shape[1] > 1
    return used_rows(worlds, index) if used else 0


@kernel
def adopt_world(levels, worlds, index):
    """Note what a world uses whose arrays were written from outside, of any contents behind what its level has."""
    header = levels.header[worlds.ninjas[index]["level"]]
    marks = worlds.marks
    marks[index, ENTITIES_USED], marks[index, MOVERS_USED] = worlds.entity_states.shape[1], worlds.movers.shape[1]
    use(worlds, index, header["entity_count"], header["mover_count"])
    marks[index, TRAIL_USED] = 1
    for row in range(trail_rows(worlds, index), worlds.trail.shape[1]):
        worlds.trail[index, row, 0], worlds.trail[index, row, 1] = 0.0, 0.0


@kernel
def used_rows(worlds, index):
    """Return the number of rows of the trail of a world that its frames so far may have written; others are zero."""
    frame, rows = np.int64(worlds.ninjas[index]["frame"]), worlds.trail.shape[1]
    return frame if 0 <= frame < rows else rows


def transfer_world(source: WorldArrays, index: int, target: WorldArrays, place: int, level: int) -> None:
    """Copy a world over world ``place`` of another level set, in which its level has number ``level``."""
    target.marks[place, :FIRST_HINT] = source.marks[index, :FIRST_HINT]
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
    """Return whether two worlds of the same arrays are equal bit by bit."""
    if _ninja_difference(worlds.ninjas[left], worlds.ninjas[right]) != 0:
        return False
    states, trail, marks = worlds.entity_states, worlds.trail, worlds.marks
    for slot in range(max(marks[left, ENTITIES_USED], marks[right, ENTITIES_USED])):
        if states[left, slot] != states[right, slot]:
            return False
    for number in range(max(marks[left, MOVERS_USED], marks[right, MOVERS_USED])):
        if _mover_difference(worlds.movers[left, number], worlds.movers[right, number]) != 0:
            return False
    for row in range(max(trail_rows(worlds, left), trail_rows(worlds, right))):
        for axis in range(2):
            if difference(trail[left, row, axis], trail[right, row, axis]) != 0:
                return False
    return True


@kernel
def hash_world(worlds, index):
    """Return a 64-bit hash of a world: equal for equal worlds, different for others except by chance.

    The whole state counts, including the frame counter. Hashes are comparable within a level set.
    """
    value = hash_ninja(worlds.ninjas[index], FIRST)
    states = worlds.entity_states
    for first in range(0, states.shape[1], _WORD):
        word = np.uint64(0)
        for place in range(_WORD):
            word |= np.uint64(states[index, first + place]) << np.uint64(8 * place)
        value = mix(value, word)
    for number in range(worlds.movers.shape[1]):
        if number < worlds.marks[index, MOVERS_USED]:
            value = _hash_mover(worlds.movers[index, number], value)
        else:
            for word in _NO_MOVER_WORDS:
                value = mix(value, word)
    for row in range(worlds.trail.shape[1]):
        for axis in range(2):
            value = mix(value, np.float64(worlds.trail[index, row, axis]).view(np.uint64))
    return finish(value)
