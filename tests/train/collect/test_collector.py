"""Rollouts in compiled code: the same bytes as those through Python, for all kinds of observations and episodes."""

import itertools
from contextlib import closing

import numpy as np
import pytest

from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.train.collect.collector import Collector
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.mlp import make_network
from nclone_env.train.policies.network import FlatParameters
from nclone_env.train.runs.run import make_policy, observation_shapes

LEVELS = ("first-steps", "hazards")
SIZES = 5, 3
SEVERAL = "game_state", "locals", "entity_states", "free_motion"
# Kernels are compiled for each; one without vectors has the same branches as several.
OBSERVATIONS = [("game_state",), SEVERAL, pytest.param(("free_motion",), marks=pytest.mark.slow)]


class Wrapped(NPlusPlusVectorEnv):
    """Environments that a collector must ask for each step."""


def wrapped(config, num_envs):
    return Wrapped(config, num_envs, autoreset_mode="SameStep", num_threads=1)


def rollouts(make, observations=("game_state",), seed=0, shared_trunk=True, count=3):
    """Play rollouts of two groups; return all that was recorded, and the episodes."""
    config = TrainConfig.of(
        levels=LEVELS, num_envs=sum(SIZES), num_steps=21, observations=observations, max_frames=60, seed=seed,
        shared_trunk=shared_trunk, hidden_size=16,
    )  # fmt: skip
    groups = [make(config.unstacked_environment, size) for size in SIZES]
    policy = make_policy(config, observation_shapes(groups[0]))
    parameters = FlatParameters(policy)
    np.random.default_rng(5).standard_normal(out=parameters.vector, dtype=np.float32)
    parameters.vector *= 0.2
    storage = RolloutStorage(config.num_steps, sum(SIZES), groups[0].single_observation_space, config.frame_stack)
    network = make_network(policy, parameters, storage, 2, 64)
    edges = np.cumsum((0, *SIZES))
    recorded = []
    with closing(groups[0]), closing(groups[1]):
        collectors = [
            Collector(group, storage.columns(*edge), network, config.seed, offset=7)
            for group, edge in zip(groups, itertools.pairwise(edges))
        ]
        for collector in collectors:
            collector.reset(3)
        for number in range(count):
            for seat, collector in enumerate(collectors):
                collector.play(seat, number * config.num_steps)
                log = collector.episodes
                recorded += [log.episodes.copy(), log.places.copy(), collector.levels.copy()]
                assert (collector.step_seconds > 0).all()
            values = np.where(storage.arrays.truncated, storage.arrays.final_values, 0)
            fields = storage.arrays._replace(final_values=values)
            recorded += [np.copy(array) for array in (*fields, *storage.observation_arrays.values())]
            storage.continue_from_end()
        recorded += [np.frombuffer(group.get_state(0), np.uint8) for group in groups]
    return [array.tobytes() for array in recorded], np.concatenate(recorded[:1])


def test_without_the_interpreter(monkeypatch):
    monkeypatch.setattr(Collector, "_play_in_python", None)
    rollouts(make_environments, count=1)


@pytest.mark.parametrize("shared_trunk", [True, False])
@pytest.mark.parametrize("observations", OBSERVATIONS)
def test_equal_to_steps_through_python(observations, shared_trunk):
    compiled, episodes = rollouts(make_environments, observations, shared_trunk=shared_trunk)
    assert compiled == rollouts(wrapped, observations, shared_trunk=shared_trunk)[0]
    assert compiled != rollouts(make_environments, observations, seed=1, shared_trunk=shared_trunk)[0]
    assert len(episodes) > 3
