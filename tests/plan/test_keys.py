"""Hashes of the future and keys of cells: what counts, what does not, and what equal hashes promise."""

import numpy as np
import pytest

from nclone_env.game import DEAD, JUMPING, KINDS
from nclone_env.level.build import build_room, everything, moving
from nclone_env.level.level_set import pack
from nclone_env.sim import Session, cell_key, copy_world, hash_future, key_parts, world_at

WRITTEN_ONLY = ("facing", "finish_fraction", "gold", "frame")
ALWAYS = ("x", "y", "vx", "vy", "gravity", "drag", "airborne", "jump_held")
DOORS = build_room("locked_door 60 56 0", "locked_door_switch 50 58", "trap_door 70 56 0", "trap_door_switch 64 58")
EXIT = ("exit 90 58", "exit_switch 44 58")


def random_inputs(seed, frames=60):
    return np.repeat(np.random.default_rng(seed).integers(0, 6, frames // 6), 6).astype(np.uint8)


def busy(level, seed, frames=60):
    """Return a session of four worlds; world 0 has played random inputs."""
    session = Session(level, 4, max_frames=400)
    session.play(random_inputs(seed, frames))
    return session


def future(session, world):
    return int(hash_future(session.levels, session.worlds, world))


def path(session, world, seed):
    """Return the motion and state of the ninja in the next frames, without what is only written."""
    ninjas = session.record(random_inputs(seed, 120), world).ninjas
    alive = np.append(True, ninjas["state"][:-1] < DEAD)
    return [ninjas[name][alive].tobytes() for name in ("x", "y", "vx", "vy", "state", "airborne")]


@pytest.mark.parametrize("name", WRITTEN_ONLY)
def test_what_is_only_written_does_not_count(name):
    session = busy(build_room(*EXIT), 1)
    before = future(session, 0)
    session.worlds.ninjas[0][name] += 1
    assert future(session, 0) == before


@pytest.mark.parametrize("name", ALWAYS)
def test_what_is_always_read_counts(name):
    session = busy(build_room(*EXIT), 1)
    before = future(session, 0)
    session.worlds.ninjas[0][name] += 1
    assert future(session, 0) != before


@pytest.mark.parametrize(
    ("timer", "field", "last"),
    [
        ("floor_buffer", "floor_x", 3),
        ("floor_buffer", "floor_y", 3),
        ("wall_buffer", "wall_normal", 3),
        ("pad_buffer", "pad_x", 2),
        ("pad_buffer", "pad_y", 2),
    ],
)
def test_the_direction_of_a_contact_counts_while_its_timer_runs(timer, field, last):
    session = busy(build_room(*EXIT), 1)
    ninja = session.worlds.ninjas[0]
    for value in range(-1, 6):
        ninja[timer], ninja[field] = value, 0.0
        before = future(session, 0)
        ninja[field] = 1.0
        assert (future(session, 0) != before) == (0 <= value <= last), value


def test_expired_timers_are_alike():
    session = busy(build_room(*EXIT), 1)
    ninja = session.worlds.ninjas[0]
    for name, last in (("jump_buffer", 3), ("floor_buffer", 3), ("wall_buffer", 3), ("pad_buffer", 2)):
        values = {}
        for value in range(-1, 6):
            ninja[name] = value
            values[value] = future(session, 0)
        ninja[name] = -1
        assert len({values[value] for value in values if not 0 <= value <= last}) == 1
        assert len(set(values.values())) == last + 2


def test_the_length_of_a_jump_counts_during_one():
    session = busy(build_room(*EXIT), 1)
    ninja = session.worlds.ninjas[0]
    for state in range(DEAD):
        ninja["state"], ninja["jump_duration"] = state, 1
        before = future(session, 0)
        ninja["jump_duration"] = 2
        assert (future(session, 0) != before) == (state == JUMPING)


def test_all_dead_worlds_are_alike():
    session = busy(build_room(*EXIT), 1)
    session.worlds.ninjas["state"] = DEAD
    assert future(session, 0) == future(session, 1)


@pytest.mark.parametrize("seed", range(20))
def test_worlds_with_the_same_hash_have_the_same_future(seed):
    """Fields that do not count in this state are disturbed; the paths stay the same under any inputs."""
    session = busy(moving() if seed % 2 else everything(), seed, 30 + 6 * seed)
    copy_world(session.worlds, 0, session.worlds, 1)
    before = future(session, 0)
    disturbed = 0
    rng = np.random.default_rng(seed)
    for name in set(session.worlds.ninjas.dtype.names) - {"level"}:
        kept = session.worlds.ninjas[1][name]
        session.worlds.ninjas[1][name] = kept + rng.integers(1, 4)
        if future(session, 1) != before:
            session.worlds.ninjas[1][name] = kept
        disturbed += session.worlds.ninjas[1][name] != kept
    if session.over[0]:
        return
    assert disturbed >= 3
    copy_world(session.worlds, 1, session.worlds, 2)
    copy_world(session.worlds, 0, session.worlds, 3)
    assert path(session, 0, seed) == path(session, 1, seed)
    assert path(session, 3, seed + 100) == path(session, 2, seed + 100)


def test_orders_of_entry_count_back_from_the_next_one():
    session = busy(build_room(*EXIT, "thwump 60 40 0", "floor_guard 70 58"), 3)
    before, count = future(session, 0), len(session.entities())
    movers, ninja = session[0].movers, session.worlds.ninjas[0]
    entered = movers["order"] >= count
    movers["order"][entered] += 5
    ninja["next_order"] += 5
    assert future(session, 0) == before
    movers["order"][0] += 1
    assert future(session, 0) != before


def test_the_frame_and_the_path_count_once_an_evil_ninja_follows():
    level = build_room(*EXIT, "evil_ninja 46 58")
    session = Session(level, 2, max_frames=400)
    session.worlds.ninjas["frame"][1] = 7
    assert future(session, 0) == future(session, 1)
    session.worlds.ninjas["frame"][1] = 0
    session.play(bytes([2] * 30))  # to the right, through the evil ninja
    assert session.entity_states()[session.entities()["type"] == 22][0] > 0
    assert future(session, 0) == future(session, 1)
    session.worlds.ninjas["frame"][1] += 1
    assert future(session, 0) != future(session, 1)
    session.worlds.ninjas["frame"][1] -= 1
    session.worlds.trail[session.worlds.rooms[1]["trail"]["first"], 0] += 1.0
    assert future(session, 0) != future(session, 1)


def test_gold_and_mines_do_not_count_switches_and_doors_do():
    level = build_room(
        *EXIT, "gold 50 50", "mine 60 50", "toggle_mine 70 50", "regular_door 66 56 0", "boost_pad 52 52"
    )
    session = Session(level, 2)
    counting = set()
    for slot, kind in enumerate(session.entities()["type"]):
        session[1].entity_states[:] = session[0].entity_states
        session[1].entity_states[slot] ^= 1
        if future(session, 0) != future(session, 1):
            counting.add(KINDS[kind].name)
    assert counting == {"exit", "exit_switch", "toggle_mine", "regular_door", "boost_pad"}


def test_parts_of_cell_keys():
    level = build_room(
        *EXIT, *["gold 50 50", "bounce_block 60 50", "thwump 70 50 0", "shove_thwump 80 50", "zap_drone 90 40"]
    )
    levels = pack([level, DOORS])
    kinds = levels.entities_of(0)["type"], levels.entities_of(1)["type"]
    first, second = key_parts(levels, 0), key_parts(levels, 1)
    assert [KINDS[kind].name for kind in kinds[0][first.switches]] == ["exit_switch"]
    assert [KINDS[kind].name for kind in kinds[1][second.switches]] == ["locked_door", "trap_door"]
    slots = levels.mover_slots_of(0)[first.movers]
    assert [KINDS[kind].name for kind in kinds[0][slots]] == ["thwump", "shove_thwump"]


def keys_after(change, level=DOORS):
    """Return the key of a cell before and after a change to the world."""
    session = Session(level)
    parts = key_parts(session.level_set)
    before = int(cell_key(session.worlds, 0, parts, 24.0, 2.0))
    change(session.worlds)
    return before, int(cell_key(session.worlds, 0, parts, 24.0, 2.0))


@pytest.mark.parametrize(("name", "inside", "outside"), [("x", 23.9, 24.0), ("y", 11.9, 12.0), ("vx", 0.99, 1.0)])
def test_cells_are_squares_of_position_and_velocity(name, inside, outside):
    def change(amount):
        def by(worlds):
            worlds.ninjas[0][name] += amount

        return by

    before, after = keys_after(change(inside))  # the ninja starts at (240, 348)
    assert before == after
    before, after = keys_after(change(outside))
    assert before != after
    before, after = keys_after(change(-1e6))  # far outside the world
    assert before != after


def test_switches_change_the_key():
    def take(worlds):
        world_at(worlds, 0).entity_states[0] = 1

    before, after = keys_after(take)
    assert before != after


def test_movers_at_rest_change_the_key():
    def push(worlds):
        world_at(worlds, 0).movers[0]["x"] += 12.0

    before, after = keys_after(push, build_room("thwump 60 40 0"))
    assert before != after
