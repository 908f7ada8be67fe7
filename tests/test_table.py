import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv, load_level, simulate
from nclone_env._table import table
from nclone_env.level import known_solutions
from nclone_env.plan import Solution
from nclone_env.replay import Recording


def test_numbers_are_aligned_on_the_right_and_words_on_the_left():
    assert table(
        ("name", "n", "change", "verdict"), [("a", "100", "-2 B", "flat"), ("long name", "2", "-", "up"), ("b",)]
    ) == ["name         n  change  verdict", "a          100    -2 B  flat", "long name    2       -  up", "b"]


def test_a_table_without_rows_is_its_titles():
    assert table(("name", "n"), []) == ["name  n"]


INPUTS = known_solutions()["first-steps/01-walk"]
RECORDS = {
    "level": lambda: load_level("first-steps/01-walk"),
    "level set": lambda: NPlusPlusVectorEnv(levels="first-steps").level_set,
    "trajectory": lambda: simulate("first-steps/01-walk", INPUTS),
    "recording": lambda: Recording.of("first-steps/01-walk", INPUTS),
    "solution": lambda: Solution(np.zeros(300, np.uint8), 1000, 0.5, "first"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_what_holds_arrays_shows_their_kinds_and_sizes(name):
    shown = repr(RECORDS[name]())
    assert "\n" not in shown
    assert len(shown) < 400
    assert "<" in shown


def test_few_items_are_shown_and_many_are_counted():
    level_set = NPlusPlusVectorEnv(levels="first-steps").level_set
    assert repr(level_set) == "LevelSet(levels=<6 Level>)"
    assert repr(Solution(np.zeros(3, np.uint8), 9, 0.5, "first")) == (
        "Solution(inputs=<uint8 (3,)>, simulated=9, seconds=0.5, stage='first', gold=0, gold_total=0, won={})"
    )
