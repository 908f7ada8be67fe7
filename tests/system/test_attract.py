"""Recordings of the real game: they must end as the game said they end."""

from pathlib import Path

import numpy as np
import pytest

from nclone_env.game import DEAD, DYING, INPUT_SUICIDE, LASER_TURRET
from nclone_env.level.formats.attract import AttractFile, read_attract
from nclone_env.sim.session import Session
from nclone_env.sim.trajectory import simulate

from ..golden.values import FRAME_TABLES, REPLAYS
from ..shared import ATTRACT, SHARED, needs_shared
from ..sim.bases import motion_crc

pytestmark = needs_shared

WITHOUT_LASERS = {"19"}  # in the checksums, not in the game: one kills in the last frame


def read(path: Path) -> AttractFile:
    return read_attract(path.read_bytes(), str(path))


def flagged(inputs: np.ndarray) -> np.ndarray:
    return np.flatnonzero(inputs & INPUT_SUICIDE)


@pytest.mark.parametrize("path", ATTRACT, ids=lambda path: path.name)
def test_the_recording_ends_in_death_at_the_right_frame(path):
    file = read(path)
    run = simulate(path, file.inputs, entities=True)
    assert len(run) == len(file.inputs)
    assert np.isfinite([run.x, run.y, run.xspeed, run.yspeed]).all()
    state = run.state
    flags = flagged(file.inputs)
    if len(flags) == 0:
        assert state[-1] == DEAD
        assert (state[:-1] < 6).all()
    else:
        first = flags[0]
        assert (state[:first] < 6).all()
        assert state[first] == DYING
        assert state[first + 1] == DEAD


@pytest.mark.parametrize("path", ATTRACT, ids=lambda path: path.name)
def test_without_its_last_seconds_the_recording_does_not_end_in_death(path):
    """The negative control: standing still instead of playing on must not give the same end."""
    file = read(path)
    half = len(file.inputs) // 2
    idle = np.concatenate([file.inputs[:half], np.zeros(len(file.inputs) - half, np.uint8)])
    assert motion_crc(simulate(file.level, idle)) != motion_crc(simulate(file.level, file.inputs))


def test_a_laser_kills_at_the_right_frame():
    """The turret turns after it has shot: with the angle after the turn the ninja would die a frame earlier."""
    path = SHARED / "attract" / "19"
    if not path.exists():
        pytest.skip("attract file 19 is not here")
    file = read(path)
    session = Session(file.level)
    ninjas = session.record(file.inputs).ninjas
    assert ninjas["state"].tolist().index(DEAD) == 709
    assert set(session.entities()["type"]) >= {LASER_TURRET}
    frames, _, gold, x, y, _ = REPLAYS[19]
    assert (len(ninjas), ninjas["gold"][-1], ninjas["x"][-1], ninjas["y"][-1]) == (frames, gold, x, y)


@pytest.mark.parametrize(
    "path", [path for path in ATTRACT if path.name not in WITHOUT_LASERS], ids=lambda path: path.name
)
def test_checksum(path):
    file = read(path)
    frames, state, gold, x, y, crc = REPLAYS[int(path.name)]
    run = simulate(file.level, file.inputs)
    flags = flagged(file.inputs)
    assert frames == (flags[0] if len(flags) else len(file.inputs))
    last = frames - 1
    assert (run.state[last], run.gold[last], run.x[last], run.y[last]) == (state, gold, x, y)
    assert motion_crc(run, frames) == crc


@pytest.mark.parametrize("number", FRAME_TABLES)
def test_frame_by_frame(number):
    path = SHARED / "attract" / str(number)
    if not path.exists():
        pytest.skip(f"attract file {number} is not here")
    file = read(path)
    run = simulate(file.level, file.inputs)
    for frame, (code, state, airborne, values) in FRAME_TABLES[number].items():
        row = frame - 1
        assert (file.inputs[row], run.state[row], run.airborne[row]) == (code, state, airborne)
        motion = (run.x[row], run.y[row], run.xspeed[row], run.yspeed[row])
        assert motion == tuple(float.fromhex(value) for value in values.split()), frame
