"""Objectives: what a solution costs, and that searches lower it. Searches from any world. Smooth solutions."""

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING
from nclone_env.level import build_level, build_room, hall_tiles, known_solutions, load_level, make_guide, pack
from nclone_env.level.routes.guide import no_gold
from nclone_env.plan.kernels import path_remaining, path_to_exit
from nclone_env.plan.solver import solve
from nclone_env.plan.task import PRICES, origin_of, replay, smooth
from nclone_env.sim import Session, hash_world, simulate, world_at

from .test_solve import wins

TILES = hall_tiles((2, 40), (10, 16))
NEAR, FAR = "gold 40 66\ngold 50 66", "gold 12 66"
"""Two pieces on the way from the spawn at x = 30 to the exit, and one behind the ninja."""
LEVEL = build_level("exit 80 66", "exit_switch 70 66", NEAR, FAR, tiles=TILES, spawn=(30, 66))
BEHIND_A_DOOR = build_level(
    "exit 60 66", "exit_switch 50 66", "gold 12 66", "locked_door 20 64 0\nlocked_door_switch 40 66",
    tiles=hall_tiles((2, 40), (16, 16)), spawn=(30, 66),
)  # fmt: skip
NAME = "jumps/03-islands"
STAIRS = load_level(NAME)
KNOWN = known_solutions()[NAME]
BEGINNING = KNOWN[: len(KNOWN) // 2]
EVIL = build_room("exit 160 57", "exit_switch 150 57", "evil_ninja 60 57")


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


def test_gold_makes_the_way_longer_until_it_is_taken():
    levels = pack([LEVEL])
    guide, plain = make_guide(levels, gold=True), make_guide(levels)
    session = Session(LEVEL)
    assert len(plain.gold.slots) == len(no_gold().slots) == 0
    assert path_remaining(plain, session.worlds, 0) == path_to_exit(plain, session.worlds, 0, 0)
    lengths = [path_remaining(guide, session.worlds, 0)]
    for slot in guide.gold.slots:
        session[0].entity_states[slot] = 1
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


def test_thousands_of_pieces_are_counted():
    """Their price is more than 32 bits hold, and their number more than 12."""
    gold = "\n".join(f"gold {20 + n % 100} {30 + n // 100 % 20}" for n in range(4200))
    tiles = hall_tiles((2, 40), (5, 20))
    level = build_level("exit 150 82", "exit_switch 60 82", gold, tiles=tiles, spawn=(40, 82))
    best = solved("all-gold", level, 100_000)
    assert best.gold_total == 4200
    assert PRICES["all-gold"] * (best.gold_total - best.gold) > 2**31


def after(inputs, level=STAIRS, **arguments):
    """Return a session in which these inputs were played."""
    session = Session(level, **arguments)
    session.play(inputs)
    return session


def wins_from(session, inputs):
    states = session.record(inputs, entities=False).ninjas["state"]
    return states[-1] == CELEBRATING and not (states[:-1] == CELEBRATING).any()


def test_a_solution_from_the_middle_goes_on_from_there():
    session = after(BEGINNING)
    found = solve(STAIRS, frames=300_000, start=(session.worlds, 0))
    assert 0 < found.frames <= len(KNOWN) - len(BEGINNING) + 4
    assert wins_from(session, found.inputs)
    assert not wins_from(Session(STAIRS), found.inputs)  # from the start it is none


def test_the_start_of_the_level_is_the_default():
    session = Session(STAIRS)
    assert hash_world(origin_of(session.level_set), 0) == session.hash(0)
    given = solve(STAIRS, frames=200_000, start=(session.worlds, 0))
    assert given.inputs.tobytes() == solve(STAIRS, frames=200_000).inputs.tobytes()


def test_worlds_of_a_vector_environment_on_several_levels():
    envs = NPlusPlusVectorEnv(levels=("hazards", NAME), num_envs=8, observations="game_state")
    number = envs.level_names.index(NAME)
    envs.reset(seed=0, options={"level": [number] * 8})
    for _ in range(20):
        envs.step(np.full(8, 2))
    found = solve(STAIRS, frames=300_000, start=(envs.worlds, 3))
    session = Session(STAIRS)
    session.play(bytes([2]) * 80)
    assert origin_of(session.level_set, (envs.worlds, 3)).ninjas.tobytes() == session.worlds.ninjas.tobytes()
    assert wins_from(session, found.inputs)


@pytest.mark.parametrize("limit", [None, 500])
def test_the_trail_that_an_evil_ninja_follows_is_part_of_the_world(limit):
    session = after(bytes([2]) * 90, EVIL, max_frames=limit)
    origin = origin_of(pack([EVIL]), (session.worlds, 0))
    played = Session(EVIL)
    played.play(bytes([2]) * 90)
    assert hash_world(origin, 0) == played.hash(0)
    assert world_at(origin, 0).trail.any()


def test_the_trail_of_a_set_with_more_evil_ninjas_is_another_ring():
    many = build_room("exit 160 57", "exit_switch 150 57", "evil_ninja 60 57\nevil_ninja 62 57\nevil_ninja 64 57")
    session = Session(pack([many, EVIL]))
    session.start(1)
    alone = Session(EVIL)
    inputs = bytes([2]) * 190  # the smaller ring is full
    for played in (session, alone):
        played.play(inputs)
    assert len(session.worlds.trail) != len(alone.worlds.trail)
    origin = origin_of(alone.level_set, (session.worlds, 0))
    assert hash_world(origin, 0) == alone.hash(0)
    assert world_at(origin, 0).trail.all()


def test_inputs_change_in_multiples_of_the_hold():
    held = solve(STAIRS, frames=1_000_000, hold=6)
    changes = np.flatnonzero(np.diff(held.inputs)) + 1
    assert held.won.get("polished", 0) > 0  # edits take part
    assert len(changes)
    assert not (changes % 6).any()
    free = solve(STAIRS, frames=1_000_000)
    assert ((np.flatnonzero(np.diff(free.inputs)) + 1) % 6).any()


def test_worlds_that_are_none_of_the_level():
    session = after(BEGINNING)
    with pytest.raises(ConfigError, match="start: expected the index of a world from 0 to 0, got 1"):
        solve(STAIRS, frames=1000, start=(session.worlds, 1))
    with pytest.raises(ConfigError, match="a world of 'hazards/05-slalom', which has"):
        solve("hazards/05-slalom", frames=1000, start=(session.worlds, 0))
    with pytest.raises(ConfigError, match="start: expected a world of 'hazards/05-slalom', got one of"):
        solve("hazards/05-slalom", frames=1000, start=(session, 0))
    other = build_room("exit 60 57", "exit_switch 50 57")  # no larger, so that only the level tells
    with pytest.raises(ConfigError, match=f"start: expected a world of '{other.name}', got one of '{NAME}'"):
        solve(other, frames=1000, start=(session, 0))
    assert solve(STAIRS, frames=1000, start=(session, 0)).simulated
    won = after(KNOWN)
    with pytest.raises(ConfigError, match="start: expected a world in which the ninja is alive"):
        solve(STAIRS, frames=1000, start=(won.worlds, 0))


@pytest.fixture(scope="module")
def found():
    return {hold: solve(STAIRS, frames=400_000, hold=hold).inputs for hold in (1, 4)}


def changes(inputs):
    return np.flatnonzero(np.diff(inputs)) + 1


@pytest.mark.parametrize("hold", [1, 4])
def test_fewer_changes_and_not_much_longer(found, hold):
    smoothed = smooth(STAIRS, found[hold], hold=hold)
    assert wins(STAIRS, smoothed)
    assert len(smoothed) <= 1.05 * len(found[hold])
    assert len(changes(smoothed)) < 0.9 * len(changes(found[hold]))
    assert not (changes(smoothed) % hold).any()


def test_without_slack_it_is_not_longer(found):
    assert len(smooth(STAIRS, found[4], slack=0.0, hold=4)) <= len(found[4])


def test_it_is_done_when_it_is_done(found):
    once = smooth(STAIRS, found[4], hold=4)
    assert smooth(STAIRS, once, slack=0.0, hold=4).tobytes() == once.tobytes()


def test_of_equal_inputs_the_first_is_taken():
    level = build_room("exit 41 58", "exit_switch 40 58")  # won at the spawn, whatever the input
    frames = solve(level, frames=10_000).frames
    jumps = np.full(frames, 3, np.uint8)
    assert wins(level, jumps)
    assert smooth(level, jumps).tobytes() == bytes(frames)


def test_a_solution_from_another_world(found):
    session = Session(STAIRS)
    session.play(found[4][:40])
    rest = found[4][40:]
    smoothed = smooth(STAIRS, rest, hold=4, start=(session.worlds, 0))
    assert wins(STAIRS, np.append(found[4][:40], smoothed))


def test_inputs_that_are_no_solution(found):
    with pytest.raises(ValueError, match="inputs: expected a solution of 'jumps/03-islands', got 10 frames"):
        smooth(STAIRS, np.zeros(10, np.uint8))
    with pytest.raises(ValueError, match="inputs: expected changes in multiples of 4 frames, got one in frame"):
        smooth(STAIRS, found[1], hold=4)
