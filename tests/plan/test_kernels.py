"""The table of keys; successors of worlds against the session, which plays the same inputs."""

import numpy as np
import pytest

from nclone_env.level.build import build_room
from nclone_env.plan import EMPTY, WON, expand, find_place, make_table
from nclone_env.plan.kernels import DIED, DOOR, GOLD, PLACE_BYTES, SWITCH, places_for
from nclone_env.sim import Session, key_parts, make_worlds, world_at

INPUTS = np.array([0, 1, 2, 3, 4, 5], np.uint8)
LEVEL = build_room(
    "exit 60 58", "exit_switch 46 58", "gold 44 58", "mine 30 58", "locked_door 70 56 0", "locked_door_switch 48 58"
)
HOLD = 20


def insert(table, key, number):
    place = find_place(table, np.uint64(key))
    table.keys[place], table.numbers[place] = key, number


def lookup(table, key):
    return int(table.numbers[find_place(table, np.uint64(key))])


@pytest.mark.parametrize("count", [1, 6, 7, 1000])
def test_the_size_is_known_beforehand(count):
    table = make_table(count)
    assert len(table.keys) == places_for(count)
    assert sum(array.nbytes for array in table) == PLACE_BYTES * places_for(count)
    assert count <= 0.75 * len(table.keys)


def test_keys_are_found_until_the_table_is_full():
    rng = np.random.default_rng(0)
    keys = [int(key) for key in rng.integers(0, 2**63, 500)]
    keys += [key + 64 for key in range(0, 64 * 1024, 1024)]  # chains of collisions
    table, expected = make_table(len(keys)), {}
    for number, key in enumerate(keys):
        insert(table, key, number)
        expected[key] = number
    assert [lookup(table, key) for key in keys] == [expected[key] for key in keys]
    assert lookup(table, 12345) == EMPTY
    assert np.count_nonzero(table.numbers != EMPTY) == len(expected)


def expanded(session, rows, hold=HOLD):
    """Return (target worlds, kept, origins, events, frames) of an expansion."""
    size = len(rows) * len(INPUTS)
    target = make_worlds(size, session.level_set)
    origins, frames = np.full((2, size), -1, np.int32)
    events = np.zeros(size, np.uint8)
    parts = key_parts(session.level_set)
    kept = expand(session.levels, session.worlds, rows, len(rows), parts, INPUTS, hold, target, origins, events, frames)
    return target, kept, origins, events, frames


def test_successors_are_those_of_a_session():
    session = Session(LEVEL, 8)
    for world in range(1, 8):
        session.record(np.random.default_rng(world).integers(0, 6, 9 * world), world)
    rows = np.array([5, 0, 7, 3])
    target, kept, origins, events, frames = expanded(session, rows)
    place = 0
    for candidate in range(len(rows) * len(INPUTS)):
        row, code = rows[candidate // 6], INPUTS[candidate % 6]
        alone = Session(LEVEL)
        alone.restore(session.snapshot(row))
        states = alone.record(bytes([code] * HOLD)).ninjas["state"]
        ended = np.flatnonzero(np.isin(states, (6, 8)))
        assert frames[candidate] == (ended[0] + 1 if len(ended) else HOLD)
        assert bool(events[candidate] & (DIED | WON)) == bool(len(ended))
        if not len(ended):
            assert origins[place] == candidate
            assert world_at(target, place).tobytes() == alone.snapshot()
            place += 1
    assert kept == place


def test_events():
    session = Session(LEVEL)
    seen = {}
    for frames in (3, 22, 45, 95):
        session.start()
        _, _, _, events, played = expanded(session, np.array([0]), frames)
        seen[frames] = int(events[2])
        assert played[2] <= frames
    assert seen == {3: 0, 22: GOLD, 45: GOLD | SWITCH | DOOR, 95: GOLD | SWITCH | DOOR | WON}
    _, _, _, events, _ = expanded(session, np.array([0]), 95)
    assert events[4] == DIED
