"""Sessions: N worlds played from Python."""

import numpy as np
import pytest

from nclone_env.errors import InputsError, LevelIndexError, NcloneError, SnapshotError, WorldIndexError
from nclone_env.level.build import build_room, everything, moving
from nclone_env.level.level_set import pack
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

from .bases import JUMP, LEFT, RIGHT

ROOM = build_room("gold 44 58", "mine 60 58", "exit 90 58", "exit_switch 20 58")
LEVELS = pack([ROOM, moving(), everything()])


def inputs_of(seed, shape):
    return np.random.default_rng(seed).integers(0, 8, shape).repeat(6, axis=0)


def contents(session) -> list[bytes]:
    return [session.snapshot(world) for world in range(len(session))]


def test_a_session_begins_at_the_start_of_its_level():
    session = Session(ROOM, 3)
    assert len(session) == 3
    assert session.worlds.ninjas["x"].tolist() == [240.0] * 3
    assert session.ninja["frame"] == 0
    assert session.entities()["type"].tolist() == [1, 2, 3, 4]
    assert session.entity_states(2).tolist() == [0] * 4
    assert session.over.tolist() == [False] * 3


def test_a_level_set_is_used_as_it_is():
    session = Session(LEVELS, 2)
    assert session.level_set is LEVELS
    assert session.levels is LEVELS.arrays


def test_worlds_start_at_any_level():
    session = Session(LEVELS, 3)
    session.start([2, 0, 1])
    assert session.worlds.ninjas["level"].tolist() == [2, 0, 1]
    assert [len(session.entities(world)) for world in range(3)] == [len(LEVELS.entities_of(n)) for n in (2, 0, 1)]
    session.start(1)
    assert session.worlds.ninjas["level"].tolist() == [1, 1, 1]
    assert session.equal(0, 1)


def test_one_frame_of_every_world():
    session, expected = Session(ROOM, 2), simulate(ROOM, [RIGHT])
    session.tick([RIGHT, LEFT])
    ninjas = session.worlds.ninjas
    assert ninjas["vx"][0] == expected.xspeed[0] > 0
    assert ninjas["vx"][1] == -expected.xspeed[0]
    assert ninjas["frame"].tolist() == [1, 1]
    session.play([0] * 30)
    session.tick(np.uint8(JUMP))
    assert (ninjas["vy"] < 0).all()


def test_ticks_frames_and_recorded_frames_are_the_same():
    inputs = inputs_of(2, (40, 3))
    ticked, played, recorded = Session(everything(), 3), Session(everything(), 3), Session(everything(), 3)
    for row in inputs:
        ticked.tick(row)
    played.play(inputs)
    for world in range(3):
        frames = recorded.record(inputs[:, world], world)
        assert frames.ninjas[-1].tobytes() == recorded.worlds.ninjas[world].tobytes()
        assert frames.entity_states[-1].tobytes() == recorded[world].entity_states.tobytes()
        assert frames.movers[-1].tobytes() == recorded[world].movers.tobytes()
    assert contents(ticked) == contents(played) == contents(recorded)


def test_the_same_inputs_give_the_same_worlds_and_others_do_not():
    inputs = inputs_of(3, 10)
    session = Session(moving(), 3)
    session.play(inputs)
    assert not session.over.any()
    assert session.equal(0, 1)
    assert session.hash(0) == session.hash(1)
    again = Session(moving())
    again.play(inputs.astype(np.uint8).tobytes())
    assert again.snapshot() == session.snapshot(2)
    session.tick([RIGHT, LEFT, RIGHT])
    assert not session.equal(0, 1)
    assert session.hash(0) != session.hash(1)
    assert session.equal(0, 2)


def test_recording_without_entities_has_no_rows_of_them():
    frames = Session(ROOM).record([RIGHT] * 5, entities=False)
    assert (len(frames.ninjas), len(frames.entity_states), len(frames.movers)) == (5, 0, 0)
    assert len(Session(ROOM).record(b"").ninjas) == 0


def test_over_is_told_world_by_world():
    session = Session(ROOM, 2)
    session.play(np.tile([RIGHT, 0], (120, 1)))
    assert session.over.tolist() == [True, False]
    assert session.entity_states(0)[:2].tolist() == [1, 1]  # the mine that killed, the gold


