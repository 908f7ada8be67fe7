"""Advantages: a hand-computed rollout, and a naive oracle that follows each episode forward."""

import numpy as np
import pytest
import torch

from nclone_env.train.collect.rollout import StepFields
from nclone_env.train.learn.gae import estimate_advantages, write_returns, write_returns_on_device


def run(rewards, values, terminated, truncated, final_values, gamma, gae_lambda):
    arrays = [np.asarray(a, np.float32) for a in (rewards, values)]
    ends = [np.asarray(a, bool) for a in (terminated, truncated)]
    advantages = np.full(arrays[0].shape, np.nan, np.float32)
    returns = advantages.copy()
    final = np.asarray(final_values, np.float32)
    estimate_advantages(*arrays, *ends, final, gamma, gae_lambda, advantages, returns)
    return advantages, returns


def test_by_hand():
    # gamma 0.5, lambda 0.5, so errors are carried back with weight 0.25.
    # t=2: truncated, final value 4: error 1 + 0.5 * 4 - 1 = 2          -> advantage 2
    # t=1: error 2 + 0.5 * 1 - 3 = -0.5; plus 0.25 * 2                  -> 0
    # t=0: terminated: error 5 - 2 = 3, nothing carried                 -> 3
    # t=3: new episode, end of rollout: error 0 + 0.5 * 8 - 1 = 3       -> 3
    advantages, returns = run(
        rewards=[[5], [2], [1], [0]],
        values=[[2], [3], [1], [1], [8]],
        terminated=[[1], [0], [0], [0]],
        truncated=[[0], [0], [1], [0]],
        final_values=[[99], [99], [4], [99]],
        gamma=0.5,
        gae_lambda=0.5,
    )
    assert advantages[:, 0].tolist() == [3, 0, 2, 3]
    assert returns[:, 0].tolist() == [5, 3, 3, 4]


def naive(rewards, values, terminated, truncated, final_values, gamma, gae_lambda):
    steps, environments = rewards.shape
    advantages = np.zeros((steps, environments))
    for i in range(environments):
        for start in range(steps):
            weight = 1.0
            for t in range(start, steps):
                following = values[t + 1, i]
                if truncated[t, i]:
                    following = final_values[t, i]
                if terminated[t, i]:
                    following = 0.0
                advantages[start, i] += weight * (rewards[t, i] + gamma * following - values[t, i])
                weight *= gamma * gae_lambda
                if terminated[t, i] or truncated[t, i]:
                    break
    return advantages


@pytest.mark.parametrize("seed", range(5))
def test_against_naive(seed):
    random = np.random.default_rng(seed)
    shape = (17, 6)
    rewards, final = (random.normal(size=shape).astype(np.float32) for _ in range(2))
    values = random.normal(size=(18, 6)).astype(np.float32)
    terminated, truncated = random.random(shape) < 0.15, random.random(shape) < 0.15  # some are both
    got, returns = run(rewards, values, terminated, truncated, final, 0.97, 0.9)
    expected = naive(rewards, values, terminated, truncated, final, 0.97, 0.9)
    # float32 results of sums of up to 17 terms
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5)
    np.testing.assert_allclose(returns, expected + values[:-1], rtol=0, atol=2e-5)


def test_on_a_device_the_bits_are_those_of_the_processor():
    random, shape = np.random.default_rng(2), (40, 9)
    fields = {name: np.zeros(shape, np.float32) for name in StepFields._fields}
    fields["values"] = np.zeros((shape[0] + 1, shape[1]), np.float32)
    for name in ("values", "rewards", "final_values"):
        fields[name][:] = random.standard_normal(fields[name].shape)
    for name in ("terminated", "truncated"):  # also both at once
        fields[name] = random.random(shape) < 0.2
    on_device = StepFields(*(torch.from_numpy(np.copy(fields[name])) for name in StepFields._fields))
    in_host = StepFields(*(fields[name] for name in StepFields._fields))
    write_returns(in_host, 0.99, 0.9)
    write_returns_on_device(on_device, 0.99, 0.9)
    for name in ("advantages", "returns"):
        assert getattr(on_device, name).numpy().tobytes() == getattr(in_host, name).tobytes()
    write_returns_on_device(on_device, 0.99, 0.89)
    assert on_device.advantages.numpy().tobytes() != in_host.advantages.tobytes()
