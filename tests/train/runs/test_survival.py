"""A run that only learns to stay alive: synthetic curves, those that learn as control, and the hook."""

from types import SimpleNamespace

import numpy as np
import pytest

from nclone_env.train import Hooks, train
from nclone_env.train.collect.episodes import FINISHED, EpisodeStatistics
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.survival import Survival, interval, survival_of

from ..runs import config
from ..stub import LineWorld

FIRST, LAST = 12, 40
"""Number of the first row with a success rate, and of the last one."""


def run_of(tmp_path, rates, frames, entropy, wins, episodes=5000, share=1.0):
    """Return what is judged of a run on ten levels whose values go evenly from the first of each pair to the last."""
    rows = Rows(LAST + 1)
    for number in range(LAST + 1):
        part = max(0.0, (number - FIRST) / (LAST - FIRST))
        values = {
            name: first + part * (last - first)
            for name, (first, last) in {"success_rate": rates, "mean_frames": frames, "entropy": entropy}.items()
        }
        known = values if number >= FIRST else {"entropy": entropy[0]}
        rows.append({"timesteps": number, **known})
    statistics = EpisodeStatistics([str(level) for level in range(10)], window=max(episodes // 10, 1))
    statistics.counts[:] = episodes // 10
    statistics.recent.reshape(-1)["success"][:wins] = True
    settings = config(tmp_path, total_timesteps=100_000)
    counters = SimpleNamespace(timesteps=int(share * settings.total_timesteps))
    return SimpleNamespace(config=settings, counters=counters, curve=SimpleNamespace(rows=rows), statistics=statistics)


SURVIVES = {"rates": (0.008, 0.009), "frames": (409, 859), "entropy": (1.79, 0.73), "wins": 45}


def test_a_run_that_lives_longer_and_hardly_wins(tmp_path):
    found = survival_of(run_of(tmp_path, **SURVIVES))
    assert found == Survival(45, 5000, (409, 859), (1.79, 0.73))
    assert str(found) == (
        "45 of 5,000 recent episodes won (0.7% to 1.2%), hardly more than at first, but they last 859 frames instead "
        "of 409, and the entropy of the policy went from 1.79 to 0.73"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"entropy": (1.79, 1.7)},
        {"frames": (409, 411)},
        {"wins": 0, "rates": (0.0, 0.0)},
        {"wins": 90, "rates": (0.01, 0.018)},
        {"share": 0.25},
        {"wins": 3, "episodes": 200},
    ],
    ids=str,
)
def test_other_runs_that_only_survive(tmp_path, changed):
    assert survival_of(run_of(tmp_path, **{**SURVIVES, **changed})) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"rates": (0.004, 0.03), "wins": 150},
        {"rates": (0.03, 0.08), "wins": 400},
        {"rates": (0.04, 0.05), "wins": 250},
        {"frames": (409, 411), "entropy": (1.79, 1.75)},
        {"share": 0.24},
        {"wins": 0, "episodes": 50},
        {"rates": (float("nan"), float("nan"))},
    ],
    ids=["learns slowly", "learns", "wins now and then", "learns nothing yet", "early", "few episodes", "unknown"],
)
def test_runs_that_learn_or_may_yet(tmp_path, changed):
    assert survival_of(run_of(tmp_path, **{**SURVIVES, **changed})) is None


def test_the_interval_contains_the_rate_and_narrows():
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(0, 100)[0] == 0.0
    assert interval(100, 100)[1] == pytest.approx(1.0, abs=1e-15)  # rounding
    low, high = interval(5, 100)  # Wilson (1927), as tables give it
    assert (round(low, 4), round(high, 4)) == (0.0215, 0.1118)
    assert interval(50, 1000)[1] - interval(50, 1000)[0] < high - low


@pytest.mark.parametrize("survives", [True, False])
def test_the_hook_is_told_once(tmp_path, monkeypatch, survives):
    told: list[Survival] = []
    settings = config(tmp_path, checkpoint_interval=1)
    if survives:
        monkeypatch.setattr("nclone_env.train.loop.survival_of", lambda run: run.counters.updates)
    train(settings, Hooks(on_survival=told.append), make_envs=LineWorld)
    assert told == ([1] if survives else []), "a run that learns is the control"


def test_recent_wins_count_episodes_from_the_start_alone():
    statistics = EpisodeStatistics(("a", "b"), window=3)
    episodes = [(0.0, 9, 0, -1, True)] * 5 + [(0.0, 9, 1, 4, True), (0.0, 9, 1, -1, False)]
    statistics.add(np.array(episodes, FINISHED))
    assert statistics.recent_wins() == (3, 4)
