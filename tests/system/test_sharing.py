"""What environments of one configuration share, and what each has for itself."""

import numpy as np
from gymnasium.utils import seeding

from nclone_env import NPlusPlusVectorEnv, create_environment
from tests.processes import run_module

from ..env.bases import RIGHT
from .many_single import single


def test_a_further_single_environment_takes_less_than_three_kilobytes():
    """In a fresh process: after errors in constructors, Python no longer shares the keys of attributes."""
    assert float(run_module("tests.system.many_single")[0]) < 3072


def test_spaces_belong_to_one_environment():
    left, right = single(), single()
    assert left.action_space is left.action_space
    assert left.action_space is not right.action_space
    assert left.observation_space is not right.observation_space
    left.action_space.seed(1)
    right.action_space.seed(1)
    drawn = [left.action_space.sample() for _ in range(10)]
    assert drawn == [right.action_space.sample() for _ in range(10)]
    assert drawn != [right.action_space.sample() for _ in range(10)]


def test_the_generator_is_that_of_gymnasium():
    env = single()
    assert env.np_random is env.np_random
    env.reset(seed=np.int64(7))
    assert env.np_random_seed == 7
    assert env.np_random.random(5).tolist() == seeding.np_random(7)[0].random(5).tolist()
    assert env.np_random.random(5).tolist() != seeding.np_random(7)[0].random(5).tolist()
    env.np_random = np.random.default_rng(3)
    assert env.np_random.random() == np.random.default_rng(3).random()
    assert env.np_random_seed == -1


def test_an_unseeded_environment_reports_the_seed_that_repeats_it():
    def levels(env, **seed):
        names = [env.reset(**seed)[1]["level"]]
        return names + [env.reset()[1]["level"] for _ in range(20)]

    env, again, other = (create_environment(levels=("first-steps", "jumps")) for _ in range(3))
    names = levels(env)
    assert levels(again, seed=env.np_random_seed) == names
    assert levels(other) != names


def test_weights_of_one_environment_are_not_those_of_another():
    weighted, plain = (NPlusPlusVectorEnv(num_envs=50, levels="first-steps", observations="game_state") for _ in "ab")
    weighted.set_level_weights({weighted.level_names[0]: 1})
    assert set(weighted.reset(seed=1)[1]["level"].tolist()) == {0}
    assert len(set(plain.reset(seed=1)[1]["level"].tolist())) > 2
    plain.step(np.full(50, RIGHT))
