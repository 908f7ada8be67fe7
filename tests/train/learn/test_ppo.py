"""The loss worked out by hand, and the update: what Adam gets, and that threads do not change it."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.env.threads import Workers
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.learner import LearnerParts
from nclone_env.train.learn.ppo import PPO, moments, shuffle
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.mlp import MLP
from nclone_env.train.policies.network import ActorCritic, FlatParameters
from nclone_env.train.policies.torch_network import TorchNetwork, ppo_loss
from nclone_env.train.ranks import ALONE

NETWORKS = pytest.mark.parametrize("network", [MLP, TorchNetwork])


def tensors(*columns):
    return [torch.tensor(column, dtype=torch.float32) for column in columns]


def scaling(count, clip=0.2):
    return LossScaling(*np.array([2.0, 1.0, 1 / count, clip, 0.5, 0.01, 0.0], np.float32))


def test_loss_by_hand():
    # Advantages 3, 1 have mean 2 and deviation 1: normalised 1, -1.
    # Ratios 1.5 (clipped to 1.2) and 0.5 (clipped to 0.8).
    # min(1.5 * 1, 1.2 * 1) = 1.2; min(0.5 * -1, 0.8 * -1) = -0.8; policy loss -(1.2 - 0.8) / 2 = -0.2
    # Value loss 0.5 * ((1 - 3)^2 + (2 - 2)^2) / 2 = 1; entropy (1 + 0.5) / 2.
    # KL: ((1.5 - 1 - ln 1.5) + (0.5 - 1 - ln 0.5)) / 2.
    old = LearningFields(
        torch.zeros(2, dtype=torch.int64), *tensors([math.log(0.2), math.log(0.4)], [3.0, 1.0], [3.0, 2.0])
    )
    log_probs = torch.tensor([math.log(0.3), math.log(0.2)], requires_grad=True)
    loss, sums = ppo_loss(log_probs, *tensors([1.0, 0.5], [1.0, 2.0]), old, scaling(2))
    policy, value, entropy, approx_kl, clip_fraction, reference_kl = (sums / 2).tolist()
    assert policy == pytest.approx(-0.2, abs=1e-6)
    assert value == pytest.approx(1.0)
    assert entropy == pytest.approx(0.75)
    assert approx_kl == pytest.approx(-(math.log(1.5) + math.log(0.5)) / 2, abs=1e-6)
    assert clip_fraction == 1.0
    assert reference_kl == 0.0
    assert loss.item() == pytest.approx(-0.2 + 0.5 * 1.0 - 0.01 * 0.75, abs=1e-6)
    loss.backward()
    assert log_probs.grad.tolist() == [0, 0], "both ratios are clipped on the side that stops the gradient"


def test_gradient_flows_where_the_ratio_is_not_clipped():
    # Ratios 1.1 and 0.9, normalised advantages 1, -1: loss -(1.1 - 0.9) / 2, d/dlog = -ratio * advantage / 2.
    old = LearningFields(torch.zeros(2, dtype=torch.int64), *tensors([0.0, 0.0], [3.0, 1.0], [0.0, 0.0]))
    log_probs = torch.tensor([math.log(1.1), math.log(0.9)], requires_grad=True)
    loss, sums = ppo_loss(log_probs, torch.zeros(2), torch.zeros(2), old, scaling(2))
    loss.backward()
    assert sums[0].item() == pytest.approx(-0.2, abs=1e-6)
    assert log_probs.grad.tolist() == pytest.approx([-0.55, 0.45], abs=1e-6)


def trainer(network, config, hidden=16, threads=1, part_size=512, compiled=True):
    """Return an algorithm on a storage with zeroed observations, and what it trains."""
    space = spaces.Dict({"game_state": spaces.Box(-1, 1, (4,), np.float32)})
    storage = RolloutStorage(config.num_steps, config.num_envs, space)
    policy = ActorCritic({"game_state": (4,)}, hidden_size=hidden, generator=torch.Generator().manual_seed(0))
    parameters = FlatParameters(policy)
    workers = Workers(config.num_envs, threads, min_chunk=1)
    made = network(policy, parameters, storage, workers.count, part_size)
    if not compiled:
        made.pass_arrays = lambda seat: None
    parts = LearnerParts(config, policy, parameters, storage, made, workers, part_size, ALONE, None)
    return PPO(parts), storage, policy


def praise(storage, action):
    """Fill a storage with random actions of which one is good."""
    arrays = storage.arrays
    arrays.actions[:] = np.random.default_rng(0).integers(0, 6, arrays.actions.shape)
    arrays.log_probs[:] = -math.log(6)
    arrays.advantages[:] = np.where(arrays.actions == action, 1.0, -1.0)
    arrays.returns[:] = 2.0


@NETWORKS
def test_one_step_is_the_weighted_loss_clipped_and_given_to_adam(network):
    config = TrainConfig.of(
        num_envs=16,
        num_steps=8,
        num_minibatches=1,
        update_epochs=1,
        entropy_coef=0.3,
        value_coef=0.7,
        max_grad_norm=1e-4,  # so small that Adam's epsilon shows whether the gradient was scaled
    )
    ppo, storage, policy = trainer(network, config)
    with torch.no_grad():
        policy.actor.bias.copy_(torch.tensor([1.0, 0.5, 0.0, -0.5, 0.2, 0.1]))  # away from full entropy
    expected = copy.deepcopy(policy)
    praise(storage, 2)
    logits, values = expected({"game_state": torch.zeros(128, 4)})
    log_probs = logits.log_softmax(1)
    chosen = log_probs.gather(1, torch.from_numpy(storage.arrays.actions).reshape(-1, 1)).squeeze(1)
    storage.arrays.log_probs[:] = chosen.detach().reshape(8, 16).numpy()
    statistics = ppo.update(1, 0.01, config.ppo.entropy_coef, 0.0)

    advantages = torch.from_numpy(storage.arrays.advantages).flatten()
    advantages = (advantages - advantages.mean()) / advantages.std(correction=0)
    entropy = -(log_probs.exp() * log_probs).sum(1).mean()
    policy_loss = -((chosen - chosen.detach()).exp() * advantages).mean()  # every ratio is still 1
    (policy_loss + 0.7 * 0.5 * ((values - 2) ** 2).mean() - 0.3 * entropy).backward()
    norm = math.sqrt(sum((p.grad**2).sum().item() for p in expected.parameters()))
    assert statistics.grad_norm == pytest.approx(norm, rel=1e-4)
    for new, old in zip(policy.parameters(), expected.parameters(), strict=True):
        gradient = old.grad * 1e-4 / norm
        stepped = old - 0.01 * gradient / (gradient.abs() + 1e-5)  # the first step of Adam
        torch.testing.assert_close(new, stepped, rtol=0, atol=2e-5)  # order of sums, then divided by 1e-5


@NETWORKS
def test_updates_equal_those_of_torch_adam(network):
    config = TrainConfig.of(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=3)
    ppo, storage, policy = trainer(network, config, compiled=False)
    praise(storage, 1)
    reference = [parameter.detach().clone().requires_grad_() for parameter in policy.parameters()]
    optimiser = torch.optim.Adam(reference, lr=2e-3, eps=1e-5)
    step = ppo.optimiser.step

    def observed(parameters, gradient, learning_rate, max_norm):
        offset = 0
        for parameter in reference:
            values = gradient[offset : offset + parameter.numel()].reshape(parameter.shape)
            parameter.grad, offset = torch.from_numpy(values.copy()), offset + parameter.numel()
        torch.nn.utils.clip_grad_norm_(reference, max_norm)
        optimiser.step()
        return step(parameters, gradient, learning_rate, max_norm)

    ppo.optimiser.step = observed
    ppo.update(1, 2e-3, config.ppo.entropy_coef, 0.0)
    for got, expected in zip(policy.parameters(), reference, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@NETWORKS
def test_results_do_not_depend_on_the_number_of_threads(network):
    config = TrainConfig.of(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=2)
    results = {}
    for threads, seed in ((1, 0), (2, 0), (5, 0), (1, 1)):
        other = TrainConfig.of(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=2, seed=seed)
        ppo, storage, policy = trainer(network, other, threads=threads, part_size=7)
        praise(storage, 3)
        storage.observation_arrays["game_state"][:] = np.random.default_rng(1).random((9, 16, 4))
        statistics = ppo.update(1, 1e-3, config.ppo.entropy_coef, 0.0)
        results[threads, seed] = [parameter.detach().numpy().tobytes() for parameter in policy.parameters()], statistics
    assert results[1, 0] == results[2, 0] == results[5, 0]
    assert results[1, 0] != results[1, 1], "the seed does change them"
    assert config.minibatch_size % 7, "parts differ in size"


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_compiled_descents_equal_those_from_python(threads):
    config = TrainConfig.of(num_envs=16, num_steps=8, num_minibatches=2, update_epochs=2)
    results = []
    for compiled, rate in ((True, 1e-3), (False, 1e-3), (False, 1.1e-3)):
        ppo, storage, policy = trainer(MLP, config, threads=threads, part_size=7, compiled=compiled)
        ppo.warm_up()
        praise(storage, 3)
        storage.observation_arrays["game_state"][:] = np.random.default_rng(1).random((9, 16, 4))
        statistics = [ppo.update(update, rate, config.ppo.entropy_coef, 0.0) for update in (1, 2, 3)]
        state = {name: np.copy(value).tobytes() for name, value in ppo.state().items()}
        results.append(([parameter.detach().numpy().tobytes() for parameter in policy.parameters()], state, statistics))
    assert results[0] == results[1]
    assert results[0][0] != results[2][0], "the learning rate does change them"


def test_a_thread_alone_finishes_what_others_do_not_begin():
    """As on a machine whose other cores are busy; and threads that come later find nothing left."""
    config = TrainConfig.of(num_envs=16, num_steps=8, num_minibatches=4, update_epochs=1)
    ppo, storage, policy = trainer(MLP, config, threads=3, part_size=7)
    alone, alone_storage, alone_policy = trainer(MLP, config, threads=1, part_size=7)
    for each in (storage, alone_storage):
        praise(each, 3)
    seats = []

    def run(task, first, last):
        for number in (2, 0, 1):
            task(number, number, number + 1)
            seats.append(number)

    ppo._workers = SimpleNamespace(run=run, count=3)
    statistics = ppo.update(1, 1e-3, 0.01, 0.0)
    assert seats == [2, 0, 1]
    assert statistics == alone.update(1, 1e-3, 0.01, 0.0)
    for got, expected in zip(policy.parameters(), alone_policy.parameters(), strict=True):
        assert torch.equal(got, expected)


def test_shuffle_is_a_permutation_of_its_own_for_each_seed_update_and_epoch():
    order, seen = np.zeros(1000, np.int64), set()
    for numbers in ((0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)):
        shuffle(order, *numbers)
        assert sorted(order) == list(range(1000))
        first = order.tobytes()
        shuffle(order, *numbers)
        assert order.tobytes() == first
        seen.add(first)
    assert len(seen) == 4


def test_every_place_is_equally_likely():
    counts = np.zeros((8, 8))
    order = np.zeros(8, np.int64)
    for update in range(8000):
        shuffle(order, 0, update, 0)
        counts[np.arange(8), order] += 1
    # five standard deviations of a share of 1/8 among 8,000 draws
    assert np.abs(counts / 8000 - 1 / 8).max() < 5 * math.sqrt(7 / 64 / 8000)


def test_moments():
    values = np.array([1, 5, 2, 9, 4], np.float32)
    mean, deviation = moments(values, np.array([0, 3, 4]))
    assert (mean, deviation) == pytest.approx((14 / 3, np.std([1, 9, 4])))
