"""The state of a batch of worlds, no pointers: how it is made, copied, compared and hashed.

All of these work on every part of a world, as far as its level uses it (``sim.store``). A new part needs a loop in
:func:`copy_world`, :func:`equal_worlds` and :func:`hash_world`; new fields of a record are included automatically.

The hash mixes a world into 64 bits, word by word: fields of the ninja, eight entity states at a time, fields of each
mover, coordinates of the trail; a float is its bits, an integer is sign-extended. What the largest level of the set
would use in addition is zeros, and movers in no cell. For each word, modulo 2**64,

    h = (h ^ word) * 0x9E3779B97F4A7C15;  h = h ^ (h >> 32)

and at the end the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), so that any of its bits can index a table.
Every step is invertible, so two states that differ in a single word never have the same hash. Random numbers, which
depend only on a seed and a counter, are mixed likewise.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.game import DEATH_BALL, KINDS
from nclone_env.jit import each, kernel
from nclone_env.level import LevelArrays, LevelSet
from nclone_env.sim.entities.laser.learn import know_lasers
from nclone_env.sim.geometry import difference
from nclone_env.sim.store import (
    NO_TRAIL,
    PARTS,
    ROOM,
    SLACK,
    WorldArrays,
    check_lengths,
    mover_of,
    state_of,
    store_of,
    trail_count,
    trail_row,
)

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

_WORD = 8  # bytes


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


class World(NamedTuple):
    """One world: what its level uses. Equal bytes mean an equal future.

    Attributes:
        ninja: a ``NINJA_RECORD``.
        entity_states: (E,) uint8.
        movers: (M,) ``MOVER``.
        trail: (R, 2) float64; positions of the ninja at the end of its last frames, the present one not included,
            oldest first: those since an evil ninja was first touched, as far as evil ninjas of the level follow them.
    """

    ninja: Any
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray

    def copy(self) -> "World":
        """Return a copy, which shares nothing."""
        return World(*(part.copy() for part in self))

    def tobytes(self) -> bytes:
        """Return the bytes of the parts, one after another."""
        return b"".join(part.tobytes() for part in self)


def make_worlds(count: int, levels: LevelSet, max_frames: int | None = None) -> WorldArrays:
    """Return zeroed worlds, each with room for any level of a set; ``levels.arrays`` get what is known of lasers.

    Args:
        count: number of worlds.
        levels: levels to play.
        max_frames: a world is restarted after at most so many frames, which bounds the trail; None: no limit.
    """
    most = _most(levels, max_frames)
    worlds = _worlds(count, levels, most, [count * size for size in most])
    for part, size in zip(PARTS, most, strict=True):
        spans = worlds.rooms[part][:-1]
        spans["first"], spans["size"] = size * np.arange(count), size
    return worlds


def make_growing_worlds(count: int, levels: LevelSet, max_frames: int, step: int) -> WorldArrays:
    """Return zeroed worlds without room; they get it by ``sim.store.fit_world`` at least every ``step`` frames.

    The arrays are as large as worlds on two levels drawn at random each hardly ever need together; those of the trail
    grow as it is needed. Worlds with room for the largest level are made if they take no more. Other arguments as of
    :func:`make_worlds`.
    """
    most = _most(levels, max_frames)
    parts = ("entity_count", 1), ("mover_count", MOVER.itemsize)
    sizes = [_likely_size(count, levels.arrays.header[name], _SMALL // size) for name, size in parts]
    if count > 1 and (most[2] or len(levels.levels) > 1):  # spans will move
        sizes = [size + size // SLACK for size in sizes]
    lengths = sizes[0] + 1, sizes[1] + 1, 1 if most[2] else 0
    if _bytes(*(count * size for size in most)) <= _bytes(*lengths):
        return make_worlds(count, levels, max_frames)
    worlds = _worlds(count, levels, most, lengths)
    worlds.rooms["trail_begin"][-1] = step
    return worlds


def _most(levels: LevelSet, max_frames: int | None) -> tuple[int, int, int]:
    """Return the most elements of each part that a level uses."""
    trail = levels.max_trail if max_frames is None else min(levels.max_trail, max_frames)
    return levels.max_entities, levels.max_movers, trail


def expected_bytes(levels: LevelSet) -> int:
    """Return the bytes of a world with room for two levels drawn from the set, the larger of which counts, on average.

    Trails are left out: they depend on play.
    """
    header = levels.arrays.header
    entities, movers = (_larger_of_two(header[name])[0] for name in ("entity_count", "mover_count"))
    return math.ceil(NINJA_RECORD.itemsize + ROOM.itemsize + _bytes(entities, movers, 0))


def _bytes(entities: float, movers: float, rows: float) -> float:
    """Return the bytes of parts with so many elements."""
    return entities + (MOVER.itemsize + _HINT) * movers + _ROW * rows


def _larger_of_two(sizes: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of the larger of two sizes that are drawn at random."""
    count = len(sizes)
    ascending, shares = np.sort(sizes).astype(np.float64), (2.0 * np.arange(count) + 1.0) / count**2
    mean = float(shares @ ascending)
    return mean, math.sqrt(max(float(shares @ ascending**2) - mean**2, 0.0))


