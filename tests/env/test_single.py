import itertools
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics

import nclone_env
from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv
from nclone_env.config import DEFAULT_OBSERVATIONS, OBSERVATION_NAMES

from ..shared import each_value
from .bases import ENVIRONMENT_ID, QUICK_WIN, assert_same

SUBSETS = [names for count in (1, 2, 3) for names in itertools.combinations(DEFAULT_OBSERVATIONS, count)]
SUBSETS += [("entity_states",), ("locals",), ("reachability",), ("graph",), ("action_mask",), OBSERVATION_NAMES]
GYMNASIUM = tuple(map(int, gymnasium.__version__.split(".")[:2]))
counts_all = pytest.mark.skipif(
    GYMNASIUM < (1, 4), reason="this Gymnasium leaves the first step of an episode out of the statistics in this mode"
)


@pytest.fixture(autouse=True)
def no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def test_make_takes_the_fields_of_the_configuration():
    env = gymnasium.make(ENVIRONMENT_ID, levels="jumps", observations="game_state", frame_skip=2, max_frames=6)
    observation, info = env.reset(seed=3)
    assert list(observation) == ["game_state"]
    assert info["level"].startswith("jumps/")
    ends = [env.step(0)[3] for _ in range(3)]
    assert ends == [False, False, True]
    assert env.unwrapped.config.frame_skip == 2
    assert env.unwrapped.metadata["render_fps"] == 30


def test_make_takes_a_configuration_and_fields_on_top():
    config = EnvironmentConfig.for_parallel_training(levels="jumps")
    env = gymnasium.make(ENVIRONMENT_ID, config=config, max_frames=7)
    assert env.unwrapped.config == config.replace(max_frames=7)


@pytest.mark.parametrize(("names", "action_space"), each_value(SUBSETS, ["discrete", "multi_discrete"]))
def test_the_checker_of_gymnasium_has_nothing_to_say(names, action_space):
    env = gymnasium.make(ENVIRONMENT_ID, observations=names, action_space=action_space, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("options", [{"frame_stack": 3}, {"dtype": "float16"}], ids=str)
def test_the_checker_has_nothing_to_say_about_stacks_and_halves(options):
    env = gymnasium.make(ENVIRONMENT_ID, observations=OBSERVATION_NAMES, observation=options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_make_vec_makes_our_vector_environment():
    envs = gymnasium.make_vec(
        ENVIRONMENT_ID,
        num_envs=3,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        observations=("game_state",),
    )
    assert isinstance(envs.unwrapped, NPlusPlusVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    observations, _ = envs.reset(seed=1)
    assert observations in envs.observation_space
    assert envs.action_space.sample() in envs.action_space
    assert envs.step(envs.action_space.sample())[0]["game_state"].shape == (3, 30)
    envs.close()


def test_make_vec_gives_the_default_autoreset_mode_of_gymnasium():
    envs = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, vectorization_mode="vector_entry_point")
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert set(envs.single_observation_space.spaces) == set(DEFAULT_OBSERVATIONS)


def test_gymnasiums_own_processes_agree_with_our_threads():
    fields = {"levels": "hazards", "max_frames": 40}
    theirs = gymnasium.make_vec(ENVIRONMENT_ID, num_envs=2, vectorization_mode="async", **fields)
    ours = NPlusPlusVectorEnv(None, 2, **fields)
    try:
        assert_same(theirs.reset(seed=9)[0], ours.reset(seed=9)[0])
        for action in (2, 5, 2, 1, 4, 4, 2, 0, 2, 2, 1, 1, 3, 2):
            their_step, our_step = theirs.step(np.array([action, 2])), ours.step(np.array([action, 2]))
            assert_same(their_step[0], our_step[0])
            for left, right in zip(their_step[1:4], our_step[1:4]):
                np.testing.assert_array_equal(left, right)
            np.testing.assert_array_equal(their_step[4]["frames"], our_step[4]["frames"])
    finally:
        theirs.close()


def test_the_functions_that_create_environments():
    config = EnvironmentConfig.for_parallel_training(levels="jumps")
    assert isinstance(nclone_env.create_environment(), NPlusPlusEnv)
    assert nclone_env.create_environment(config).config == config
    envs = nclone_env.create_vector_environment(config, 5, autoreset_mode=AutoresetMode.DISABLED, num_threads=2)
    assert isinstance(envs, NPlusPlusVectorEnv)
    assert (envs.num_envs, envs.config) == (5, config)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    envs.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, pytest.param(AutoresetMode.SAME_STEP, marks=counts_all)])
def test_vector_episode_statistics_of_gymnasium_equal_ours(mode):
    envs = RecordVectorStatistics(
        NPlusPlusVectorEnv(None, 4, levels=(QUICK_WIN, "hazards"), max_frames=90, autoreset_mode=mode)
    )
    envs.reset(seed=2)
    draw, seen = np.random.default_rng(1), 0
    for _ in range(120):
        *_, terminated, truncated, info = envs.step(draw.integers(0, 6, 4))
        for i in np.flatnonzero(terminated | truncated):
            assert info["episode"]["r"][i] == pytest.approx(info["episode_return"][i], rel=1e-5, abs=1e-6)
            assert info["episode"]["l"][i] == info["episode_steps"][i]
            seen += 1
    assert seen > 10
