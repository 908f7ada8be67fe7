"""The loss worked out by hand, and the update on a storage with a known best action."""

import copy
import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.train.config import TrainConfig
from nclone_env.train.policy import ActorCritic
from nclone_env.train.ppo import PPO, compute_losses
from nclone_env.train.rollout import Minibatch, RolloutStorage


def minibatch(log_probs, advantages, returns):
    tensors = [torch.tensor(x, dtype=torch.float32) for x in (log_probs, advantages, returns)]
    return Minibatch({}, torch.zeros(len(advantages), dtype=torch.int64), *tensors)


def test_losses_by_hand():
    # Advantages 3, 1 have mean 2 and deviation 1: normalised 1, -1.
    # Ratios 1.5 (clipped to 1.2) and 0.5 (clipped to 0.8).
    # min(1.5 * 1, 1.2 * 1) = 1.2; min(0.5 * -1, 0.8 * -1) = -0.8; policy loss -(1.2 - 0.8) / 2 = -0.2
    # Value loss 0.5 * ((1 - 3)^2 + (2 - 2)^2) / 2 = 1; entropy (1 + 0.5) / 2.
    # KL: ((1.5 - 1 - ln 1.5) + (0.5 - 1 - ln 0.5)) / 2.
    old = minibatch([math.log(0.2), math.log(0.4)], [3.0, 1.0], [3.0, 2.0])
    log_probs = torch.tensor([math.log(0.3), math.log(0.2)], requires_grad=True)
    losses = compute_losses(log_probs, torch.tensor([1.0, 0.5]), torch.tensor([1.0, 2.0]), old, clip_coef=0.2)
    assert losses.policy.item() == pytest.approx(-0.2, abs=1e-6)
    assert losses.value.item() == pytest.approx(1.0)
    assert losses.entropy.item() == pytest.approx(0.75)
    assert losses.approx_kl.item() == pytest.approx(-(math.log(1.5) + math.log(0.5)) / 2, abs=1e-6)
    assert losses.clip_fraction.item() == 1.0
    losses.policy.backward()
    assert log_probs.grad.tolist() == [0, 0], "both ratios are clipped on the side that stops the gradient"


def test_gradient_flows_where_the_ratio_is_not_clipped():
    # Ratios 1.1 and 0.9, normalised advantages 1, -1: loss -(1.1 - 0.9) / 2, d/dlog = -ratio * advantage / 2.
    old = minibatch([0.0, 0.0], [3.0, 1.0], [0.0, 0.0])
    log_probs = torch.tensor([math.log(1.1), math.log(0.9)], requires_grad=True)
    losses = compute_losses(log_probs, torch.zeros(2), torch.zeros(2), old, clip_coef=0.2)
    losses.policy.backward()
    assert losses.policy.item() == pytest.approx(-0.1, abs=1e-6)
    assert log_probs.grad.tolist() == pytest.approx([-0.55, 0.45], abs=1e-6)


def storage_that_praises(action, config):
    space = spaces.Dict({"game_state": spaces.Box(-1, 1, (4,), np.float32)})
    storage = RolloutStorage(config.num_steps, config.num_envs, space, config.minibatch_size)
    random = np.random.default_rng(0)
    storage.arrays.actions[:] = random.integers(0, 6, storage.arrays.actions.shape)
    storage.arrays.log_probs[:] = -math.log(6)
    storage.arrays.advantages[:] = np.where(storage.arrays.actions == action, 1.0, -1.0)
    storage.arrays.returns[:] = 2.0
    return storage


def test_update_raises_the_probability_of_praised_actions():
    config = TrainConfig(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=4)
    generator = torch.Generator().manual_seed(0)
    policy = ActorCritic({"game_state": (4,)}, 16, generator)
    ppo = PPO(policy, config, generator)
    seen = {"game_state": torch.zeros(1, 4)}
    (before, _), value_before = policy(seen), policy.value(seen)
    statistics = ppo.update(storage_that_praises(4, config))
    (after, _), value_after = policy(seen), policy.value(seen)
    gains = (after - before)[0]
    assert gains.argmax().item() == 4
    assert abs(value_after - 2) < abs(value_before - 2)
    assert all(isinstance(value, float) and math.isfinite(value) for value in statistics)
    assert statistics.entropy == pytest.approx(math.log(6), abs=0.05)


def test_one_step_is_the_weighted_loss_clipped_and_given_to_adam():
    config = TrainConfig(
        num_envs=16,
        num_steps=8,
        num_minibatches=1,
        update_epochs=1,
        entropy_coef=0.3,
        value_coef=0.7,
        max_grad_norm=1e-4,  # so small that Adam's epsilon shows whether the gradient was scaled
        learning_rate=0.01,
    )
    generator = torch.Generator().manual_seed(0)
    policy = ActorCritic({"game_state": (4,)}, 16, generator)
    with torch.no_grad():
        policy.actor[-1].bias.copy_(torch.tensor([1.0, 0.5, 0.0, -0.5, 0.2, 0.1]))  # away from full entropy
    expected = copy.deepcopy(policy)
    storage = storage_that_praises(2, config)
    log_probs, values = expected({"game_state": torch.zeros(128, 4)})
    chosen = log_probs.gather(1, storage.tensors.actions.reshape(-1, 1)).squeeze(1)
    storage.tensors.log_probs.copy_(chosen.detach().reshape(8, 16))
    statistics = PPO(policy, config, generator).update(storage)

    praise = storage.tensors.advantages.flatten()
    praise = (praise - praise.mean()) / praise.std(correction=0)
    entropy = -(log_probs.exp() * log_probs).sum(1).mean()
    policy_loss = -((chosen - chosen.detach()).exp() * praise).mean()  # every ratio is still 1
    (policy_loss + 0.7 * 0.5 * ((values - 2) ** 2).mean() - 0.3 * entropy).backward()
    norm = math.sqrt(sum((p.grad**2).sum().item() for p in expected.parameters()))
    assert statistics.grad_norm == pytest.approx(norm, rel=1e-4)
    for new, old in zip(policy.parameters(), expected.parameters()):
        gradient = old.grad * 1e-4 / norm
        stepped = old - 0.01 * gradient / (gradient.abs() + 1e-5)  # the first step of Adam
        torch.testing.assert_close(new, stepped, rtol=0, atol=2e-5)  # order of sums, then divided by 1e-5


def test_learning_rate_reaches_the_optimiser():
    policy = ActorCritic({"game_state": (4,)}, 16)
    ppo = PPO(policy, TrainConfig(num_envs=16, num_steps=8), torch.Generator())
    ppo.set_learning_rate(0.0)
    before = [p.clone() for p in policy.parameters()]
    ppo.update(storage_that_praises(1, TrainConfig(num_envs=16, num_steps=8)))
    assert all(torch.equal(a, b) for a, b in zip(before, policy.parameters()))
