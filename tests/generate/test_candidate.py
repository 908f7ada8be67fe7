"""Train and held-out levels never mix, and whatever is placed matters, on levels made by hand."""

import numpy as np
import pytest

from nclone_env.game import LOCKED_DOOR, ONE_WAY, ZAP_DRONE
from nclone_env.generate import HELD_OUT_SPLIT, TRAIN_SPLIT
from nclone_env.generate.candidate import added_records, groups_of, shows, split_of, trim, without_group
from nclone_env.generate.runs import least_clearance, play_out, random_wins, same_course
from nclone_env.level import build_level, hall_tiles, pack
from nclone_env.level.build import mirrored_tiles as mirrored
from nclone_env.plan import Edits, first_solution, make_task, shorter_solution, wins_at_end


def random_tiles(seed):
    return np.random.default_rng(seed).integers(0, 38, (23, 42)).astype(np.uint8)


def test_both_splits_are_as_large():
    splits = [split_of(random_tiles(seed)) for seed in range(200)]
    assert {*splits} == {TRAIN_SPLIT, HELD_OUT_SPLIT}
    assert 70 < splits.count(TRAIN_SPLIT) < 130


@pytest.mark.parametrize("seed", range(3))
def test_a_mirror_image_is_in_the_same_split(seed):
    tiles = random_tiles(seed)
    assert split_of(mirrored(tiles)) == split_of(tiles)
    assert not np.array_equal(mirrored(tiles), tiles)


CORRIDOR = hall_tiles((2, 30), (10, 10))
ENDS = ("exit 118 42", "exit_switch 100 43")
LOCK = "locked_door 60 42\nlocked_door_switch 12 43"


def corridor(*entities, tiles=CORRIDOR, spawn=(30, 42)):
    return build_level(*ENDS, *entities, tiles=tiles, spawn=spawn)


def trimmed(level, blocked=None):
    task = make_task(level)
    found = first_solution(task, 200_000, 1)
    assert len(found.inputs)
    best = Edits(task, shorter_solution(task, found.inputs, 40_000, 1), 1).spend(20_000)
    return trim(level, task, best, blocked or {}, 1)


def kinds(level):
    return set(level.raw.records[:, 0].tolist())


def test_a_door_across_the_way_is_kept_with_a_run_that_shows_why():
    level = corridor(LOCK)
    result = trimmed(level)
    assert result.removed == ()
    [(group, inputs)] = result.witnesses
    assert [record[0] for record in group] == [LOCKED_DOOR, LOCKED_DOOR + 1]
    assert not wins_at_end(play_out(pack([level]), inputs))
    assert wins_at_end(play_out(pack([without_group(level, group)]), inputs))


def test_a_door_that_is_not_on_the_way_is_removed():
    tiles = hall_tiles((2, 30), (10, 10))
    tiles[8, 27:29] = 0  # a niche behind the exit, which the door closes
    result = trimmed(corridor("locked_door 118 40 2\nlocked_door_switch 12 43", tiles=tiles))
    assert [record[0] for record in result.removed] == [LOCKED_DOOR, LOCKED_DOOR + 1]
    assert LOCKED_DOOR not in kinds(result.level)
    assert wins_at_end(play_out(pack([result.level]), result.inputs))


def test_a_drone_far_from_the_way_is_removed():
    tiles = hall_tiles((2, 30), (10, 10))
    tiles[1:4, 34:40] = 0
    result = trimmed(corridor("zap_drone 146 12", tiles=tiles))
    assert [record[0] for record in result.removed] == [ZAP_DRONE]
    assert result.witnesses == ()


def test_entities_of_a_kind_may_count_as_one():
    level = corridor("zap_drone 40 42", "zap_drone 80 42", LOCK, "locked_door 70 42\nlocked_door_switch 16 43")
    assert [len(group) for group in groups_of(level)] == [1, 1, 2, 2]
    assert [len(group) for group in groups_of(level, by_kind=True)] == [2, 2, 2]


def test_a_bounce_block_that_pushes_the_ninja_is_kept():
    result = trimmed(corridor("bounce_block 70 42", tiles=hall_tiles((2, 30), (7, 10))))
    assert result.removed == () or len(result.witnesses) == 0
    assert len(result.removed) + len(result.witnesses) == 1


def test_a_run_known_to_be_blocked_is_enough():
    level, without = corridor(LOCK), corridor()
    group = added_records(without, level)
    task = make_task(without)
    blocked = first_solution(task, 200_000, 1).inputs
    result = trimmed(level, {group: blocked})
    assert result.witnesses[0][1] is blocked


def test_a_run_that_is_the_same_without_shows_nothing():
    level = corridor("gold 60 42", LOCK.replace("60 42", "122 42"))
    group = groups_of(level)[0]
    run = first_solution(make_task(level), 200_000, 1).inputs
    assert not shows(level, pack([level]), group, run)
    assert not shows(level, pack([level]), group, np.zeros(30, np.uint8))


def test_adjoining_platforms_count_as_one_and_gold_and_mines_are_not_checked():
    level = corridor(
        "mine 40 43", "gold 44 42", "one_way 50 40 6", "one_way 54 40 6", "one_way 70 40 6", "toggle_mine 80 43"
    )
    assert [[record[0] for record in group] for group in groups_of(level)] == [[ONE_WAY] * 2, [ONE_WAY]]


def test_records_are_added_and_taken_away_one_by_one():
    one, two = corridor("zap_drone 60 42"), corridor("zap_drone 60 42", "zap_drone 60 42")
    group = added_records(one, two)
    assert [record[0] for record in group] == [ZAP_DRONE]
    assert without_group(two, group).raw.digest == one.raw.digest


def test_courses_are_compared_frame_by_frame():
    level, run = pack([corridor()]), np.full(20, 2, np.uint8)
    other = run.copy()
    other[-2] = 0
    assert same_course(play_out(level, run), play_out(level, run))
    assert not same_course(play_out(level, run), play_out(level, other))


@pytest.mark.parametrize(("mine", "expected"), [("", 10_000), ("mine 30 40", 0), ("mine 36 42", 220)])
def test_the_clearance_to_a_mine(mine, expected):
    level = pack([corridor(*([mine] if mine else []))])
    assert least_clearance(level, np.zeros(3, np.uint8)) == pytest.approx(expected, abs=4)


def test_random_play_completes_what_it_cannot_miss():
    easy, impossible = (pack([corridor(*more)]) for more in ((), ("mine 34 43", "mine 26 43")))
    assert random_wins(easy, 64, 1) > 0
    assert random_wins(impossible, 64, 1) == 0
    assert random_wins(easy, 64, 1) == random_wins(easy, 64, 1) != random_wins(easy, 64, 2)
