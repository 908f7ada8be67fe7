"""The ``env.py`` of an EnvHub repository: what LeRobot asks of it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")
SPEC = importlib.util.spec_from_file_location("hub_env", Path(__file__).parents[2] / "examples" / "env.py")
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)


def test_the_wrapper_is_an_environment():
    with example.LeRobotEnv("jumps/01-stairs") as env:
        check_env(env)


@pytest.mark.parametrize(("aside", "up", "action"), [(0, 0, 0), (-0.4, -1, 1), (0.4, 0.1, 5), (0.3, 1, 3)])
def test_continuous_actions_hold_the_inputs_of_discrete_ones(aside, up, action):
    with example.LeRobotEnv("jumps/01-stairs") as env:
        env.reset(seed=0)
        seen, *_ = env.step(np.array([aside, up], np.float32))
        env.env.reset(seed=0)
        assert np.array_equal(seen["agent_pos"], env.env.step(action)[0]["game_state"])


@pytest.mark.parametrize("use_async_envs", [False, True])
def test_a_rollout_as_lerobot_makes_it(use_async_envs, monkeypatch):
    monkeypatch.setattr(example, "SETS", ("first-steps",))
    envs = example.make_env(n_envs=2, use_async_envs=use_async_envs)
    assert [*envs] == ["first-steps"]
    assert [*envs["first-steps"]] == [*range(6)]
    env = envs["first-steps"][0]
    assert all(env.call("task_description"))
    seen, _ = env.reset(seed=[0, 1])
    assert env.observation_space.contains(seen)
    for _ in range(env.call("_max_episode_steps")[0]):
        *_, info = env.step(np.array([[1, -1], [-1, -1]], np.float32))
        if "final_info" in info:
            break
    assert info["final_info"]["is_success"].tolist() == [True, False]
    for made in envs["first-steps"].values():
        made.close()
