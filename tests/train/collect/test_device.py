"""Rollouts on a device: what the processor records, and no waiting from the first step to the last."""

import sys
from contextlib import closing
from functools import partial

import numpy as np
import pytest
import torch

from nclone_env.env.cuda import NPlusPlusCudaVectorEnv
from nclone_env.errors import ConfigError
from nclone_env.train.collect import device as device_module
from nclone_env.train.collect.collector import Collector
from nclone_env.train.collect.device import DeviceCollector, DeviceRollout
from nclone_env.train.collect.environments import make_environments, on_device
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.gae import write_returns, write_returns_on_device
from nclone_env.train.policies.device import DeviceNetwork, on_host
from nclone_env.train.policies.mlp import make_network
from nclone_env.train.policies.network import FlatParameters
from nclone_env.train.runs.estimate import Nowhere
from nclone_env.train.runs.run import make_policy, observation_shapes

from ...env.processor import Processor

CASES = {
    "vectors": {},
    "masks and sets": {"observations": ("game_state", "entity_states", "action_mask")},
    "pictures": {"observations": ("player_frame",), "picture_size": 32},
    "float16": {"vector_dtype": "float16"},
    "stacks": {"frame_stack": 3, "observations": ("game_state", "action_mask")},
}
ENVS, STEPS, ROLLOUTS = 6, 21, 3


def settings_of(**fields):
    size = {"num_envs": ENVS, "num_steps": STEPS, "num_minibatches": 1}
    return TrainConfig.of(levels=("first-steps", "hazards"), max_frames=60, hidden_size=16, **size, **fields)


def policy_of(config, envs):
    """Return a policy that prefers some actions, and its parameters."""
    policy = make_policy(config, observation_shapes(envs, config.frame_stack))
    parameters = FlatParameters(policy)
    np.random.default_rng(5).standard_normal(out=parameters.vector, dtype=np.float32)
    parameters.vector *= 0.2
    return policy, parameters


def collector_on(device, config, seed=0):
    """Return a collector on a device, and its rollout."""
    envs = on_device(make_environments, device)(config.unstacked_environment, ENVS)
    rollout = DeviceRollout(STEPS, ENVS, envs.single_observation_space, config.frame_stack, 0, device.place)
    network = DeviceNetwork(*policy_of(config, envs), device.place)
    after = partial(write_returns_on_device, rollout.arrays, 0.99, 0.9)
    return DeviceCollector(envs, rollout, network, seed, 0, after), rollout


def recorded(collector, storage):
    """Return what the last rollout recorded as arrays by name; values of episodes that were not truncated as 0."""
    arrays = {name: on_host(array).copy() for name, array in storage.arrays._asdict().items()}
    arrays["final_values"] = np.where(arrays["truncated"], arrays["final_values"], 0)
    seen = {name: on_host(array).copy() for name, array in storage.observation_arrays.items()}
    return {**arrays, **seen, "episodes": np.array(collector.episodes.episodes.tolist())}


def played(collector, storage, finish=lambda: None):
    """Return what some rollouts record."""
    made = []
    with closing(collector.envs):
        collector.reset(3)
        for number in range(ROLLOUTS):
            collector.play(0, number * STEPS)
            finish()
            collector.finish()
            made.append(recorded(collector, storage))
            storage.continue_from_end()
    return made


def on_the_processor(config):
    """Return what the same rollouts record in host memory."""
    envs = make_environments(config.unstacked_environment, ENVS)
    storage = RolloutStorage(STEPS, ENVS, envs.single_observation_space, config.frame_stack)
    network = make_network(*policy_of(config, envs), storage, 1, 64)
    collector = Collector(envs, storage.columns(0, ENVS), network, 0)
    return played(collector, storage, lambda: write_returns(storage.arrays, 0.99, 0.9))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (case == "masks and sets")) for case in CASES]
)
def test_rollouts_are_those_of_the_processor(case, monkeypatch):
    """Bit for bit, but for what the network computes, which rounds in another order."""
    monkeypatch.setattr(device_module, "_LISTED_STEPS", STEPS)
    config = settings_of(**CASES[case])
    expected, got = on_the_processor(config), played(*collector_on(Processor(), config))
    assert max(len(each["episodes"]) for each in expected) > ENVS, "more than come without a further copy"
    assert any(each["truncated"].any() for each in expected)
    for left, right in zip(expected, got, strict=True):
        assert left.keys() == right.keys()
        for name, array in left.items():
            if name in ("log_probs", "values", "final_values", "advantages", "returns"):
                np.testing.assert_allclose(right[name], array, rtol=1e-4, atol=1e-5)
            else:
                assert right[name].tobytes() == array.tobytes(), name
    other = played(*collector_on(Processor(), config, seed=1))
    assert other[0]["actions"].tobytes() != expected[0]["actions"].tobytes()


def test_a_list_with_room_for_all_holds_the_same_episodes(monkeypatch):
    config = settings_of()
    monkeypatch.setattr(device_module, "_LISTED_STEPS", 1)
    whole = played(*collector_on(Processor(), config))
    assert max(len(each["episodes"]) for each in whole) > ENVS
    monkeypatch.setattr(device_module, "_LISTED_STEPS", STEPS)
    for left, right in zip(whole, played(*collector_on(Processor(), config)), strict=True):
        assert left["episodes"].tobytes() == right["episodes"].tobytes()


@pytest.mark.parametrize("case", CASES)
def test_a_rollout_waits_for_nothing(case, monkeypatch):
    """On ``meta`` there are no numbers, so an operation that has to wait for one fails."""
    monkeypatch.setattr(NPlusPlusCudaVectorEnv, "_pull", lambda self, *names: None)
    monkeypatch.setattr(sys.modules[__name__], "STEPS", device_module._LISTED_STEPS)
    fetched = []
    monkeypatch.setattr(device_module, "fetch_later", lambda source, target: fetched.append(tuple(source.shape)))
    collector, rollout = collector_on(Nowhere(), settings_of(**CASES[case]))
    collector.reset(3)
    for step in (0, STEPS):
        collector.play(0, step)
        rollout.continue_from_end()
    assert fetched == [(1 + 6 * ENVS,)] * 2, "one copy, which is begun and not waited for"
    monkeypatch.setattr(device_module, "sampled", lambda logits, mask, uniform: (uniform.argmax().item(), logits))
    with pytest.raises(RuntimeError, match="meta"):
        collector.play(0, 0)


def test_environments_of_ones_own_are_refused():
    with pytest.raises(ConfigError, match=r"device: expected cpu with environments of your own, .* got meta"):
        on_device(lambda config, num_envs: None, Nowhere())
    make = on_device(make_environments, Processor())
    environment = settings_of(observations=("game_state", "reachability")).unstacked_environment
    with pytest.raises(ConfigError, match="observations: expected none of graph, reachability"):
        make(environment, 2)


def test_states_are_restored_with_one_copy():
    collector, rollout = collector_on(Processor(), settings_of())
    with closing(collector.envs):
        collector.reset(3)
        states = collector.states()
        collector.play(0, 0)
        collector.finish()
        first = recorded(collector, rollout)
        assert collector.states() != states
        collector.restore(states)
        rollout.arrays.actions.zero_()
        for name, rows in rollout.observation_arrays.items():
            rows[0].copy_(torch.from_numpy(first[name][0]))
        collector.play(0, 0)
        assert recorded(collector, rollout)["actions"].tobytes() == first["actions"].tobytes()
        assert (collector.step_seconds > 0).all()
