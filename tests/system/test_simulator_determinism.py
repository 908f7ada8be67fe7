"""Equal bytes, equal future: twice, in another process, in any batch, from a snapshot; and what death changes."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, DEAD, DYING
from nclone_env.level.build import build_room
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

from ..golden.synthetic import synthetic_map
from ..processes import run_module
from ..sim.bases import JUMP, RIGHT, SUICIDE
from ..sim.hashing import run_hash

ENTITIES = ["gold 44 58", "mine 120 58", "exit 90 58", "exit_switch 60 58", "gold 50 56"]


def random_inputs(seed: int, frames: int) -> bytes:
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, 8, frames // 4 + 1, np.uint8), 4)[:frames].tobytes()


def rows_equal(left, right) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


def test_the_same_inputs_give_the_same_bytes():
    level, inputs = synthetic_map(40, 9)
    assert rows_equal(Session(level).record(inputs), Session(level).record(inputs))


def test_other_inputs_give_other_bytes():
    level, inputs = synthetic_map(40, 9)
    at = inputs.index(0, 500)
    other = inputs[:at] + bytes([RIGHT]) + inputs[at + 1 :]
    ninjas, changed = Session(level).record(inputs).ninjas, Session(level).record(other).ninjas
    assert ninjas[:at].tobytes() == changed[:at].tobytes()
    assert ninjas[at]["vx"] != changed[at]["vx"]


def test_a_fresh_process_gives_the_same_hash():
    assert run_module("tests.sim.hashing", "400")[0] == run_hash(400)
    assert run_hash(400) != run_hash(399)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_worlds_of_a_batch_do_not_influence_each_other(count):
    level = build_room(*ENTITIES)
    alone = [Session(level).record(random_inputs(seed, 200)) for seed in range(count)]
    batch = Session(level, count)
    inputs = [random_inputs(seed, 200) for seed in range(count)]
    for frame in range(0, 200, 10):  # ten frames of one world, then of the next, in changing order
        for index in sorted(range(count), key=lambda world: (world + frame // 10) % count):
            rows = batch.record(inputs[index][frame : frame + 10], index)
            assert rows_equal(rows, [array[frame : frame + 10] for array in alone[index]])


def test_a_restored_snapshot_has_the_same_future():
    level, inputs = build_room(*ENTITIES), random_inputs(4, 400)
    whole = Session(level).record(inputs)
    for frame in range(0, 400, 37):
        first = Session(level, 2)
        first.record(inputs[:frame])
        snapshot = first.snapshot()
        first.record(random_inputs(5, 50))  # leave the place
        first.restore(snapshot)
        assert rows_equal(first.record(inputs[frame:]), [rows[frame:] for rows in whole])
        first.restore(snapshot, world=1)
        assert rows_equal(first.record(inputs[frame:], world=1), [rows[frame:] for rows in whole])


def test_starting_again_leaves_no_trace():
    level, inputs = build_room(*ENTITIES), random_inputs(6, 300)
    session, fresh = Session(level), Session(level)
    session.play(inputs)
    assert session.snapshot() != fresh.snapshot()
    session.start()
    assert session.snapshot() == fresh.snapshot()
    assert rows_equal(session.record(inputs), fresh.record(inputs))


def test_padding_stays_zero():
    """Equal bytes mean an equal future only if no byte of a world is left to chance."""
    session = Session(build_room(*ENTITIES))
    ninjas, states, _ = session.record(random_inputs(7, 300))
    used = np.zeros(ninjas.dtype.itemsize, bool)
    for dtype, offset in ninjas.dtype.fields.values():
        used[offset : offset + dtype.itemsize] = True
    bytes_of_ninjas = ninjas.view(np.uint8).reshape(len(ninjas), -1)
    assert not bytes_of_ninjas[:, ~used].any()
    assert not states[:, len(ENTITIES) :].any()


def test_rows_go_on_after_death():
    run = simulate(build_room("mine 41 58"), bytes([RIGHT]) * 90)
    assert len(run) == 90
    assert (run.state == DEAD).all()
    for column in (run.x, run.y, run.xspeed, run.yspeed):
        assert (column == column[0]).all()


def test_the_dead_ninjas_timers_run_out():
    ninjas = Session(build_room("mine 41 58")).record(bytes([JUMP]) * 20).ninjas
    assert ninjas["jump_buffer"][0] == 0
    assert ninjas["jump_buffer"].tolist()[:7] == [0, 1, 2, 3, 4, 5, -1]
    assert ninjas["frame"].tolist() == list(range(1, 21))


def test_rows_go_on_after_victory():
    run = simulate(build_room("exit 48 58", "exit_switch 40 58"), bytes([RIGHT]) * 200)
    won = np.flatnonzero(run.state == CELEBRATING)[0]
    assert (run.state[won:] == CELEBRATING).all()
    assert run.x[-1] > run.x[won]  # it slides on, and comes to rest
    assert abs(run.xspeed[-1]) < 0.01


def test_the_suicide_bit_kills_at_the_end_of_its_frame():
    quiet, flagged = bytes([RIGHT]) * 40, bytearray([RIGHT]) * 40
    flagged[20] |= SUICIDE
    level = build_room()
    plain, run = simulate(level, quiet), simulate(level, bytes(flagged))
    assert run.state[20] == DYING
    assert (run.state[21:] == DEAD).all()
    assert np.array_equal(run.state[:20], plain.state[:20])
    assert np.array_equal(run.x[:22], plain.x[:22])  # the frame after it still moves
    assert run.x[22] == run.x[21] != plain.x[22]


def test_the_suicide_bit_does_not_stop_the_other_bits():
    level = build_room()
    both = simulate(level, bytes([RIGHT] * 15 + [RIGHT | JUMP | SUICIDE, 0]))
    jump = simulate(level, bytes([RIGHT] * 15 + [RIGHT | JUMP, 0]))
    assert both.yspeed[15] == jump.yspeed[15] == -2.0
    assert both.x[15] == jump.x[15]


@pytest.mark.parametrize("state", [DEAD, CELEBRATING])
def test_the_suicide_bit_has_no_effect_in_final_states(state):
    session = Session(build_room())
    session.ninja["state"] = state
    ninjas = session.record(bytes([SUICIDE]) * 3).ninjas
    assert (ninjas["state"] == state).all()
