from __future__ import annotations

import json

import numpy as np
import pytest

from nclone_env.cli import run as command
from nclone_env.env.compiled.records import PLAYING, TIMED_OUT, WON
from nclone_env.errors import ConfigError


class StubVectorEnv:
    """A vector environment without a game, whose episodes take 50 steps; every second one is a success."""

    def __init__(self, num_envs):
        self.num_envs, self.closed, self.steps = num_envs, False, 0

    def reset(self, *, seed=None):
        return {}, {}

    def step(self, actions):
        assert actions.shape == (self.num_envs,)
        self.steps += 1
        done = np.full(self.num_envs, self.steps % 50 == 0)
        success = done & (np.arange(self.num_envs) % 2 == 0)
        info = {"outcome": np.where(success, WON, np.where(done, TIMED_OUT, PLAYING))}
        return {}, np.zeros(self.num_envs), done, np.zeros(self.num_envs, bool), info

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def stub_environment(monkeypatch):
    made = []

    def make(config, count):
        made.append(StubVectorEnv(count))
        return made[-1]

    monkeypatch.setattr(command, "_vector", make)
    return made


def test_headless_prints_throughput_episodes_and_success(capsys, stub_environment):
    assert command.run(headless=True, num_envs=4, steps=100) == 0
    text = capsys.readouterr().out
    assert "4 environments, 100 steps of random actions, seed 0" in text
    assert "environment steps/s" in text
    assert "8 episodes, 4 succeeded (50.0%)" in text  # two episodes of 50 steps in each of four environments
    assert stub_environment[0].closed


def test_a_run_without_finished_episodes_says_so(capsys):
    command.run(headless=True, num_envs=2, steps=10)
    assert "no episode finished; increase --steps" in capsys.readouterr().out


@pytest.mark.usefixtures("frozen_heap")
def test_a_profile_writes_its_reports_and_prints_the_verdict(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("nclone_env.memory.collect.measure_sizes", lambda *arguments: ())
    code = command.run(
        headless=True,
        profile_memory=True,
        profile_frames=200,
        memory_snapshot_interval=20,
        num_envs=3,
        output_dir=tmp_path / "out",
        json=True,
    )
    assert code == 0
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


class OneStub:
    """A single environment whose episodes take 40 steps."""

    def __init__(self, config):
        self.config, self.steps, self.closed = config, 0, False
        OneStub.made = self

    def reset(self, seed=None):
        return {}, {}

    def step(self, action):
        assert isinstance(action, int)
        self.steps += 1
        info = {"outcome": "won", "level": "first-steps/walk"}
        return {}, 0.0, self.steps % 40 == 0, False, info

    def close(self):
        self.closed = True


def test_without_headless_a_window_shows_one_environment(capsys, monkeypatch):
    monkeypatch.setattr(command, "NPlusPlusEnv", OneStub)
    assert command.run(steps=100) == 0
    assert OneStub.made.config.render_mode == "human"
    assert OneStub.made.closed
    text = capsys.readouterr().out
    assert text.splitlines()[:2] == [
        "episode 1: won on first-steps/walk",
        "episode 2: won on first-steps/walk",
    ]


def test_a_profile_with_a_window_is_refused():
    with pytest.raises(ConfigError, match="profile_memory: requires --headless"):
        command.run(profile_memory=True)


@pytest.mark.parametrize("numbers", [{"num_envs": 0}, {"steps": 0}])
def test_options_out_of_range_are_refused(numbers):
    with pytest.raises(ConfigError, match="at least 1, got"):
        command.run(headless=True, **numbers)


def test_episodes_are_counted_when_they_end():
    episodes = command.Episodes()
    terminated, truncated = np.array([True, False, False]), np.array([False, False, True])
    episodes.add(terminated, truncated, {"outcome": np.array([WON, PLAYING, TIMED_OUT])})
    assert (episodes.finished, episodes.succeeded) == (2, 1)
