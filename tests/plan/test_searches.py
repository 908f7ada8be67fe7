"""Rounds: the same result with any number of threads, and however often a search is interrupted."""

from functools import cache

import numpy as np
import pytest

from nclone_env.errors import ConfigError, FormatError
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.plan.searches import Rounds
from nclone_env.plan.solver import POLISHED, SHORTER, TUBE, solve

from .test_task import LEVEL as GOLD_LEVEL

LEVEL = "jumps/03-islands"
BUDGET = 700_000


def outcome(level=LEVEL, frames=BUDGET, **arguments):
    """Return all that must not depend on threads and interruptions."""
    best = solve(level, frames=frames, **arguments)
    return best.inputs.tobytes(), best.simulated, best.stage, best.gold, dict(best.won)


@cache
def undisturbed(seed=0):
    return outcome(seed=seed)


@pytest.mark.parametrize("objective", ["time", "score", "all-gold"])
def test_threads_do_not_change_the_result(objective):
    level = LEVEL if objective == "time" else GOLD_LEVEL
    one = outcome(level, objective=objective)
    assert one == outcome(level, objective=objective, threads=2) == outcome(level, objective=objective, threads=4)
    assert one != outcome(level, objective=objective, seed=1)


@pytest.mark.parametrize("cuts", [(10_000,), (3, 90_001, 400_000), (650_000, 690_000)])
def test_a_resumed_search_ends_as_one_that_was_not_interrupted(tmp_path, cuts):
    file = tmp_path / "one.search.npz"
    for frames in cuts:
        solve(LEVEL, frames=frames, resume=file)
    resumed = outcome(resume=file)
    assert resumed == undisturbed()
    assert resumed != undisturbed(seed=1)
    assert outcome(resume=file, threads=2) == resumed  # nothing is left of the budget


def test_a_search_that_was_stopped_at_any_moment_can_be_resumed(tmp_path):
    file = tmp_path / "one.search.npz"
    for calls in (3, 8, 20, 50):
        left = iter(range(calls))
        solve(LEVEL, frames=BUDGET, resume=file, stop=lambda left=left: next(left, None) is None)
    assert outcome(resume=file) == undisturbed()


def test_thinned_archives_are_saved_and_do_not_depend_on_threads(tmp_path):
    """The first one is full after a few thousand frames; the level has no way to the exit."""
    file, walls = tmp_path / "one.search.npz", {(column, 14): "#" for column in range(1, 43)}
    level = build_level("exit 20 80", "exit_switch 40 40", "shove_thwump 60 54", spawn=(20, 54), tiles=walls)
    arguments = {"frames": 300_000, "memory": 1_500_000}
    for frames in (90_000, 200_001):
        solve(level, frames=frames, memory=1_500_000, resume=file)
    solve(level, resume=file, **arguments)
    whole = tmp_path / "whole.search.npz"
    solve(level, resume=whole, threads=2, **arguments)
    with np.load(file) as one, np.load(whole) as other:
        assert one.files == other.files
        assert one["0 search"]["thinned"] > 0
        differing = [name for name in one.files if name != "text" and (one[name] != other[name]).any()]
    assert not differing


def test_a_search_with_a_careful_guide_is_resumed(tmp_path):
    """The switch of the door bars the way to it, so no state beyond it is kept."""
    door = "trap_door 100 62 0\ntrap_door_switch 60 62"
    tiles = hall_tiles((2, 40), (15, 15))
    level = build_level("exit 130 62", "exit_switch 120 62", door, tiles=tiles, spawn=(40, 62))
    file, whole = tmp_path / "one.search.npz", tmp_path / "whole.search.npz"
    for frames in (50_000, 120_000, 200_000):
        solve(level, frames=frames, memory=20_000_000, resume=file)
    solve(level, frames=200_000, memory=20_000_000, resume=whole, threads=2)
    with np.load(file) as one, np.load(whole) as other:
        assert (one["0 cells"]["visits"] > 1_000_000).any()
        assert not [name for name in one.files if name != "text" and (one[name] != other[name]).any()]


