"""The native environment for PufferLib, against a stand-in for the protocol of ``pufferlib.PufferEnv``."""

import importlib
import sys
from types import ModuleType

import numpy as np
import pytest

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv, errors
from nclone_env.env.base import BaseEnvironment

from ...env.bases import QUICK_DEATH, QUICK_WIN, choices, counted

FIELDS = {"levels": (QUICK_WIN, QUICK_DEATH, "hazards"), "max_frames": 200}
NUM_ENVS = 8


def arrays(env) -> dict[str, np.ndarray]:
    """Return arrays as PufferLib makes them."""
    n, space = env.num_agents, env.single_observation_space
    return {
        "observations": np.zeros((n, *space.shape), space.dtype),
        "rewards": np.zeros(n, np.float32),
        "terminals": np.zeros(n, bool),
        "truncations": np.zeros(n, bool),
        "masks": np.zeros(n, bool),
        "actions": np.zeros(n, np.int32),
    }


class StandIn:
    """What ``pufferlib.PufferEnv`` asks of a native environment, and what it adds."""

    def __init__(self, buf=None):
        for name in ("single_observation_space", "single_action_space", "num_agents"):
            assert hasattr(self, name), f"{name} must be set before super().__init__"
        assert not hasattr(self, "observation_space")
        assert not hasattr(self, "action_space")
        for name, array in (arrays(self) if buf is None else buf).items():
            setattr(self, name, array)
        self.agent_ids = np.arange(self.num_agents)


@pytest.fixture
def puffer(monkeypatch):
    module = ModuleType("pufferlib")
    module.PufferEnv = StandIn
    monkeypatch.setitem(sys.modules, "pufferlib", module)
    monkeypatch.delitem(sys.modules, "nclone_env.train.adapters.puffer", raising=False)
    yield importlib.import_module("nclone_env.train.adapters.puffer")
    sys.modules.pop("nclone_env.train.adapters.puffer")


def test_a_thousand_steps_are_those_of_the_vector_environment(puffer):
    env = puffer.NPlusPlusPufferEnv(num_envs=NUM_ENVS, **FIELDS)
    twin = NPlusPlusVectorEnv(None, NUM_ENVS, autoreset_mode="SameStep", observations="game_state", **FIELDS)
    handed, infos = env.reset(seed=3)
    observations, _ = twin.reset(seed=puffer.agent_seeds(3, NUM_ENVS))
    assert infos == []
    assert handed is env.observations
    assert env.masks.all()
    np.testing.assert_array_equal(handed, observations["game_state"])
    places = [env.observations.ctypes.data, env.rewards.ctypes.data]
    returns, lengths, outcomes = np.zeros(NUM_ENVS), np.zeros(NUM_ENVS, int), set()
    for actions in choices(1000, NUM_ENVS):
        *results, infos = env.step(actions.astype(np.int32))
        observations, rewards, terminated, truncated, info = twin.step(actions)
        assert results[1].dtype == np.float32
        expected = (observations["game_state"], rewards.astype(np.float32), terminated, truncated)
        for left, right in zip(results, expected, strict=True):
            np.testing.assert_array_equal(left, right)
        returns, lengths, over = returns + rewards, lengths + 1, terminated | truncated
        assert [info["episode_length"] for info in infos] == lengths[over].tolist()
        np.testing.assert_allclose([info["episode_return"] for info in infos], returns[over], rtol=1e-12, atol=1e-12)
        returns[over], lengths[over] = 0, 0
        for row, index in zip(infos, np.flatnonzero(over), strict=True):
            assert row["level"] == twin.level_names[info["final_info"]["level"][index]]
            assert row["won"] == (row["outcome"] == "won")
            outcomes.add(row["outcome"])
    assert outcomes == {"won", "died", "timed_out"}
    assert places == [env.observations.ctypes.data, env.rewards.ctypes.data]
    env.close()
    env.close()


def test_arrays_can_be_exchanged_at_any_time(puffer):
    env = puffer.NPlusPlusPufferEnv(num_envs=NUM_ENVS, **FIELDS)
    shared = {name: np.zeros((2, *array.shape), array.dtype) for name, array in arrays(env).items()}
    other = puffer.NPlusPlusPufferEnv(num_envs=NUM_ENVS, buf={name: rows[1] for name, rows in shared.items()}, **FIELDS)
    env.reset(seed=1)
    other.reset(seed=1)
    for name, rows in shared.items():
        setattr(env, name, rows[0])
    for actions in choices(20, NUM_ENVS):
        env.step(actions)
        other.step(actions)
    assert shared["observations"][0].any()
    for name in ("observations", "rewards", "terminals", "truncations"):
        np.testing.assert_array_equal(shared[name][0], shared[name][1])


def test_the_seed_of_the_constructor_holds_for_the_first_reset(puffer):
    def begun(seed, *resets):
        env = puffer.NPlusPlusPufferEnv(num_envs=NUM_ENVS, seed=seed, levels=("first-steps", "jumps", "hazards"))
        return [env.reset(reset)[0].tobytes() for reset in resets]

    assert begun(5, None) == begun(0, 5)
    assert begun(5, None) != begun(6, None)
    first, second = begun(5, None, None)
    assert first != second


def test_objects_with_neighbouring_seeds_share_none(puffer):
    """PufferLib seeds object i with ``seed + i``."""

    def distinct(seeds_of):
        return len({seed for start in range(8) for seed in seeds_of(start, 1024)})

    assert distinct(puffer.agent_seeds) == 8 * 1024
    assert distinct(lambda start, count: range(start, start + count)) == 1024 + 7, "counting up"
    with pytest.raises(errors.ConfigError, match="seed: expected whole numbers of at least 0 or None, got -1"):
        puffer.agent_seeds(-1, 2)


def test_observations_are_never_dicts(puffer):
    config = EnvironmentConfig(observations=("locals",), action_space="multi_discrete")
    env = puffer.NPlusPlusPufferEnv(config, 2, observation={"locals_size": 9})
    assert env.reset()[0].shape == (2, 9, 9)
    env.step(np.zeros((2, 2), np.int32))
    with pytest.raises(errors.ConfigError, match="observations: expected one name of a single array"):
        puffer.NPlusPlusPufferEnv(observations=("game_state", "locals"))


def test_the_picture_is_that_of_the_first_agent(puffer, monkeypatch):
    env = puffer.NPlusPlusPufferEnv(num_envs=2, render_mode="rgb_array", render={"picture_scale": 0.25})
    env.reset()
    drawn = []
    monkeypatch.setattr(BaseEnvironment, "_picture", counted(BaseEnvironment._picture, drawn))
    picture = env.render()
    assert drawn == [0], "one picture costs one"
    np.testing.assert_array_equal(picture, env.native.render()[0])
    assert drawn == [0, 0, 1]
    assert picture.shape == (150, 264, 3)
    assert env.memory().total_bytes > 0
