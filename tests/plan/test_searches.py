"""Rounds: the same result with any number of threads, and however often a search is interrupted."""

import numpy as np
import pytest

from nclone_env.plan.searches import Rounds
from nclone_env.plan.solver import POLISHED, SHORTER, TUBE, solve

from .test_task import LEVEL as GOLD_LEVEL

LEVEL = "jumps/03-islands"
BUDGET = 700_000


def outcome(level=LEVEL, frames=BUDGET, **arguments):
    """Return all that must not depend on threads and interruptions."""
    best = solve(level, frames=frames, **arguments)
    return best.inputs.tobytes(), best.simulated, best.stage, best.gold, dict(best.won)


@pytest.mark.parametrize("objective", ["time", "score", "all-gold"])
def test_threads_do_not_change_the_result(objective):
    level = LEVEL if objective == "time" else GOLD_LEVEL
    one = outcome(level, objective=objective)
    assert one == outcome(level, objective=objective, threads=2) == outcome(level, objective=objective, threads=4)
    assert one != outcome(level, objective=objective, seed=1)


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
