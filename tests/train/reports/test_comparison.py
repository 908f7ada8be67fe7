"""Runs side by side: groups, means over seeds, tables."""

from pathlib import Path

import numpy as np
import pytest

from nclone_env.train.reports.comparison import RunGroup, RunRecord, comparison_table, group_runs, level_table

CONFIG = {"levels": ["jumps"], "learning_rate": 0.001, "reward": {"death": -1.0, "gamma": 0.99}, "name": ""}


def record(seed, rate=0.5, last=300, evaluated=True, **changes):
    curve = [
        {"timesteps": 100, "success_rate": float("nan"), "mean_return": float("nan"), "steps_per_second": 1000.0},
        {"timesteps": 200, "success_rate": 0.0, "mean_return": 1.0, "steps_per_second": 3000.0},
        {"timesteps": last, "success_rate": rate, "mean_return": 2.0, "steps_per_second": 2000.0},
    ]
    success = {"sampled": {"jumps/a": rate, "jumps/b": 0.0}, "random": {"jumps/a": 0.25, "jumps/b": 0.0}}
    return RunRecord(Path("runs"), {**CONFIG, "seed": seed, **changes}, curve, success if evaluated else {})


def group(*runs):
    return RunGroup("all runs", runs)


def test_seeds_are_one_group_and_other_options_make_another():
    runs = [record(0), record(1, num_threads=2), record(0, learning_rate=0.01), record(2, name="x")]
    groups, title = group_runs(runs)
    assert [(each.label, len(each.runs)) for each in groups] == [("learning_rate 0.001", 3), ("learning_rate 0.01", 1)]
    assert title == "jumps"


def test_only_what_differs_is_in_the_label():
    runs = [record(0), record(0, levels=["jumps", "x"], reward={"death": -2.0, "gamma": 0.99}), record(0, new=3)]
    groups, title = group_runs(runs)
    assert [each.label for each in groups] == [
        "levels jumps, death -1.0, new None",
        "levels jumps, x, death -2.0, new None",
        "levels jumps, death -1.0, new 3",
    ]
    assert title == "several level sets"
    assert [each.label for each in group_runs([record(0), record(1)])[0]] == ["all runs"]


def test_long_values_are_told_apart():
    start = "levels/" + "x" * 80
    groups, _ = group_runs([record(0, levels=[f"{start}{end}"]) for end in "ab"] + [record(1, levels=[f"{start}a"])])
    assert [len(each.runs) for each in groups] == [2, 1]
    assert [each.label[-3:] for each in groups] == [" #1", " #2"]


def test_bands_reach_as_far_as_all_runs_and_begin_where_values_are_known():
    band = group(record(0, rate=0.5), record(1, rate=1.0, last=400)).band("success_rate")
    assert band.timesteps[[0, -1]].tolist() == [200.0, 300.0]
    assert band.mean[[0, -1]].tolist() == [0.0, 0.5]  # the second run is at 1.0 / 2 by then
    assert band.least[-1] == 0.5
    assert band.most[-1] == 0.5
    middle = np.searchsorted(band.timesteps, 250.0)
    assert band.mean[middle] == pytest.approx(0.25, abs=0.01)
    uneven = group(record(0, rate=0.2), record(1, rate=0.8)).band("success_rate")
    assert (uneven.least[-1], uneven.most[-1]) == (0.2, 0.8)


def test_runs_in_which_no_episode_has_ended():
    young = record(0)
    young.curve[:] = young.curve[:1]
    assert [len(array) for array in group(young).band("mean_return")] == [0, 0, 0, 0]
    assert group(young, record(1)).band("mean_return").mean[-1] == 2.0
    assert group(young, record(1)).last("mean_return") is None


def test_table():
    groups = [RunGroup("lr 1", [record(0), record(1, rate=0.9)]), RunGroup("lr 2", [record(0, evaluated=False)])]
    assert comparison_table(groups).splitlines() == [
        "runs  seeds  timesteps              sampled  random             training  return  steps/s",
        "lr 1      2        300  35.0% (25.0%-45.0%)   12.5%  70.0% (50.0%-90.0%)    2.00    2,000",
        "lr 2      1        300                    -       -                50.0%    2.00    2,000",
    ]


def test_seeds_without_an_evaluation_do_not_hide_those_with_one():
    mixed = group(record(0, rate=0.5), record(1, rate=0.9, evaluated=False))
    assert mixed.success("sampled") == (0.25, 0.25, 0.25)
    assert mixed.success("argmax") is None


def test_levels():
    groups = [RunGroup("lr 1", [record(0), record(1, rate=0.9)]), RunGroup("lr 2", [record(0, evaluated=False)])]
    assert level_table(groups).splitlines() == [
        "level                   lr 1  lr 2",
        "jumps/a  70.0% (50.0%-90.0%)     -",
        "jumps/b                 0.0%     -",
    ]
    assert level_table(groups[1:]) == ""