def _likely_size(count: int, sizes: np.ndarray, least: int) -> int:
    """Return what a number of worlds hardly ever need more of together: the mean, and four standard deviations.

    If even that is little, it is as much as they can ever need, up to ``least``.
    """
    mean, deviation = _larger_of_two(sizes)
    likely = math.ceil(count * mean + 4.0 * math.sqrt(count) * deviation)
    return min(max(likely, least), (count + (count > 1)) * int(sizes.max()))  # for all, and for one to move


def _worlds(count: int, levels: LevelSet, most: Sequence[int], sizes: Sequence[int]) -> WorldArrays:
    """Return zeroed worlds over arrays of some sizes, which have at least one element, as kernels need."""
    check_lengths(count, *sizes)
    know_lasers(levels, np.zeros(1, MOVER))
    entities, movers, rows = (max(size, 1) for size in sizes)
    rooms = np.zeros(count + 1, ROOM)
    for part, size in zip(PARTS, most, strict=True):
        rooms[part]["used"][-1] = size
    rooms["trail_begin"] = NO_TRAIL
    rooms["before"], rooms["after"] = np.arange(-1, count) % (count + 1), np.arange(1, count + 2) % (count + 1)
    return WorldArrays(
        np.zeros(count, NINJA_RECORD),
        rooms,
        np.zeros(entities, np.uint8),
        np.zeros(movers, MOVER),
        np.zeros(movers, np.uint16) if np.isin(levels.arrays.runs["type"], _LOOKING).any() else _no_hints(movers),
        np.zeros((rows, 2)) if sizes[2] else _NO_ROWS,
    )


@lru_cache(maxsize=64)
def _no_hints(count: int) -> np.ndarray:
    """Return the hints of worlds in which nothing takes any, which stay zero: they share them."""
    return np.zeros(count, np.uint16)


_LOOKING = (*(kind.number for kind in KINDS if kind.shoots), DEATH_BALL)
_SMALL = 1 << 14  # bytes
_HINT, _ROW = 2, 16  # bytes of a hint and of a position
_NO_ROWS = np.zeros((1, 2))
"""The trail of worlds that have no room for one: they share it."""


def worlds_of(ninjas: np.ndarray, entity_states: np.ndarray, movers: np.ndarray, trail: np.ndarray) -> WorldArrays:
    """Return worlds over arrays of equal rows, (N, ...) each: the parts of a :class:`World`; the trail is (N, R, 2)."""
    count, rooms = len(ninjas), np.zeros(len(ninjas) + 1, ROOM)
    for part, array in zip(PARTS, (entity_states, movers, trail), strict=True):
        size = array.shape[1]
        rooms[part]["first"] = size * np.arange(count + 1)
        rooms[part]["size"] = rooms[part]["used"] = size
    rooms["trail_begin"][:-1] = np.where(trail.shape[1], ninjas["frame"] - trail.shape[1], NO_TRAIL)
    flat = (entity_states.reshape(-1), movers.reshape(-1), trail.reshape(-1, 2))
    states, records, rows = (array if len(array) else np.zeros((1, *array.shape[1:]), array.dtype) for array in flat)
    return WorldArrays(ninjas, rooms, states, records, np.zeros(len(records), np.uint16), rows)


def world_at(worlds: WorldArrays, index: int) -> World:
    """Return one of the worlds: views, but for the trail."""
    entities, movers, trail, begin, *_ = worlds.rooms[index].item()  # of Python's numbers, which are faster
    (states, _, state_count), (records, _, record_count), (first, _, ring) = entities, movers, trail
    ninja, path = worlds.ninjas[index], _NO_ROWS[:0]
    if begin != NO_TRAIL:
        frame = int(ninja["frame"])
        path = worlds.trail[first + (np.arange(max(begin, frame - ring), frame) - begin) % max(ring, 1)]
    parts = worlds.entity_states[states : states + state_count], worlds.movers[records : records + record_count]
    return World(ninja, *parts, path)