def test_an_interrupted_search_is_saved(tmp_path):
    def interrupt(found):
        raise KeyboardInterrupt

    file = tmp_path / "one.search.npz"
    solve(LEVEL, frames=BUDGET, resume=file, on_solution=interrupt)
    assert outcome(resume=file) == undisturbed()


def test_the_seconds_of_all_calls_are_added(tmp_path):
    file, ticks = tmp_path / "one.search.npz", iter(range(100_000))
    first = solve(LEVEL, frames=20_000, resume=file, clock=lambda: next(ticks))
    second = solve(LEVEL, frames=40_000, resume=file, clock=lambda: next(ticks))
    assert second.seconds > first.seconds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": 1}, "seed: expected 1 as in this call, got 0"),
        ({"objective": "score"}, "objective: expected 'score' as in this call, got 'time'"),
        ({"max_frames": 300}, "max_frames: expected 300 as in this call, got 5400"),
        ({"memory": 10**8}, "memory: expected 100000000 as in this call, got 600000000"),
    ],
)
def test_the_file_of_another_search_is_rejected(tmp_path, arguments, message):
    file = tmp_path / "one.search.npz"
    solve(LEVEL, frames=10_000, resume=file)
    with pytest.raises(FormatError) as caught:
        solve(LEVEL, frames=10_000, resume=file, **arguments)
    assert message in str(caught.value)
    with pytest.raises(FormatError, match="level: expected"):
        solve("jumps/01-stairs", frames=10_000, resume=file)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:1000], lambda data: b"x" + data[1:]])
def test_a_damaged_file_is_rejected(tmp_path, damage):
    file = tmp_path / "one.search.npz"
    solve(LEVEL, frames=10_000, resume=file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(
        FormatError, match=r"one.search.npz: file: expected the file of a search that 'solve' has saved"
    ):
        solve(LEVEL, frames=10_000, resume=file)


def test_the_number_of_threads_is_checked():
    with pytest.raises(ConfigError, match="threads: expected a whole number of at least 1, got 0"):
        solve(LEVEL, frames=10, threads=0)


class Counting:
    """A search that simulates exactly what it is asked to."""

    stage = "counting"

    def __init__(self, weight):
        self.weight, self.simulated, self.calls = weight, 0, []

    def advance(self, until, stop):
        self.calls.append(until)
        if not stop():
            self.simulated = max(self.simulated, until)


def test_a_round_is_shared_by_weight_and_ends_when_all_have_played():
    searches = [Counting(2), Counting(1)]
    rounds = Rounds(searches, 1)
    assert rounds.play(np.inf, lambda: False)
    assert [search.simulated for search in searches] == [10_000, 5_000]
    rounds.number += 1
    assert not rounds.play(3_000, lambda: False)
    assert [search.simulated for search in searches] == [12_000, 6_000]
    assert not rounds.play(np.inf, lambda: True)
    assert rounds.play(np.inf, lambda: False)
    assert [search.simulated for search in searches] == [30_000, 15_000]


def test_the_first_search_may_play_alone_at_first():
    searches = [Counting(2), Counting(1)]
    rounds = Rounds(searches, 2, alone=2)
    shares = []
    for _ in range(3):
        assert rounds.play(np.inf, lambda: False)
        rounds.number += 1
        shares.append([search.simulated for search in searches])
    rounds.close()
    assert shares == [[10_000, 0], [30_000, 0], [70_000, 5_000]]


def test_frames_won_add_up():
    reported = []
    best = solve(LEVEL, frames=BUDGET, on_solution=reported.append)
    assert sum(best.won.values()) == reported[0].frames - best.frames
    assert set(best.won) <= {SHORTER, TUBE, POLISHED}
