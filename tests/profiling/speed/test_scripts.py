"""The benchmarks of speed run, small; nothing is asked about how fast."""

import pytest

from nclone_env.level.build import build_room
from nclone_env.sim.session import Session
from profiling.speed import kinds, packs, pictures, sets, simulator, snapshots, threads

from ..output import lines

LEVEL = "first-steps/06-hop"


@pytest.mark.slow
def test_the_speed_of_the_simulator(capsys, monkeypatch):
    monkeypatch.setattr(simulator, "FRAMES", 500)
    monkeypatch.setattr(simulator, "SAMPLES", 8)
    simulator.main((LEVEL,))
    _, header, row, summary = lines(capsys)
    assert len(row.split()) == len(header.replace("M frames/s", "frames/s").replace("ns a frame:", "").split())
    assert summary.startswith("median")


@pytest.mark.slow
def test_sampled_states_are_those_of_a_run():
    short, long = Session(LEVEL, 4), Session(LEVEL, 6)
    for session in (short, long):
        simulator.sample(session.levels, session.worlds, 1)
    assert short.worlds.ninjas["frame"].tolist() == [37, 74, 111, 111]
    assert [short.hash(world) for world in range(3)] == [long.hash(world) for world in range(3)]


@pytest.mark.slow  # compiles what the speed of the simulator is measured by
def test_the_speed_of_packs(capsys, monkeypatch):
    monkeypatch.setattr(packs, "FRAMES", 500)
    packs.main((LEVEL,), each=True)
    printed = lines(capsys)
    assert printed[0] == f"{LEVEL}: 1 levels"
    assert sum(LEVEL in line for line in printed) > 8
    assert "all: 1 levels" in printed


@pytest.mark.slow  # compiles the same
def test_the_cost_of_kinds(capsys, monkeypatch):
    monkeypatch.setattr(kinds, "FRAMES", 200)
    kinds.main(("hazards",), sample=2)
    assert any(line.split()[:1] == ["mine"] for line in lines(capsys))
    room = build_room("locked_door 44 58", "locked_door_switch 40 58", "gold 50 58")
    assert kinds.without(room, 6).raw.records[:, 0].tolist() == [0, 2]


@pytest.mark.slow
def test_sets_side_by_side(capsys, monkeypatch):
    monkeypatch.setattr(sets, "TURNS", 1)
    monkeypatch.setattr(sets, "WARM_STEPS", 2)
    monkeypatch.setattr(sets, "OBSERVATION_NAMES", ("game_state", "locals"))
    sets.main((LEVEL,), num_envs=4, seconds=0.001, training=0.01)
    rows = [line.split()[0] for line in lines(capsys)[1:]]
    assert rows == ["game_state", "locals", "training", "bytes", "bytes"]


@pytest.mark.slow
def test_the_speed_of_snapshots(capsys, monkeypatch):
    monkeypatch.setattr(snapshots, "CALLS", 2)
    monkeypatch.setattr(snapshots, "ROUNDS", 2)
    snapshots.main((LEVEL,))
    header, row = lines(capsys)
    assert row.split()[0] == LEVEL
    assert row.count(" / ") == len(snapshots.COLUMNS)
    assert "nan" not in row
    assert header.count("us") == 2


@pytest.mark.slow  # compiles the same
def test_the_speed_of_two_threads(monkeypatch):
    monkeypatch.setattr(threads, "FRAMES", 200)
    monkeypatch.setattr(threads, "TURNS", 2)
    row = threads.simulator_row(LEVEL)
    assert row.split()[0] == LEVEL
    assert row.count("best") == 2


@pytest.mark.slow
def test_the_cost_of_pictures(capsys):
    pictures.main(rounds=1)
    assert sum("player_frame" in line and "copy" in line for line in lines(capsys)) == 5 * len(pictures.SCENES)
