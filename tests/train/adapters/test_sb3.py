"""The adapter for Stable-Baselines3, with a stand-in for its base class; ``make compat-sb3`` uses the real one."""

import importlib
import sys
from types import ModuleType

import numpy as np
import pytest

from nclone_env import EnvironmentConfig, NPlusPlusEnv, NPlusPlusVectorEnv, errors
from nclone_env.env.base import BaseEnvironment
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.sim.trajectory import simulate

from ...env.bases import counted


class StandIn:
    """What the adapter uses of ``VecEnv``."""

    def __init__(self, num_envs, observation_space, action_space):
        self.num_envs = num_envs
        self._reset_seeds()
        self._reset_options()

    def _reset_seeds(self):
        self._seeds = [None] * self.num_envs

    def _reset_options(self):
        self._options = [{} for _ in range(self.num_envs)]

    def _get_indices(self, indices):
        return range(self.num_envs) if indices is None else [indices] if isinstance(indices, int) else indices


@pytest.fixture
def sb3(monkeypatch):
    module = ModuleType("stable_baselines3.common.vec_env")
    module.VecEnv = StandIn
    monkeypatch.setitem(sys.modules, "stable_baselines3", ModuleType("stable_baselines3"))
    monkeypatch.setitem(sys.modules, "stable_baselines3.common", ModuleType("stable_baselines3.common"))
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", module)
    monitor = ModuleType("stable_baselines3.common.monitor")
    monitor.Monitor = type("Monitor", (), {})
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.monitor", monitor)
    monkeypatch.delitem(sys.modules, "nclone_env.train.adapters.sb3", raising=False)
    yield importlib.import_module("nclone_env.train.adapters.sb3")
    sys.modules.pop("nclone_env.train.adapters.sb3")


@pytest.mark.parametrize("name", ["gymnasium_infos", "autoreset_mode", "nonsense"])
def test_options_are_those_of_the_native_environment(sb3, name):
    with pytest.raises(errors.ConfigError, match=name):
        sb3.NPlusPlusVecEnv(num_envs=2, **{name: True})
    env = sb3.NPlusPlusVecEnv(num_envs=2, max_frames=77)
    env.reset()
    assert env.native.config.max_frames == 77


SAME_STEP = {"autoreset_mode": "SameStep"}


def constant_reward(event):
    return 0.125


@pytest.mark.parametrize("given", [True, False])
def test_a_reward_function_and_success(sb3, given):
    options = {"levels": "first-steps/01-walk", "max_frames": 2000, "reward_function": constant_reward}
    native = {"env": NPlusPlusVectorEnv(num_envs=1, **SAME_STEP, **options)}
    env = sb3.NPlusPlusVecEnv(**native if given else options)
    env.reset()
    dones, rewards = [False], []
    while not dones[0]:
        env.step_async(np.array([2]))
        _, reward, dones, infos = env.step_wait()
        rewards.append(reward[0])
    assert set(rewards) == {0.125}
    assert (infos[0]["outcome"], infos[0]["is_success"]) == ("won", True)


def test_a_failure_is_no_success(sb3):
    env = sb3.NPlusPlusVecEnv(max_frames=4)
    env.reset()
    env.step_async(np.array([0]))
    assert env.step_wait()[3][0]["is_success"] is False


@pytest.mark.parametrize(
    ("made", "beside"),
    [
        ({}, {}),
        ({"autoreset_mode": "SameStep", "gymnasium_infos": True}, {}),
        ({"autoreset_mode": "SameStep"}, {"num_envs": 2}),
    ],
)
def test_environments_that_do_not_fit(sb3, made, beside):
    with pytest.raises(errors.ConfigError, match="env: expected"):
        sb3.NPlusPlusVecEnv(env=NPlusPlusVectorEnv(**made), **beside)


def test_only_the_pictures_asked_for_are_drawn(sb3, monkeypatch):
    env = sb3.NPlusPlusVecEnv(num_envs=3, render_mode="rgb_array", render={"picture_scale": 0.25})
    env.reset()
    drawn = []
    monkeypatch.setattr(BaseEnvironment, "_picture", counted(BaseEnvironment._picture, drawn))
    (picture,) = env.env_method("render", indices=[2])
    assert drawn == [2]
    np.testing.assert_array_equal(picture, env.get_images()[2])
    assert drawn == [2, 0, 1, 2]
    assert len(env.env_method("render")) == 3


@pytest.mark.parametrize(("action_space", "size"), [("discrete", 6), ("multi_discrete", 5)])
def test_action_masks_are_those_of_the_observation(sb3, action_space, size):
    env = sb3.NPlusPlusVecEnv(num_envs=3, observations=("game_state", "action_mask"), action_space=action_space)
    with pytest.raises(errors.ResetNeededError, match="action_masks"):
        env.action_masks()
    seen = env.reset()["action_mask"].astype(bool)
    masks = env.action_masks()
    assert masks.shape == (3, size)
    assert masks.dtype == bool
    if action_space == "discrete":
        np.testing.assert_array_equal(masks, seen)
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[1])[0], masks[1])
    assert env.has_attr("action_masks")
    assert len(env.get_attr("action_masks")) == 3
    assert not env.has_attr("nonsense")
    without = sb3.NPlusPlusVecEnv(num_envs=1, observations=("game_state",))
    without.reset()
    with pytest.raises(errors.ConfigError, match="expected 'action_mask' among the observations, got game_state"):
        without.action_masks()


class Player:
    """A model that plays random actions."""

    def __init__(self, space):
        self.space, self.given = space, []

    def set_random_seed(self, seed):
        self.space.seed(seed)

    def predict(self, observation, state=None, begins=None, deterministic=False):
        self.given.append(self.space.sample())
        return self.given[-1], state


@pytest.mark.parametrize("action_space", ["discrete", "multi_discrete"])
@pytest.mark.parametrize("chance", [0.0, 0.7])
def test_a_run_of_a_model_has_the_inputs_of_the_actions_taken(sb3, action_space, chance):
    config = EnvironmentConfig(levels="first-steps/01-walk", observations="game_state", max_frames=80)
    config = config.replace(action_space=action_space, action_repeat_probability=chance)
    model, twin = Player(NPlusPlusEnv(config).action_space), NPlusPlusEnv(config)
    (run,) = sb3.model_runs(model, config, argmax=False, seed=3)
    inputs = list(run.inputs)
    twin.reset(seed=0)
    for given in model.given:
        twin.step(given)
    played = simulate(run.level, inputs)
    assert (played.x[-1], played.y[-1]) == (twin.worlds.ninjas[0]["x"], twin.worlds.ninjas[0]["y"])
    numbers = [each[0] + 3 * each[1] if action_space == "multi_discrete" else each for each in model.given]
    assert (np.take(INPUT_OF_ACTION, numbers).repeat(4).tolist() == inputs) == (chance == 0)


def test_it_counts_as_wrapped_by_monitor_alone(sb3):
    env = sb3.NPlusPlusVecEnv(num_envs=2)
    monitor = sys.modules["stable_baselines3.common.monitor"].Monitor
    assert env.env_is_wrapped(monitor) == [True, True]
    assert env.env_is_wrapped(dict) == [False, False]


def test_without_pictures_there_are_none(sb3):
    env = sb3.NPlusPlusVecEnv(num_envs=3)
    env.reset()
    assert env.env_method("render", indices=[0, 2]) == [None, None]
