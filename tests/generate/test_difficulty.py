"""The number that sums up the difficulty."""

from dataclasses import replace

import pytest

from nclone_env.generate.difficulty import Difficulty

MIDDLE = Difficulty(effort=20_000, shortest=600, random_wins=5, random_runs=256, clearance=100)


def test_the_ends_of_the_scale():
    assert Difficulty(effort=100, shortest=60, random_wins=64, random_runs=64, clearance=10_000).number == 0
    assert Difficulty(effort=10**7, shortest=3600, random_wins=0, random_runs=64, clearance=0).number == 100


@pytest.mark.parametrize(
    ("change", "is_harder"),
    [
        ({"effort": 40_000}, True),
        ({"effort": 10_000}, False),
        ({"shortest": 900}, True),
        ({"shortest": 300}, False),
        ({"random_wins": 0}, True),
        ({"random_wins": 25}, False),
        ({"clearance": 10}, True),
        ({"clearance": 230}, False),
    ],
)
def test_every_part_counts(change, is_harder):
    other = replace(MIDDLE, **change).number
    assert other > MIDDLE.number if is_harder else other < MIDDLE.number


def test_the_middle_of_the_scale_by_hand():
    level = Difficulty(effort=32_000, shortest=480, random_wins=0, random_runs=64, clearance=10_000)
    assert level.number == 45 // 2 + int(35 * 2 / 4.32) + 10  # 4 of 8 doublings, 2 of 4.3, no random win


@pytest.mark.parametrize(("wins", "runs", "is_rare"), [(0, 64, True), (3, 64, True), (4, 64, False), (12, 256, True)])
def test_random_play_is_rare_below_5_percent(wins, runs, is_rare):
    assert replace(MIDDLE, random_wins=wins, random_runs=runs).random_is_rare == is_rare
