"""Objectives: what a solution costs, and that searches lower it."""

import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.level.routes.gold import no_gold
from nclone_env.level.routes.guide import make_guide
from nclone_env.plan.kernels import path_remaining, path_to_exit
from nclone_env.plan.solver import solve
from nclone_env.plan.task import PRICES, origin_of, price_of, replay
from nclone_env.sim.session import Session
from nclone_env.sim.simulate import simulate

TILES = hall_tiles((2, 40), (10, 16))
NEAR, FAR = "gold 40 66\ngold 50 66", "gold 12 66"
"""Two pieces on the way from the spawn at x = 30 to the exit, and one behind the ninja."""
LEVEL = build_level("exit 80 66", "exit_switch 70 66", NEAR, FAR, tiles=TILES, spawn=(30, 66))
BEHIND_A_DOOR = build_level(
    "exit 60 66", "exit_switch 50 66", "gold 12 66", "locked_door 20 64 0\nlocked_door_switch 40 66",
    tiles=hall_tiles((2, 40), (16, 16)), spawn=(30, 66),
)  # fmt: skip


def solved(objective, level=LEVEL, frames=1_500_000, **arguments):
    best = solve(level, frames=frames, objective=objective, **arguments)
    states = simulate(level, best.inputs)
    assert states.state[-1] == 8
    assert states.gold[-1] == best.gold
    return best


def test_each_objective_gets_what_it_asks_for():
    time, score, all_gold = (solved(objective) for objective in PRICES)
    assert time.gold_total == 3
    assert time.gold < 3
    assert all_gold.gold == 3
    assert time.frames < all_gold.frames
    assert score.score >= max(time.score, all_gold.score) - 60
    assert score.score == 5400 + 120 * score.gold - score.frames


def test_far_gold_is_not_worth_its_price():
    level = build_level(
        "exit 160 66", "exit_switch 156 66", "gold 12 66", tiles=hall_tiles((2, 40), (10, 16)), spawn=(120, 66)
    )
    assert solved("score", level).gold == 0
    assert solved("all-gold", level).gold == 1


def test_gold_behind_a_door_is_collected():
    assert solved("all-gold", BEHIND_A_DOOR).gold == 1
    assert solved("time", BEHIND_A_DOOR).gold == 0


def test_gold_that_cannot_be_reached_does_not_stop_the_rest():
    level = build_level("exit 80 66", "exit_switch 70 66", "gold 50 66\ngold 100 20", tiles=TILES, spawn=(30, 66))
    best = solved("all-gold", level)
    assert (best.gold, best.gold_total) == (1, 2)


def test_a_replay_counts_gold_and_rejects_what_does_not_win():
    best = solved("time")
    levels = pack([LEVEL])
    run = replay(levels, origin_of(levels), best.inputs, 120)
    assert (run.gold, run.cost) == (best.gold, best.frames + 120 * (3 - best.gold))
    with pytest.raises(RuntimeError, match="does not win at the end"):
        replay(levels, origin_of(levels), best.inputs[:-1], 120)


def test_an_unknown_objective_is_named():
    with pytest.raises(ConfigError, match="objective: expected one of time, score, all-gold, got 'speed'"):
        solve(LEVEL, frames=10, objective="speed")
    assert price_of("time") == 0


def test_gold_makes_the_way_longer_until_it_is_taken():
    levels = pack([LEVEL])
    guide, plain = make_guide(levels, gold=True), make_guide(levels)
    session = Session(LEVEL)
    assert len(plain.gold.slots) == len(no_gold().slots) == 0
    assert path_remaining(plain, session.worlds, 0) == path_to_exit(plain, session.worlds, 0, 0)
    lengths = [path_remaining(guide, session.worlds, 0)]
    for slot in guide.gold.slots:
        session.worlds.entity_states[0, slot] = 1
        lengths.append(path_remaining(guide, session.worlds, 0))
    assert lengths[0] > lengths[1] > lengths[2] > lengths[3]
    assert lengths[3] == path_to_exit(guide, session.worlds, 0, 0)


def test_many_pieces_share_few_fields():
    gold = "\n".join(f"gold {12 + 2 * (n % 70)} {24 + 6 * (n // 70)}" for n in range(400))
    level = build_level("exit 80 66", "exit_switch 70 66", gold, tiles=hall_tiles((2, 40), (5, 16)), spawn=(30, 66))
    guide = make_guide(pack([level]), gold=True).gold
    assert len(guide.slots) == 400
    assert len(set(guide.slots.tolist())) == 400
    assert len(guide.fields) <= 64
    assert np.isfinite(guide.shares).all()


def test_the_score_of_a_built_in_level_is_not_below_that_of_the_shortest_time():
    level = load_level("first-steps/05-slope")
    assert solved("score", level, 6_000_000).score >= solved("time", level, 6_000_000).score


def test_thousands_of_pieces_are_counted():
    """Their price is more than 32 bits hold, and their number more than 12."""
    gold = "\n".join(f"gold {20 + n % 100} {30 + n // 100 % 20}" for n in range(4200))
    tiles = hall_tiles((2, 40), (5, 20))
    level = build_level("exit 150 82", "exit_switch 60 82", gold, tiles=tiles, spawn=(40, 82))
    best = solved("all-gold", level, 100_000)
    assert best.gold_total == 4200
    assert PRICES["all-gold"] * (best.gold_total - best.gold) > 2**31
