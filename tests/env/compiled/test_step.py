"""Rewards against what the simulator alone says happened, and the shaping against the level's distances."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env import NPlusPlusEnv, RewardConfig, simulate
from nclone_env.game import CELEBRATING, EXIT, EXIT_SWITCH, GOLD, INPUT_OF_ACTION
from nclone_env.level.build import build_level
from nclone_env.level.compile import compile_level, level_distances
from nclone_env.level.routes.fields import distance_at
from profiling.measure import basic_sets

from ..bases import PLAIN_REWARD, QUICK_DEATH, QUICK_WIN, RIGHT, RIGHT_INPUT, WALK, corridor

BUILT_IN = tuple(basic_sets())


def play(level, actions, frame_skip=1, **weights):
    """Return the steps of one episode, at most one an action."""
    env = NPlusPlusEnv(levels=level, frame_skip=frame_skip, observations="game_state", reward=PLAIN_REWARD | weights)
    env.reset()
    steps = []
    for action in actions:
        steps.append(env.step(action))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


def rewards_of(steps) -> list[float]:
    return [step[1] for step in steps]


def test_switch_gold_and_victory_count_when_they_happen():
    steps = play(QUICK_WIN, [RIGHT] * 60, completion=7, switch=3, time=-0.25, gold=0.5, death=-100)
    told = simulate(QUICK_WIN, [RIGHT_INPUT] * len(steps), entities=True)
    taken = ~told.entity_active[:, told.entity_type == EXIT_SWITCH].ravel()
    gold = np.diff(told.gold, prepend=0)
    expected = -0.25 + 0.5 * gold + 3.0 * np.diff(taken, prepend=False) + 7.0 * (told.state == CELEBRATING)
    assert rewards_of(steps) == expected.tolist()
    assert expected[0] == 2.75
    assert sorted(gold)[-2:] == [1, 2]
    assert steps[-1][4]["gold"] == 3
    assert sum(expected) == steps[-1][4]["episode_return"] == 7 + 3 + 3 * 0.5 - 0.25 * len(steps)


def test_a_longer_step_adds_up_its_frames():
    weights = {"completion": 7, "switch": 3, "time": -0.25, "gold": 0.5}
    ones = rewards_of(play(QUICK_WIN, [RIGHT] * 60, **weights))
    fours = rewards_of(play(QUICK_WIN, [RIGHT] * 60, frame_skip=4, **weights))
    assert fours == [sum(ones[first : first + 4]) for first in range(0, len(ones), 4)]


def test_two_switches_in_a_frame_count_twice():
    level = corridor((EXIT, 120), (EXIT, 126), (EXIT_SWITCH, 43), (EXIT_SWITCH, 44))
    assert rewards_of(play(level, [RIGHT] * 3, switch=3)) == [6, 0, 0]


def test_death_counts_once():
    steps = play(QUICK_DEATH, [RIGHT] * 60, death=-2, completion=100)
    assert rewards_of(steps) == [0.0] * (len(steps) - 1) + [-2.0]
    assert steps[-1][4]["outcome"] == "died"


def test_time_counts_simulated_frames():
    env = NPlusPlusEnv(levels=WALK, max_frames=6, reward=PLAIN_REWARD | {"time": -1})
    env.reset()
    assert [env.step(0)[1] for _ in range(2)] == [-4, -2]


def test_the_default_weights_are_those_of_the_documentation():
    steps = play(QUICK_WIN, [RIGHT] * 60, **{name: getattr(RewardConfig(), name) for name in PLAIN_REWARD})
    env = NPlusPlusEnv(levels=QUICK_WIN, frame_skip=1)
    env.reset()
    assert [env.step(RIGHT)[1] for _ in steps] == rewards_of(steps)


def test_shaping_is_the_difference_of_potentials():
    """The potential is computed here from the level's distances and the positions that the simulator gives."""
    gamma = 0.9
    actions = [RIGHT] * 400
    steps = play(WALK, actions, shaping=2, gamma=gamma)
    told = simulate(WALK, [RIGHT_INPUT] * len(steps), entities=True)
    taken = ~told.entity_active[:, told.entity_type == EXIT_SWITCH].ravel()
    distances = level_distances(compile_level(WALK))
    whole = distance_at(distances, 0, *WALK.spawn)
    potentials = [-1.0]
    for x, y, field, state in zip(told.x, told.y, taken.astype(int), told.state):
        way = distance_at(distances, field, x, y)
        potentials.append(0.0 if state == CELEBRATING else -way / whole)
    expected = [2.0 * (gamma * after - before) for before, after in itertools.pairwise(potentials)]
    assert told.state[-1] == CELEBRATING
    assert taken.any()
    assert rewards_of(steps) == pytest.approx(expected, rel=1e-12)


@functools.cache
def shaped(gamma, frame_skip):
    fields = {"frame_skip": frame_skip, "max_frames": 240, "observations": "game_state"}
    return NPlusPlusEnv(levels=BUILT_IN, reward=PLAIN_REWARD | {"shaping": 1, "gamma": gamma}, **fields)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), gamma=st.sampled_from([1.0, 0.995, 0.9]), frame_skip=st.integers(1, 8))
def test_shaping_telescopes(seed, gamma, frame_skip):
    """The discounted sum over an episode is what the last state has less what the first had, and so cannot be farmed.

    The first potential is -1 by definition; the last is 0 after death or victory.
    """
    env = shaped(gamma, frame_skip)
    env.reset(seed=seed)
    draw = np.random.default_rng(seed)
    total, discount, over = 0.0, 1.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(draw.integers(6))
        total += discount * reward
        discount *= gamma
        over = terminated or truncated
    left = float(observation["game_state"][17])
    last = 0.0 if terminated else -left
    if left < 1:  # beyond, the observation is clipped and the potential is not
        assert total == pytest.approx(discount * last + 1.0, abs=1e-6)


def test_without_a_way_there_is_no_shaping():
    tiles = WALK.raw.tiles.copy()
    tiles[:, 15] = 1  # a wall across the corridor
    level = build_level("exit 126 50", "exit_switch 86 50", tiles=tiles, spawn=(42, 50))
    assert rewards_of(play(level, [RIGHT] * 30, shaping=5)) == [0.0] * 30


def test_every_action_sends_the_input_it_names():
    for action, code in enumerate(INPUT_OF_ACTION):
        env = NPlusPlusEnv(levels=WALK, frame_skip=1, observations="game_state")
        env.reset()
        for _ in range(30):
            observation = env.step(action)[0]["game_state"]
        told = simulate(WALK, [code] * 30)
        place = [told.x[-1] / 528 - 1, told.y[-1] / 300 - 1, told.xspeed[-1] / 8, told.yspeed[-1] / 8]
        assert observation[:4] == pytest.approx(place, rel=1e-6)


def test_gold_is_of_the_episode():
    env = NPlusPlusEnv(levels=corridor((EXIT, 126), (EXIT_SWITCH, 86), (GOLD, 43)), observations="game_state")
    env.reset()
    assert env.step(RIGHT)[4]["gold"] == 1
    assert env.reset()[1]["gold"] == 0
