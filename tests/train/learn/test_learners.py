"""PPO on a device: the gradients and updates of host memory, and no waiting within an update.

The device is the processor, on which the code for a GPU runs unchanged, and ``meta``, on which every attempt to read a
number fails. Where there is a GPU, it is tested as well.
"""

import functools
from unittest.mock import patch

import numpy as np
import pytest
import torch

from nclone_env.env.threads import Workers
from nclone_env.train.collect.device import DeviceRollout
from nclone_env.train.collect.rollout import stacked_rows
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn import learners
from nclone_env.train.learn.learner import LearnerParts
from nclone_env.train.learn.learners import DevicePPO, minibatch_orders
from nclone_env.train.learn.ppo import PPO
from nclone_env.train.policies.device import DeviceNetwork
from nclone_env.train.policies.torch_network import TorchNetwork
from nclone_env.train.ranks import ALONE

from ..on_device import as_on_the_processor
from ..policies.test_mlp import ENTITIES, STEPS, random_policy, random_rollout

HAS_GPU = torch.cuda.is_available()
DEVICES = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="needs a GPU"))]
)
ENVS = 16
UPDATE = TrainConfig.of(num_steps=STEPS, num_envs=ENVS, num_minibatches=2, update_epochs=2)
CASES = {
    "vector": (("game_state",), False, 1),
    "masks": (("game_state",), True, 1),
    "stacks with masks": (("game_state",), True, 3),
    "encoders": (("locals", "player_frame", *ENTITIES), False, 2),
}
"""Observations, whether there are masks, depth of the stacks."""
EACH = pytest.mark.parametrize("case", CASES)


@pytest.fixture(autouse=True)
def _same_orders(monkeypatch):
    monkeypatch.setattr(learners, "minibatch_orders", as_on_the_processor)


def prepared(case):
    """Return a policy with its parameters, and a rollout of random steps."""
    storage = random_rollout(*CASES[case], reference=True, envs=ENVS)
    return *random_policy(storage, hidden_size=16), storage


def on_device(policy, parameters, storage, settings=UPDATE, device="cpu"):
    place = torch.device(device)
    rollout = DeviceRollout(STEPS, ENVS, storage.space, storage.frame_stack, 6, place)
    for name, array in storage.observation_arrays.items():
        rollout.observation_arrays[name].copy_(torch.from_numpy(array))
    for target, array in zip(rollout.learning_fields, storage.learning_fields, strict=True):
        target.copy_(torch.from_numpy(array))
    rollout.reference.copy_(torch.from_numpy(storage.reference))
    if len(storage.episode_starts):
        rollout.episode_starts.copy_(torch.from_numpy(storage.episode_starts))
    network = DeviceNetwork(policy, parameters, place)
    return DevicePPO(LearnerParts(settings, policy, parameters, rollout, network, None, 64, ALONE, place))


def in_host_memory(policy, parameters, storage, settings=UPDATE):
    workers = Workers(ENVS, 1)
    network = TorchNetwork(policy, parameters, storage, workers.count, 64)
    return PPO(LearnerParts(settings, policy, parameters, storage, network, workers, 64, ALONE, None))


def one_gradient(case, make, coefficient, **fields):
    """Return the gradient of all steps and the statistics, with ``make`` one of the two functions above."""
    settings = TrainConfig.of(num_steps=STEPS, num_envs=ENVS, num_minibatches=1, update_epochs=1, **fields)
    policy, parameters, storage = prepared(case)
    ppo = make(policy, parameters, storage, settings)
    gradients = []

    def record(vector, gradient, *others):
        gradients.append((gradient.cpu().numpy() if isinstance(gradient, torch.Tensor) else gradient).copy())
        return step(vector, gradient, *others)

    owner, name = (learners, "descend") if isinstance(ppo, DevicePPO) else (ppo.optimiser, "step")
    step = getattr(owner, name)
    with patch.object(owner, name, record):
        statistics = ppo.update(1, 1e-3, 0.05, coefficient)
    return parameters.views(gradients[0]), np.array(statistics)


@DEVICES
@EACH
@pytest.mark.parametrize("coefficient", [0.0, 0.7])
def test_gradients_equal_those_in_host_memory(case, coefficient, device):
    expected, statistics = one_gradient(case, in_host_memory, coefficient)
    make = functools.partial(on_device, device=device)
    gradient, got = one_gradient(case, make, coefficient)
    for name, part in expected.items():
        assert np.abs(gradient[name] - part).max() <= 1e-5 * max(np.abs(part).max(), 1e-2), name
    np.testing.assert_allclose(got, statistics, rtol=1e-4, atol=1e-6)
    other, _ = one_gradient(case, make, coefficient + 0.1)
    name = next(name for name in expected if name.startswith("actor"))
    assert np.abs(other[name] - expected[name]).max() > 1e-3 * np.abs(expected[name]).max()


