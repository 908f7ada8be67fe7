"""Worlds in another process, bytes that nothing writes, and what death changes; equal futures: tests/sim."""

import numpy as np
import pytest

from nclone_env.game import CELEBRATING, DEAD, DYING
from nclone_env.level.build import build_room
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

from ..processes import run_module
from ..sim.bases import JUMP, RIGHT, SUICIDE
from ..sim.hashing import run_hash

ENTITIES = ["gold 44 58", "mine 120 58", "exit 90 58", "exit_switch 60 58", "gold 50 56"]


def random_inputs(seed: int, frames: int) -> bytes:
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, 8, frames // 4 + 1, np.uint8), 4)[:frames].tobytes()


def test_a_fresh_process_gives_the_same_hash():
    assert run_module("tests.sim.hashing", "400")[0] == run_hash(400)
    assert run_hash(400) != run_hash(399)


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
