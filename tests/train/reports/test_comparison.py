"""Runs side by side: groups, means over seeds, tables."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.train.reports.comparison import (
    RunGroup,
    RunRecord,
    by_levels,
    comparison_table,
    group_runs,
    level_table,
    selected,
    statistics_table,
    write_csv,
)
from nclone_env.train.reports.statistics import interval

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
        "levels jumps, x, death -2.0, new None",
        "levels jumps, death -1.0, new None",
        "levels jumps, death -1.0, new 3",
    ]
    assert title == "several level sets"
    assert [each.label for each in group_runs([record(0), record(1)])[0]] == ["all runs"]


def test_groups_are_in_the_order_of_numbers():
    rates = (0.01, 0.0002, None, 0.03)
    groups, _ = group_runs([record(0, learning_rate=rate) for rate in rates])
    assert [each.label.split()[1] for each in groups] == ["None", "0.0002", "0.01", "0.03"]


def test_values_are_shown_in_full_so_that_every_row_names_its_group():
    """Rows are parsed: their labels are the values that differ."""
    start, observations = "levels/" + "x" * 80, ["game_state", "player_frame", "global_view"]
    options = [
        {"total_timesteps": steps, "learning_rate": rate, "observations": observations[:count]}
        for steps in (120_000, 2_000_000)
        for rate in (0.001, 0.0010001)
        for count in (1, 3)
    ]
    groups, _ = group_runs([record(0, **each) for each in options])
    for text in (comparison_table(groups), statistics_table(groups, 0.9)):
        labels = [row.split("  ")[0] for row in text.splitlines()[1:]]
        assert labels == [
            f"learning_rate {each['learning_rate']}, total_timesteps {each['total_timesteps']}, "
            f"observations {', '.join(each['observations'])}"
            for each in sorted(options, key=lambda each: each["learning_rate"])
        ]
    assert all(each.label in level_table(groups) for each in groups)
    groups, _ = group_runs([record(0, levels=[f"{start}{end}"]) for end in "ab"] + [record(1, levels=[f"{start}a"])])
    assert [(each.label, len(each.runs)) for each in groups] == [(f"levels {start}a", 2), (f"levels {start}b", 1)]


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


def test_statistics():
    runs = [record(0), record(1, rate=0.9), record(2, rate=0.7, last=400), record(3, rate=0.8, evaluated=False)]
    groups = [RunGroup("lr 1", runs), RunGroup("lr 2", [record(0)]), RunGroup("lr 3", [record(0, evaluated=False)])]
    rates = np.array([[0.5, 0.0], [0.9, 0.0], [0.7, 0.0]])
    low, high = interval(rates)
    head, *rows = statistics_table(groups, 0.7).splitlines()
    assert head.split("  ")[0] == "runs"
    assert head.endswith("reached 70%  timesteps  seconds")
    # the rows of a run end after 100, 200 and 300 or 400 timesteps, at 1,000, 3,000 and 2,000 a second
    assert rows[0].split() == ["lr", "1", "30.0%", f"({low:.1%}-{high:.1%})", "-", "3", "of", "4", "333", "0.2"]
    assert rows[1].split() == ["lr", "2", "25.0%", "-", "0", "of", "1", "-", "-"]
    assert rows[2].split() == ["lr", "3", "-", "-", "0", "of", "1", "-", "-"]


def test_success_on_held_out_levels_is_what_counts_if_there_are_any():
    run = record(0, rate=0.9)
    assert run.reached(0.9) == (300, pytest.approx(0.1 + 100 / 3000 + 0.05))
    run.curve[1]["held_out_success"] = 0.4
    assert run.reached(0.9) is None
    assert run.reached(0.4)[0] == 200


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
    assert level_table([*groups, groups[1]]).splitlines() == [
        "runs              jumps/a  jumps/b",
        "lr 1  70.0% (50.0%-90.0%)     0.0%",
        "lr 2                    -        -",
        "lr 2                    -        -",
    ]


def sweep():
    """Return 20 runs with random learning rates on two sets of levels."""
    draw = np.random.default_rng(0)
    return [
        record(
            0, learning_rate=float(draw.uniform(1e-4, 1e-2)), levels=[f"set-{number % 2}"], gamma=float(draw.random())
        )
        for number in range(20)
    ]


def test_each_set_of_levels_has_groups_named_by_what_differs_there():
    sets = by_levels(sweep())
    assert [(title, len(groups)) for title, groups in sets] == [("set-0", 10), ("set-1", 10)]
    for _, groups in sets:
        for each in groups:
            assert "levels" not in each.label
            digits = [re.sub(r"e.*|[^1-9.]", "", word).strip(".").replace(".", "") for word in each.label.split()]
            assert max(map(len, digits)) <= 3


def test_runs_are_selected_by_their_options():
    runs = [record(0), record(1), record(0, learning_rate=0.01), record(0, levels=["hazards", "jumps"])]
    for conditions, count in (
        ([], 4),
        (["learning_rate=0.01"], 1),
        (["learning-rate = 0.001"], 3),
        (["levels=hazards"], 1),
        (["levels=jumps", "seed=0"], 3),
        (["death=-1.0"], 4),
        (["death=3"], 0),
    ):
        assert len(selected(runs, conditions)) == count
    for wrong in ("learning_rates=1", "0.01"):
        with pytest.raises(ConfigError, match=f"where: expected OPTION=VALUE .*, got '{wrong}'"):
            selected(runs, [wrong])


def test_values_are_written_with_all_digits(tmp_path):
    write_csv([("jumps", [RunGroup("lr", [record(0, rate=1 / 3), record(1)])])], tmp_path / "x.csv")
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    (training,) = [row for row in rows if row["column"] == "success_rate"]
    assert (float(training["least"]), float(training["most"])) == (1 / 3, 0.5)
    assert {row["column"] for row in rows} == {"sampled", "sampled iqm", "random", "success_rate", "mean_return"}
    (robust,) = [row for row in rows if row["column"] == "sampled iqm"]
    assert float(robust["mean"]) == pytest.approx((0 + 1 / 3) / 2)