def test_copies_and_snapshots_have_the_same_future():
    session = Session(moving(), 3)
    session.play(inputs_of(5, (20, 3)))
    session.copy(0, 1)
    session.restore(session.snapshot(0), 2)
    assert session.equal(0, 1)
    assert session.equal(0, 2)
    session.play(inputs_of(6, 20))
    first, second, third = contents(session)
    assert first == second == third
    assert isinstance(first, bytes)


def test_any_world_is_gathered_from_any_in_place():
    session = Session(LEVELS, 4)
    session.start([0, 1, 2, 1])
    session.play(inputs_of(7, (20, 4)))
    worlds, before = session.worlds, contents(session)
    for indices in ([3, 2, 1, 0], [1, 1, 0, 3]):
        session.gather(indices)
        before = [before[index] for index in indices]
        assert contents(session) == before
        assert session.worlds is worlds


def test_views_follow_the_worlds():
    session = Session(ROOM)
    ninja, states = session.ninja, session.entity_states()
    session.record([RIGHT] * 20)
    assert ninja["frame"] == 20
    assert states[1] == 1
    ninja["x"] = 500.0
    assert session.worlds.ninjas["x"].tolist() == [500.0]


@pytest.mark.parametrize("inputs", [16, -1, 1.0, True, [1], [1, 2, 3], [[1, 2]], "R", [0, 16], [-1, 0]])
def test_wrong_inputs_of_a_tick(inputs):
    session = Session(ROOM, 2)
    with pytest.raises(InputsError, match="inputs: expected"):
        session.tick(inputs)
    assert session.ninja["frame"] == 0


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([[1, 2, 3]], r"expected shape \(frames,\) or \(frames, 2\), got \(1, 3\)"),
        ([[1, 16]], "got 16"),
        (b"\x10", "got 16 at frame 0"),
        (np.zeros((2, 2, 2), int), r"got \(2, 2, 2\)"),
    ],
)
def test_wrong_inputs_of_a_run(inputs, message):
    session = Session(ROOM, 2)
    with pytest.raises(InputsError, match=message):
        session.play(inputs)
    assert session.ninja["frame"] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda session, world: session.record([1], world),
        lambda session, world: session.copy(world, 0),
        lambda session, world: session.copy(0, world),
        lambda session, world: session.equal(0, world),
        lambda session, world: session.hash(world),
        lambda session, world: session.snapshot(world),
        lambda session, world: session.restore(session.snapshot(), world),
        lambda session, world: session.gather([0, world]),
        lambda session, world: session.entities(world),
        lambda session, world: session.entity_states(world),
    ],
)
@pytest.mark.parametrize("world", [-1, 2])
def test_worlds_that_do_not_exist(call, world):
    with pytest.raises(WorldIndexError, match=f"world: expected an index from 0 to 1, got {world}") as caught:
        call(Session(ROOM, 2), world)
    assert isinstance(caught.value, NcloneError)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize("indices", [[0], [0, 1, 0], 1, [0.0, 1.0]])
def test_as_many_indices_as_worlds_are_gathered(indices):
    with pytest.raises(WorldIndexError, match="indices: expected 2 integers"):
        Session(ROOM, 2).gather(indices)


@pytest.mark.parametrize(
    ("levels", "message"),
    [(3, "from 0 to 2, got 3"), ([0, -1], "from 0 to 2"), ([0], "expected an integer or 2 integers"), (0.5, "float64")],
)
def test_levels_that_do_not_exist(levels, message):
    with pytest.raises(LevelIndexError, match=message):
        Session(LEVELS, 2).start(levels)


def test_snapshots_of_other_levels_are_refused_and_change_nothing():
    session, other = Session(ROOM), Session(LEVELS)
    other.start(2)
    before = session.snapshot()
    with pytest.raises(SnapshotError, match=r"ninjas.level: expected a level from 0 to 0, got 2"):
        session.restore(other.snapshot())
    one_level = Session(pack([everything()]))
    damaged = bytearray(one_level.snapshot())
    offset = one_level.worlds.ninjas.dtype.fields["level"][1]
    damaged[offset] = 1
    with pytest.raises(SnapshotError, match=r"ninjas\.level: expected a level from 0 to 0, got 1"):
        one_level.restore(bytes(damaged))
    assert session.snapshot() == before
