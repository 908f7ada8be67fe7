"""Variants of levels: the same tiles and entities with start, switch and exit elsewhere, each with a solution."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError, UnsupportedLevelError
from nclone_env.game import CELEBRATING, EXIT, EXIT_SWITCH, NINJA
from nclone_env.generate import variants
from nclone_env.generate.variants import make_variant
from nclone_env.level.build import build_level, build_room, hall_tiles
from nclone_env.level.load import load_level
from nclone_env.sim.trajectory import simulate

from ..processes import run_module

LEVEL = load_level("jumps/03-islands")
MOVED = (NINJA, EXIT, EXIT_SWITCH)


@pytest.fixture(scope="module")
def made():
    return [make_variant(LEVEL, 1, number) for number in range(8)]


def test_only_start_switch_and_exit_are_elsewhere(made):
    for number, variant in enumerate(made):
        old, new = LEVEL.raw, variant.level.raw
        assert variant.level.name == f"{LEVEL.name} variant {number}"
        assert (old.tiles == new.tiles).all()
        same = (old.records == new.records).all(axis=1)
        assert set(old.records[~same, 0]) <= set(MOVED)
        assert (old.records[:, [0, 3, 4]] == new.records[:, [0, 3, 4]]).all()
    digests = {variant.level.raw.digest for variant in made}
    assert len(digests | {LEVEL.raw.digest}) == len(made) + 1


def test_some_begin_where_the_level_begins_and_others_elsewhere(made):
    begins = {tuple(variant.level.raw.records[0, 1:3].tolist()) for variant in made}
    own = tuple(LEVEL.raw.records[0, 1:3].tolist())
    assert own in begins
    assert len(begins) > 2


def test_every_variant_has_a_solution_that_wins_in_its_last_frame(made):
    for variant in made:
        states = simulate(variant.level, variant.inputs).state
        assert states[-1] == CELEBRATING
        assert not (states[:-1] == CELEBRATING).any()
        assert 60 <= len(states) <= 3600
        assert not (simulate(LEVEL, variant.inputs).state == CELEBRATING).any(), "on the level itself it leads nowhere"


def test_the_same_arguments_give_the_same_variant(made):
    again = make_variant(LEVEL, 1, 3)
    assert again.level.raw.digest == made[3].level.raw.digest
    assert again.inputs.tobytes() == made[3].inputs.tobytes()
    assert make_variant(LEVEL, 2, 3).level.raw.digest != again.level.raw.digest
    assert run_module("tests.generate.varied", LEVEL.name, "1", "3") == [again.level.raw.digest]


def test_a_level_in_which_the_ninja_cannot_move_has_no_variants(monkeypatch):
    monkeypatch.setattr(variants, "ATTEMPTS", 3)
    cell = build_level("exit 22 22", "exit_switch 22 22", tiles=hall_tiles((5, 5), (5, 5)), spawn=(22, 22))
    none = make_variant(cell)
    assert (none.level, none.inputs.shape, none.tried) == (None, (0,), 3)
    assert make_variant(build_room("exit 90 57", "exit_switch 60 57")).level is not None


def test_solutions_that_take_too_long_do_not_count(made):
    longest = max(made, key=lambda variant: len(variant.inputs))
    limit = len(longest.inputs) - 1
    shorter = make_variant(LEVEL, 1, made.index(longest), max_frames=limit)
    assert len(shorter.inputs) <= limit
    assert shorter.tried > longest.tried


def test_refusals():
    with pytest.raises(ConfigError, match="seed: expected a whole number of at least 0, got -1"):
        make_variant(LEVEL, -1)
    with pytest.raises(UnsupportedLevelError, match="expected a level with an exit"):
        make_variant(build_room("gold 60 57"))
    assert np.isin(MOVED, LEVEL.raw.records[:, 0]).all()
