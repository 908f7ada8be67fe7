"""Every script describes itself, and those that take no time run on small inputs."""

from __future__ import annotations

import importlib
import re

import cv2
import numpy as np
import pytest
import tyro

from nclone_env.actions import INPUT_OF_ACTION
from nclone_env.sim.session import Session
from profiling import pack_speed, simulator_speed, snapshot_speed, thread_scaling
from profiling.__main__ import scripts

from ..processes import REPOSITORY, run_module

LEVEL = "first-steps/06-hop"


def script(name: str):
    """Import a script; skip the test if it needs an extra that is not installed."""
    if name == "cuda_ptx":
        pytest.importorskip("numba_cuda", reason="needs the extra cuda")
    return importlib.import_module(f"profiling.{name}")


def test_the_list_names_every_module_that_is_run():
    run = {path.stem for path in (REPOSITORY / "profiling").glob("*.py") if "__main__" in path.read_text()}
    assert set(scripts()) == run - {"__main__", "__init__"}
    printed = " ".join(run_module("profiling"))
    for name, summary in scripts().items():
        assert f"{name} {summary}" in printed


@pytest.mark.parametrize("name", scripts())
def test_a_script_describes_itself_and_its_arguments(name, capsys):
    module = script(name)
    with pytest.raises(SystemExit, match=r"^0$"):
        tyro.cli(module.main, description=module.__doc__, args=["--help"])
    text = re.sub(r"[\s│]+", " ", capsys.readouterr().out)
    assert scripts()[name].split(":")[0].replace("``", "`").split("`")[0].strip() in text
    for line in re.findall(r"^ {8}\w+: (.*)$", module.main.__doc__, re.MULTILINE):
        assert line.split(";")[0].rstrip(".")[:40] in text


def lines(capsys) -> list[str]:
    """Return what was printed after the line about the machine."""
    first, *rest = capsys.readouterr().out.splitlines()
    assert "Numba" in first
    return rest


@pytest.mark.slow
def test_the_speed_of_the_simulator(capsys, monkeypatch):
    monkeypatch.setattr(simulator_speed, "FRAMES", 500)
    monkeypatch.setattr(simulator_speed, "SAMPLES", 8)
    simulator_speed.main((LEVEL,))
    _, header, row, summary = lines(capsys)
    assert len(row.split()) == len(header.replace("M frames/s", "frames/s").replace("ns a frame:", "").split())
    assert summary.startswith("median")


@pytest.mark.slow
def test_sampled_states_are_those_of_a_run():
    short, long = Session(LEVEL, 4), Session(LEVEL, 6)
    for session in (short, long):
        simulator_speed.sample(session.levels, session.worlds, 1)
    assert short.worlds.ninjas["frame"].tolist() == [37, 74, 111, 111]
    assert [short.hash(world) for world in range(3)] == [long.hash(world) for world in range(3)]


def test_the_speed_of_packs(capsys, monkeypatch):
    monkeypatch.setattr(pack_speed, "FRAMES", 500)
    pack_speed.main((LEVEL,), each=True)
    printed = lines(capsys)
    assert printed[0] == f"{LEVEL}: 1 levels"
    assert sum(LEVEL in line for line in printed) > 8
    assert "all: 1 levels" in printed


@pytest.mark.slow
def test_the_speed_of_snapshots(capsys, monkeypatch):
    monkeypatch.setattr(snapshot_speed, "CALLS", 2)
    monkeypatch.setattr(snapshot_speed, "ROUNDS", 2)
    snapshot_speed.main((LEVEL,))
    header, row = lines(capsys)
    assert row.split()[0] == LEVEL
    assert row.count(" / ") == len(snapshot_speed.COLUMNS)
    assert "nan" not in row
    assert header.count("us") == 2


def test_the_speed_of_two_threads(monkeypatch):
    monkeypatch.setattr(thread_scaling, "FRAMES", 200)
    monkeypatch.setattr(thread_scaling, "TURNS", 2)
    row = thread_scaling.simulator_row(LEVEL)
    assert row.split()[0] == LEVEL
    assert row.count("best") == 2


def test_the_share_of_masked_actions(capsys):
    script("mask_share").main((LEVEL,), steps=4)
    rows = [line.split() for line in lines(capsys)[2:]]
    assert [row[:2] for row in rows] == [["06-hop", "1"], ["06-hop", "4"]]
    assert all(0 <= float(cell) <= 100 for row in rows for cell in row[2:])


def test_training_on_a_device(capsys):
    """Two groups of environments make a transfer back in each of 9 steps, more only where episodes are cut off."""
    script("device_training").main((LEVEL,), updates=2, num_envs=32, num_steps=8)
    policy, header, *rows = lines(capsys)
    assert "policy on the processor; 32 environments x 8 steps" in policy
    assert header.endswith("noticed")
    assert [row.split()[0] for row in rows] == ["collect", "advantages", "update", "all"]
    assert [row.split()[2:] for row in rows] == [
        ["18", "18", "-"],
        ["0", "0", "-"],
        ["1", "10", "-"],
        ["19", "28", "-"],
    ]
    assert all(float(row.split()[1].replace(",", "")) > 0 for row in rows)


@pytest.mark.parametrize("name", ["contact_sheet", "picture_sizes", "readme_picture"])
def test_a_picture_is_drawn(name, tmp_path):
    path = tmp_path / "new" / "picture.png"
    script(name).main(path)
    assert [file.name for file in path.parent.iterdir()] == ["picture.png"]
    picture = cv2.imread(str(path))
    assert len(np.unique(picture)) > 50


def test_a_clip_is_filmed(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="needs the extra video")
    script("entity_clips").main(tmp_path, ("thwump",))
    assert {path.name for path in tmp_path.iterdir()} == {"thwump.mp4", "thwump.png"}


@pytest.mark.slow
def test_the_cost_of_pictures(capsys):
    module = script("render_cost")
    module.main(rounds=1)
    assert sum("player_frame" in line and "copy" in line for line in lines(capsys)) == 5 * len(module.SCENES)


@pytest.mark.slow
def test_levels_are_shared_by_processes(capsys):
    script("shared_levels").main("first-steps", processes=2, environments=2)
    text = "\n".join(lines(capsys))
    assert text.count("  process ") == 2
    assert "without files" in text


def test_a_win_is_cut_at_its_last_frame():
    module = script("find_solutions")
    solution = module.known_solutions()[LEVEL]
    actions = [INPUT_OF_ACTION.index(code) for code in solution]
    assert module.winning_inputs(LEVEL, [*actions, 0, 0, 0], 1) == solution
    assert module.winning_inputs(LEVEL, actions[:-1], 1) is None
