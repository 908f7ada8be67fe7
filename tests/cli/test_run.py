from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from nclone_env.cli import run as command
from nclone_env.cli.app import main
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING, DEAD
from nclone_env.sim.trajectory import simulate

SMALL = EnvironmentConfig(levels=("first-steps/01-walk", "first-steps/06-hop"))


def test_headless_prints_the_speed(capsys):
    words = "--num-envs 4 --steps 10 --levels first-steps --observations game_state --seed 5"
    assert main(["run", "--headless", *words.split()]) == 0
    text = capsys.readouterr().out
    assert "4 environments, 10 steps of random actions, seed 5" in text
    assert "environment steps/s" in text


@pytest.mark.usefixtures("frozen_heap")
def test_a_profile_writes_its_reports_and_prints_the_verdict(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("nclone_env.memory.passes.measure_sizes", lambda *arguments: ())
    words = "--headless --profile-memory --profile-frames 200 --memory-snapshot-interval 20 --num-envs 3 --json"
    assert main(["run", *words.split(), "--output-dir", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    texts = {"memory_profiling_report.txt", "profiling_stats.txt"}
    assert names == texts | {"memory_profiling_report.json", "profiling_stats.prof"}
    text = capsys.readouterr().out
    assert "FLAT" in text
    assert str(tmp_path / "out" / "profiling_stats.txt") in text
    content = json.loads((tmp_path / "out" / "memory_profiling_report.json").read_text())
    assert (content["settings"]["num_envs"], len(content["traced"])) == (3, 11)
    assert ["levels", "first-steps"] in content["facts"]
    assert ["autoreset", "same-step"] in content["facts"]


def test_without_headless_a_window_shows_random_play_on_each_level(monkeypatch):
    shown = []
    monkeypatch.setattr(command, "show", lambda views: shown.append(views))
    assert command.run(levels=SMALL.levels, steps=100, seed=3) == 0
    views = [list(itertools.islice(view, 2)) for view in shown[0].endless()]
    first, second = ([view[number].inputs for view in views] for number in (0, 1))
    assert len(first) == 2
    assert first != second
    assert first == [run.inputs for run in command.random_runs(SMALL, 100, 3)]


def test_random_actions_are_held_and_an_episode_ends_with_its_end():
    level = "hazards/01-mind-the-mine"
    (run,) = command.random_runs(EnvironmentConfig(levels=(level,)), 1000, 0)
    states = simulate(run.level, run.inputs).state
    assert states[-1] in (DEAD, CELEBRATING)
    assert not np.isin(states[:-1], (DEAD, CELEBRATING)).any()
    assert len(run.inputs) < 4000
    held = np.array(run.inputs[: len(run.inputs) // 4 * 4]).reshape(-1, 4)
    assert (held == held[:, :1]).all()


def test_a_profile_with_a_window_is_refused():
    with pytest.raises(ConfigError, match="profile_memory: requires --headless"):
        command.run(profile_memory=True)


@pytest.mark.parametrize("numbers", [{"num_envs": 0}, {"steps": 0}])
def test_options_out_of_range_are_refused(numbers):
    with pytest.raises(ConfigError, match="at least 1, got"):
        command.run(headless=True, **numbers)
