"""The success table, the plot of the learning curve, the pictures of an episode."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.train.collect.evaluate import LevelResult
from nclone_env.train.reports import report


def result(level, mode, rate):
    best = 88 if rate == 1 else None
    return LevelResult(level, mode, 100, rate, (1 - rate) / 2, 1.0, 200.0, best, rate > 0, np.zeros(3, np.int8))


def test_table():
    results = {
        "sampled": [result("the drop", "sampled", 0.97), result("b", "sampled", 1.0)],
        "random": [result("the drop", "random", 0.0), result("b", "random", 0.02)],
    }
    assert report.success_table(results, {"b": 80}).splitlines() == [
        "level      sampled    random    deaths    frames  best win     known",
        "the drop     97.0%      0.0%      1.5%       200         -         -",
        "b           100.0%      2.0%      0.0%       200        88        80",
        "mean         98.5%      1.0%      0.8%",
        "100 episodes per level; deaths and frames of sampled ones",
    ]


def test_results_as_a_file(tmp_path):
    results = {"sampled": [result("a, b", "sampled", 1.0)], "random": [result("a, b", "random", 0.25)]}
    report.write_results(results, 5000, tmp_path / "evaluation.csv")
    assert (tmp_path / "evaluation.csv").read_text().splitlines() == [
        "timesteps,level,mode,episodes,success_rate,death_rate,mean_return,mean_frames,best_frames",
        '5000,"a, b",sampled,100,1.0,0.0,1.0,200.0,88',
        '5000,"a, b",random,100,0.25,0.375,1.0,200.0,',
    ]


def test_table_with_attempts_and_held_out_levels():
    results = {
        "sampled": [result("the drop", "sampled", 0.5), result("b", "sampled", 0.0), result("c", "sampled", 0.02)],
        "random": [result(name, "random", 0.0) for name in ("the drop", "b", "c")],
    }
    lines = report.success_table(results, {}, attempts=2, held_out=(False, True, True)).splitlines()
    assert lines[0] == "level              sampled    random  any of 2    deaths    frames  best win     known"
    # 1 - 50 * 49 / (100 * 99) and 1 - 98 * 97 / (100 * 99)
    assert lines[1:4] == [
        "the drop             50.0%      0.0%     75.3%     25.0%       200         -         -",
        "b                     0.0%      0.0%      0.0%     50.0%       200         -         -  held out",
        "c                     2.0%      0.0%      4.0%     49.0%       200         -         -  held out",
    ]
    assert lines[4:7] == [
        "mean                 17.3%      0.0%     26.4%     41.3%",
        "mean, trained on     50.0%      0.0%     75.3%     25.0%",
        "mean, held out        1.0%      0.0%      2.0%     49.5%",
    ]
    assert "trained on" not in report.success_table(results, {}, 2, (False, False, False))


def test_any_of_all_episodes_is_whether_one_succeeded():
    assert [result("a", "sampled", rate).any_of(100) for rate in (0.0, 0.01)] == [0.0, 1.0]
    assert result("a", "sampled", 0.25).any_of(1) == 0.25
    with pytest.raises(ConfigError, match="attempts: expected a whole number from 1 to 100, got 101"):
        result("a", "sampled", 0.5).any_of(101)