def place_world(levels: LevelArrays, worlds: WorldArrays, index: int, world: World) -> None:
    """Overwrite one of the worlds, which has room for it."""
    ninja, states, movers, trail = world
    room = worlds.rooms[index]
    (first_state, *_), (first_mover, *_), (first_row, *_), *_ = room.item()
    worlds.ninjas[index] = ninja
    worlds.entity_states[first_state : first_state + len(states)] = states
    worlds.movers[first_mover : first_mover + len(movers)] = movers
    worlds.trail[first_row : first_row + len(trail)] = trail
    room["entities"]["used"], room["movers"]["used"] = len(states), len(movers)
    room["trail"]["used"] = levels.header["trail_count"][ninja["level"]]
    room["trail_begin"] = ninja["frame"] - len(trail) if len(trail) else NO_TRAIL


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
def copy_world(source_worlds, source_index, target_worlds, target_index):
    """Copy one world over another, which has room for it; nothing is checked.

    Args:
        source_worlds: ``WorldArrays``.
        source_index: world to copy.
        target_worlds: ``WorldArrays`` of the same level set, changed in place; may be the same.
        target_index: world to overwrite.
    """
    source, target = source_worlds.rooms[source_index], target_worlds.rooms[target_index]
    copy_ninja(source_worlds.ninjas[source_index], target_worlds.ninjas[target_index])
    first, place, count = source["entities"]["first"], target["entities"]["first"], source["entities"]["used"]
    for k in range(count):
        target_worlds.entity_states[place + k] = source_worlds.entity_states[first + k]
    target["entities"]["used"] = count
    first, place, count = source["movers"]["first"], target["movers"]["first"], source["movers"]["used"]
    for k in range(count):
        copy_mover(source_worlds.movers[first + k], target_worlds.movers[place + k])
        target_worlds.hints[place + k] = source_worlds.hints[first + k]
    target["movers"]["used"] = count
    first, place = source["trail"]["first"], target["trail"]["first"]
    for k in range(trail_count(source_worlds, source_index)):
        for axis in range(2):
            target_worlds.trail[place + k, axis] = source_worlds.trail[first + k, axis]
    target["trail"]["used"], target["trail_begin"] = source["trail"]["used"], source["trail_begin"]


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
    one, other, rows = worlds.rooms[left], worlds.rooms[right], trail_count(worlds, left)
    if one["entities"]["used"] != other["entities"]["used"] or rows != trail_count(worlds, right):
        return False
    for slot in range(one["entities"]["used"]):
        if state_of(worlds, left, slot) != state_of(worlds, right, slot):
            return False
    for number in range(one["movers"]["used"]):
        if _mover_difference(mover_of(worlds, left, number), mover_of(worlds, right, number)) != 0:
            return False
    frame = worlds.ninjas[left]["frame"]
    for past in range(frame - rows, frame):
        for axis in range(2):
            if difference(worlds.trail[trail_row(one, past), axis], worlds.trail[trail_row(other, past), axis]) != 0:
                return False
    return True


@kernel
def mark_of(ninja, actions, first, last, number, key):
    """Return the mark of an episode: 32 bits that depend on its actions, on its end, and on two numbers.

    Args:
        ninja: ``NINJA_RECORD`` at the end, with the number of the level.
        actions: uint8, 0..5; those of the episode are ``first`` to ``last - 1``.
        number: of the episode.
        key: as of the run.
    """
    value = FIRST
    for place in range(first, last):
        value = mix(value, np.uint64(actions[place]))
    value = mix(mix(hash_ninja(ninja, value), np.uint64(number)), np.uint64(key))
    return np.uint32(finish(value) >> np.uint64(32))


@kernel
def hash_world(worlds, index):
    """Return a 64-bit hash of a world: equal for equal worlds, different for others except by chance.

    The whole state counts, including the frame counter. Hashes are comparable within a level set.
    """
    value = hash_ninja(worlds.ninjas[index], FIRST)
    room, most = worlds.rooms[index], store_of(worlds)
    for first in range(0, max(most["entities"]["used"], 1), _WORD):
        word = np.uint64(0)
        for slot in range(first, min(first + _WORD, room["entities"]["used"])):
            word |= np.uint64(state_of(worlds, index, slot)) << np.uint64(8 * (slot - first))
        value = mix(value, word)
    for number in range(max(most["movers"]["used"], 1)):
        if number < room["movers"]["used"]:
            value = _hash_mover(mover_of(worlds, index, number), value)
        else:
            for word in _NO_MOVER_WORDS:
                value = mix(value, word)
    ring, frame, rows = max(most["trail"]["used"], 1), worlds.ninjas[index]["frame"], trail_count(worlds, index)
    for row in range(ring):
        past = frame - 1 - (frame - 1 - row) % ring  # the last frame with a position in this row
        for axis in range(2):
            held = past >= frame - rows
            value = mix(value, np.float64(worlds.trail[trail_row(room, past), axis] if held else 0.0).view(np.uint64))
    return finish(value)
