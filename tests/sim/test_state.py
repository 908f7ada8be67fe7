"""Copies of worlds have the same future; hashes tell worlds apart."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.jit import kernel
from nclone_env.level.build import build_room, moving
from nclone_env.level.level_set import pack
from nclone_env.sim.frame import start as begin
from nclone_env.sim.session import record_world, start_worlds
from nclone_env.sim.state import (
    MOVER,
    NINJA_RECORD,
    NO_CELL,
    copy_world,
    equal_worlds,
    expected_bytes,
    gather_worlds,
    hash_world,
    make_worlds,
    place_world,
    world_at,
    worlds_of,
)
from nclone_env.sim.store import ROOM, WorldArrays

WALLS = {(column, row): 1 for column in (5, 15) for row in range(7, 15)}
BUMPY = build_room("gold 44 58", cells=WALLS | {(8, 14): 9, (7, 14): 1, (6, 14): 1, (13, 14): 1})
WATCHED = build_room("laser_drone 60 50 0 2")
SOURCES = (moving(), BUMPY, moving((70, 44), "other"), moving((84, 62), "above the pad"), WATCHED)
LEVELS = pack(SOURCES)
UNREAD = np.zeros(400, NINJA_RECORD), np.zeros((0, 0), np.uint8), np.zeros((0, 0), MOVER)
ODD, ONES = 0x9E3779B97F4A7C15, 2**64 - 1


@kernel
def start_one(levels, worlds, index, level):
    begin(levels, worlds, index, level)


def start(worlds: WorldArrays, index: int, level: int) -> None:
    start_one(LEVELS.arrays, worlds, index, level)


def play(worlds: WorldArrays, index: int, inputs, levels=LEVELS) -> None:
    """Play with a kernel of the package: one of the tests would compile the simulator again."""
    codes = np.array(inputs, np.uint8)
    record_world(levels.arrays, worlds, index, codes, 0, len(codes), *UNREAD)


def playing(count: int, frames: int = 60) -> WorldArrays:
    """Return worlds in different states of different levels."""
    worlds = make_worlds(count, LEVELS)
    for index in range(count):
        start(worlds, index, index % 3)
        play(worlds, index, np.random.default_rng(index).integers(0, 8, frames))
    return worlds


def bytes_of(worlds: WorldArrays, index: int) -> bytes:
    return world_at(worlds, index).tobytes()


def noise(count: int) -> WorldArrays:
    """Return worlds of random bytes, padding aside."""
    shapes = (count,), (count, LEVELS.max_entities), (count, LEVELS.max_movers)
    arrays = [np.zeros(shape, dtype) for shape, dtype in zip(shapes, (NINJA_RECORD, np.uint8, MOVER), strict=True)]
    rng = np.random.default_rng(1)
    for array in arrays:
        for part in [array[name] for name in array.dtype.names or ()] or [array]:
            part[...] = np.frombuffer(rng.bytes(part.size * part.itemsize), part.dtype).reshape(part.shape)
    return worlds_of(*arrays, np.zeros((count, 0, 2)))


def test_a_copy_leaves_its_source_and_all_others_alone():
    worlds, before = noise(4), noise(4)
    copy_world(worlds, 0, worlds, 3)
    copy_world(worlds, 1, worlds, 1)
    assert [bytes_of(worlds, i) for i in range(4)] == [bytes_of(before, i) for i in (0, 1, 2, 0)]


EVIL = pack(
    [build_room("evil_ninja 41 58", "evil_ninja 41 58")]
)  # it touches both: the second follows 240 frames later


@pytest.mark.parametrize(("frames", "others"), [(0, 40), (40, 0), (30, 90), (90, 30), (400, 10), (10, 400)])
def test_a_copy_leaves_no_row_of_a_longer_trail(frames, others):
    worlds = make_worlds(2, EVIL)
    start_worlds(EVIL.arrays, worlds, np.zeros(2, np.int64))
    for index, count in enumerate((frames, others)):
        play(worlds, index, [3] * count, EVIL)
    rows = [len(world_at(worlds, index).trail) for index in range(2)]
    assert (rows[0] < rows[1]) == (frames < others)
    copy_world(worlds, 0, worlds, 1)
    assert bytes_of(worlds, 0) == bytes_of(worlds, 1)


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [3, 3, 3, 3], [3, 2, 1, 0], [1, 0], [2]])
def test_any_world_is_gathered_from_any(indices):
    source, target = noise(4), make_worlds(4, LEVELS)
    gather_worlds(source, np.array(indices, np.int64), target)
    empty = bytes_of(make_worlds(1, LEVELS), 0)
    expected = [bytes_of(source, i) for i in indices] + [empty] * (4 - len(indices))
    assert [bytes_of(target, i) for i in range(4)] == expected


inputs_of_runs = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 2, 3]), min_size=1, max_size=40).map(
    lambda codes: np.repeat(codes, 4)
)


@settings(max_examples=40)
@given(level=st.integers(0, 2), before=inputs_of_runs, other=inputs_of_runs, after=inputs_of_runs)
def test_equal_bytes_have_an_equal_future(level, before, other, after):
    worlds = make_worlds(2, LEVELS)
    start(worlds, 0, level)
    play(worlds, 0, before)
    start(worlds, 1, (level + 1) % 3)  # what was there before leaves nothing behind
    play(worlds, 1, other)
    copy_world(worlds, 0, worlds, 1)
    assert hash_world(worlds, 0) == hash_world(worlds, 1)
    for code in after:
        play(worlds, 0, [code])
        play(worlds, 1, [code])
        assert bytes_of(worlds, 0) == bytes_of(worlds, 1)
    assert hash_world(worlds, 0) == hash_world(worlds, 1)


def test_the_moving_level_moves():
    worlds = playing(1, 120)
    movers = world_at(worlds, 0).movers
    homes = LEVELS.entities_of(0)[LEVELS.mover_slots_of(0)]
    assert np.count_nonzero((movers["x"] != homes["x"]) | (movers["y"] != homes["y"])) >= 5
    assert worlds.ninjas[0]["next_order"] > len(LEVELS.entities_of(0))


def test_a_restart_leaves_nothing_of_what_was_there():
    fresh, used = make_worlds(1, LEVELS), noise(1)
    start(fresh, 0, 1)
    start(used, 0, 1)
    assert bytes_of(used, 0) == bytes_of(fresh, 0)


FIELDS = [("ninjas", name) for name in NINJA_RECORD.names or ()] + [("movers", name) for name in MOVER.names or ()]


@pytest.mark.parametrize(("array", "name"), FIELDS)
def test_every_bit_of_every_field_changes_the_hash(array, name):
    worlds = playing(1)
    field = getattr(worlds, array)[name]
    before = hash_world(worlds, 0)
    seen = {before}
    records = records_of(worlds, 0, array)
    for record in range(len(records)):
        for bit in range(8 * field.itemsize):
            flip(records[record : record + 1], name, bit)
            seen.add(hash_world(worlds, 0))
            flip(records[record : record + 1], name, bit)
    assert len(seen) == 1 + len(records) * 8 * field.itemsize
    assert hash_world(worlds, 0) == before


def flip(record: np.ndarray, name: str, bit: int) -> None:
    """Change one bit of one field of a record in place."""
    value = np.array(record[name])
    raw = value.view(f"u{value.itemsize}")
    raw ^= np.array(1 << bit, raw.dtype)
    record[name] = value


def test_every_bit_of_every_entity_state_changes_the_hash():
    worlds = playing(1)
    states = world_at(worlds, 0).entity_states
    seen = {hash_world(worlds, 0)}
    for slot in range(len(states)):
        for bit in range(8):
            states[slot] ^= 1 << bit
            seen.add(hash_world(worlds, 0))
            states[slot] ^= 1 << bit
    assert len(seen) == 1 + 8 * len(states)


def test_every_byte_but_padding_counts():
    hashed = NINJA_RECORD.itemsize + sum(MOVER[name].itemsize for name in MOVER.names or ())
    assert NINJA_RECORD.itemsize == sum(NINJA_RECORD[name].itemsize for name in NINJA_RECORD.names or ())
    assert hashed == NINJA_RECORD.itemsize + MOVER.itemsize


def test_the_hash_is_the_documented_one():
    worlds = playing(1)
    ninja, states, movers, trail = world_at(worlds, 0)
    words = list(record_words(ninja, NINJA_RECORD))
    words += np.pad(states, (0, -LEVELS.max_entities % 8 + LEVELS.max_entities - len(states))).view("<u8").tolist()
    unused = np.zeros(LEVELS.max_movers - len(movers), MOVER)
    unused["cell"] = NO_CELL
    for mover in np.concatenate([movers, unused]):
        words += record_words(mover, MOVER)
    assert not len(trail)
    words += [0, 0]  # a level set without evil ninjas counts one position
    value = 0x243F6A8885A308D3
    for word in words:
        value = (value ^ word) * ODD & ONES
        value ^= value >> 32
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & ONES
    value = (value ^ value >> 27) * 0x94D049BB133111EB & ONES
    assert int(hash_world(worlds, 0)) == value ^ value >> 31


def record_words(record, dtype):
    """Yield the words of a record: floats first, then whole numbers."""
    names = dtype.names or ()
    yield from (int(np.float64(record[name]).view(np.uint64)) for name in names if dtype[name].kind == "f")
    yield from (int(record[name]) & ONES for name in names if dtype[name].kind == "i")


def test_no_two_states_of_some_runs_have_the_same_hash():
    hashes, states = set(), set()
    worlds = playing(3, 0)
    for frame in range(300):
        for index in range(3):
            play(worlds, index, [(frame // 7 + index) % 6])
            hashes.add(int(hash_world(worlds, index)))
            states.add(bytes_of(worlds, index))
    assert len(hashes) == len(states) > 800


ONLY_READ_ELSEWHERE = {"frame", "gold", "facing", "finish_fraction"}
"""For the time limit, rewards and pictures: without turning lasers and evil ninjas the simulator only writes these."""


def matters(worlds: WorldArrays, array: str, name: str, inputs) -> bool:
    """Return whether another value of a field of world 0 changes anything else in the frames to come."""
    return any(
        changes_something(worlds, array, number, name, other, inputs)
        for number, record in enumerate(records_of(worlds, 0, array))
        for other in others(record[name])
    )


def records_of(worlds: WorldArrays, index: int, array: str) -> np.ndarray:
    """Return the ninja or the movers of a world, a view."""
    return worlds.ninjas[index : index + 1] if array == "ninjas" else world_at(worlds, index).movers


def others(value) -> list:
    """Return other values of a field."""
    return [0.5 - value] if isinstance(value, np.floating) else [value ^ 1, (value + 40) % 100]


def changes_something(worlds, array, record, name, other, inputs) -> bool:
    for index in (1, 2):
        copy_world(worlds, 0, worlds, index)
    kept, changed = (records_of(worlds, index, array)[record : record + 1] for index in (1, 2))
    changed[name] = other
    for code in inputs:
        play(worlds, 1, [code])
        play(worlds, 2, [code])
        before, changed[name] = changed[name].copy(), kept[name]
        same = hash_world(worlds, 1) == hash_world(worlds, 2)
        changed[name] = before
        if not same:
            return True
    return False


def sampled_states(runs: int):
    """Yield worlds whose first is in a state that random play passes through, and the inputs to come."""
    rng = np.random.default_rng(7)
    worlds = make_worlds(3, LEVELS)
    for run in range(runs):
        start(worlds, 0, run % len(SOURCES))
        codes = ((0, 1, 2, 3, 4, 5), (2, 2, 2, 4, 4, 4, 2, 3, 5))[run // len(SOURCES) % 2]
        for code in rng.choice(codes, 12):  # held for 20 frames, which are left every few frames
            for _ in range(6):
                play(worlds, 0, [code] * rng.integers(1, 6))
                yield worlds, rng.integers(0, 6, 6)


@pytest.mark.parametrize("name", sorted(ONLY_READ_ELSEWHERE))
def test_some_fields_are_only_read_elsewhere(name):
    assert not any(matters(worlds, "ninjas", name, inputs) for worlds, inputs in sampled_states(4))


def test_no_other_field_is_dead():
    level = ("ninjas", "level")  # another number is another level
    quiet = {field for field in FIELDS if field[1] not in ONLY_READ_ELSEWHERE} - {level}
    for worlds, inputs in sampled_states(100):
        quiet -= {field for field in sorted(quiet) if matters(worlds, *field, inputs)}
        if not quiet:
            break
    assert not quiet


CROWDED = pack([build_room(), build_room(*("zap_drone 60 50",) * 40, *("gold 40 40",) * 30), EVIL.levels[0]])


def restart(worlds: WorldArrays, index: int, level: int) -> None:
    start_one(CROWDED.arrays, worlds, index, level)
    play(worlds, index, [3] * 300, CROWDED)


def test_a_world_uses_what_its_level_needs():
    worlds = make_worlds(3, CROWDED, 1000)
    for level in (1, 2, 0):
        restart(worlds, 0, level)
    header = CROWDED.arrays.header[0]
    assert [len(part) for part in world_at(worlds, 0)[1:]] == [header["entity_count"], header["mover_count"], 0]
    restart(worlds, 1, 1)
    copy_world(worlds, 0, worlds, 1)
    assert bytes_of(worlds, 0) == bytes_of(worlds, 1)
    assert equal_worlds(worlds, 0, 1)
    restart(worlds, 2, 2)
    assert world_at(worlds, 2).trail.any(), "negative control: the trail of this level is used"
    assert not equal_worlds(worlds, 0, 2)
    copy_world(worlds, 2, worlds, 1)
    assert bytes_of(worlds, 2) == bytes_of(worlds, 1)
    assert hash_world(worlds, 2) == hash_world(worlds, 1)
    restart(worlds, 2, 0)
    assert bytes_of(worlds, 2) == bytes_of(worlds, 0)


def test_a_world_is_placed_as_it_was():
    worlds = make_worlds(3, CROWDED, 1000)
    for level in range(3):
        restart(worlds, 0, level)
        restart(worlds, 1, (level + 1) % 3)
        place_world(CROWDED.arrays, worlds, 1, world_at(worlds, 0).copy())
        assert equal_worlds(worlds, 0, 1)
        assert hash_world(worlds, 0) == hash_world(worlds, 1)
        for index in range(2):
            play(worlds, index, [5] * 300, CROWDED)
        assert bytes_of(worlds, 0) == bytes_of(worlds, 1)


def test_a_view_is_written_to_its_world():
    worlds = make_worlds(2, CROWDED)
    restart(worlds, 1, 1)
    before = hash_world(worlds, 1)
    world_at(worlds, 1).movers["x"][3] += 1.0
    assert hash_world(worlds, 1) != before


def test_the_room_that_is_expected():
    """Of two levels drawn at random the larger one counts."""
    header = CROWDED.arrays.header
    pairs = [(a, b) for a in range(3) for b in range(3)]
    parts = (header["entity_count"], 42 * header["mover_count"])
    mean = sum(max(part[a], part[b]) for part in parts for a, b in pairs) / len(pairs)
    assert expected_bytes(CROWDED) == math.ceil(NINJA_RECORD.itemsize + ROOM.itemsize + mean)
