"""RLlib: one iteration of PPO on a local Ray cluster."""

import os

import numpy as np
import pytest

pytest.importorskip("ray.rllib")

import gymnasium
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.tune.registry import register_env

from .bases import FIELDS, check_learned, numbers, run_example


def make(config):
    import nclone_env  # noqa: F401 - registers the environment in Ray's workers

    return gymnasium.make("nclone/NPlusPlus-v0", **config)


@pytest.fixture(scope="module")
def local_ray():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("local_ray")
def test_one_iteration_of_ppo():
    register_env("nplusplus", make)
    config = (
        PPOConfig()
        .environment("nplusplus", env_config=FIELDS)
        .env_runners(
            num_env_runners=1,
            num_envs_per_env_runner=8,
            env_to_module_connector=lambda env, spaces, device: FlattenObservations(),
        )
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=2)
    )
    algorithm = config.build_algo()
    module = algorithm.learner_group._learner.module["default_policy"]
    before = numbers(module)
    result = algorithm.train()
    episodes = result["env_runners"]
    assert episodes["num_env_steps_sampled"] >= 1024
    assert episodes["num_episodes"] > 10
    assert np.isfinite(episodes["episode_return_mean"])
    assert 0 < episodes["episode_len_mean"] <= 50
    check_learned(before, numbers(module))
    algorithm.stop()


@pytest.mark.usefixtures("local_ray")
@pytest.mark.parametrize("env_id", ["CartPole-v1", "nclone_env:nclone/NPlusPlus-Hazards-v0"])
def test_a_script_needs_no_other_change_than_the_id(env_id):
    config = (
        PPOConfig()
        .environment(env_id)
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2)
        .learners(num_learners=0)
        .training(train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=1)
    )
    algorithm = config.build_algo()
    result = algorithm.train()["env_runners"]
    assert result["num_env_steps_sampled"] >= 1024
    assert np.isfinite(result["episode_return_mean"])
    algorithm.stop()


@pytest.mark.usefixtures("local_ray")
def test_the_example_of_the_documents():
    assert run_example("RLlib")["algorithm"].iteration == 1