@DEVICES
@EACH
def test_updates_equal_those_in_host_memory(case, device):
    results = []
    for make in (in_host_memory, functools.partial(on_device, device=device)):
        policy, parameters, storage = prepared(case)
        ppo = make(policy, parameters, storage)
        ppo.warm_up()
        for number in (1, 2):
            statistics = ppo.update(number, 1e-3, 0.05, 0.5)
        state = parameters.vector, ppo.optimiser.mean, ppo.optimiser.square
        results.append([*(array.copy() for array in state), np.array(statistics)])
        assert ppo.optimiser.count == 8
    for got, expected in zip(*reversed(results), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)
    policy, parameters, storage = prepared(case)
    in_host_memory(policy, parameters, storage).update(4, 1e-3, 0.05, 0.5)
    assert np.abs(parameters.vector - results[0][0]).max() > 1e-3


def test_a_restored_optimiser_is_the_one_on_the_device():
    whole, part = (on_device(*prepared("vector")) for _ in range(2))
    whole.update(1, 1e-3, 0.05, 0.0)
    part.update(1, 1e-3, 0.05, 0.0)
    policy, parameters, storage = prepared("vector")
    parameters.vector[:] = part._parameters.vector
    resumed = on_device(policy, parameters, storage)
    resumed.warm_up()
    fresh = on_device(*prepared("vector"))
    fresh._parameters.vector[:] = part._parameters.vector
    fresh._network.load()
    resumed.restore({name: np.copy(value) for name, value in part.state().items()})
    for ppo in (whole, resumed, fresh):
        ppo.update(2, 1e-3, 0.05, 0.0)
    assert np.array_equal(parameters.vector, whole._parameters.vector)
    assert not np.array_equal(fresh._parameters.vector, whole._parameters.vector)


@EACH
def test_an_update_waits_once(case, monkeypatch):
    """On ``meta`` there are no numbers, so an operation that has to wait for one fails."""
    fetched = []
    monkeypatch.setattr(learners, "minibatch_orders", minibatch_orders)
    monkeypatch.setattr(learners, "fetch", lambda source, target: fetched.append(tuple(source.shape)))
    policy, parameters, storage = prepared(case)
    ppo = on_device(policy, parameters, storage, device="meta")
    ppo.update(1, 1e-3, 0.05, 0.5)
    assert fetched == [(3 * len(parameters.vector) + 7,)]


def test_waiting_and_other_devices_are_noticed(monkeypatch):
    """Negative controls of the test above: a number that is read, and an operation with a tensor of the processor."""
    monkeypatch.setattr(learners, "minibatch_orders", minibatch_orders)
    monkeypatch.setattr(learners, "fetch", lambda source, target: None)
    loss = learners.module_loss
    for spoil in (lambda loss: loss * loss.item(), lambda loss: loss * torch.ones(3).sum().expand(2)):
        ppo = on_device(*prepared("vector"), device="meta")
        spoilt = lambda *arguments, spoil=spoil: (spoil(loss(*arguments)[0]), loss(*arguments)[1])  # noqa: E731
        monkeypatch.setattr(learners, "module_loss", spoilt)
        with pytest.raises(RuntimeError):
            ppo.update(1, 1e-3, 0.05, 0.0)
    with pytest.raises(RuntimeError):
        stacked_rows(torch.zeros(9, 4, dtype=torch.bool), torch.zeros(5, dtype=torch.int64, device="meta"), 3)


def test_orders_are_permutations_of_their_own():
    orders = {}
    for seed in (0, 1):
        for number in (0, 1):
            made = minibatch_orders(seed, torch.tensor([number]), 3, 1000)
            assert torch.equal(made, minibatch_orders(seed, torch.tensor([number]), 3, 1000))
            for epoch, order in enumerate(made.tolist()):
                assert sorted(order) == list(range(1000))
                orders[seed, number, epoch] = tuple(order)
    assert len(set(orders.values())) == 12
    firsts = np.array([order[0] for order in orders.values()])
    assert len(set(firsts)) > 8
    # the mean distance of a step from its place is a third of the steps; its deviation is 7 of 1000
    distances = [np.abs(np.array(order) - np.arange(1000)).mean() for order in orders.values()]
    assert max(abs(distance - 1000 / 3) for distance in distances) < 40
