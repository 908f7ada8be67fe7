"""The policy on a device: the same gradients, updates and runs as in host memory, and no waiting within an update.

The device is the processor, on which the code for a GPU runs unchanged, and ``meta``, on which every attempt to read a
number fails. Where there is a GPU, it is tested as well.
"""

import functools
import itertools
from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
import torch

from nclone_env.env.threads import Workers
from nclone_env.errors import NonFiniteError
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.rollout import stacked_rows
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn import learners as device_update
from nclone_env.train.learn.learner import LearnerParts
from nclone_env.train.learn.learners import DevicePPO
from nclone_env.train.learn.ppo import PPO
from nclone_env.train.loop import train
from nclone_env.train.policies import torch_network
from nclone_env.train.policies.checkpoint import load_checkpoint
from nclone_env.train.policies.torch_network import TorchNetwork
from nclone_env.train.ranks import ALONE
from nclone_env.train.runs import estimate
from nclone_env.train.runs import run as run_module
from nclone_env.train.runs.begin import begun_run
from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

from ..policies.test_mlp import ENTITIES, STEPS, random_policy, random_rollout
from ..runs import config, contents, until, vector
from ..stub import LineWorld

CPU = torch.device("cpu")
TRANSFERRING = (device_update, torch_network)
HAS_GPU = torch.cuda.is_available()
DEVICES = pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="needs a GPU"))]
)
ENVS = 16
UPDATE = TrainConfig.of(num_steps=STEPS, num_envs=ENVS, num_minibatches=2, update_epochs=2, device="auto")
CASES = {
    "vector": (("game_state",), False, 1),
    "masks": (("game_state",), True, 1),
    "stacks with masks": (("game_state",), True, 3),
    "encoders": (("locals", "player_frame", *ENTITIES), False, 2),
}
"""Observations, whether there are masks, depth of the stacks."""
EACH = pytest.mark.parametrize("case", CASES)


def prepared(case):
    """Return a policy with its parameters, and a rollout of random steps."""
    storage = random_rollout(*CASES[case], reference=True, envs=ENVS, pinned=HAS_GPU)
    return *random_policy(storage, hidden_size=16), storage


def on_device(policy, parameters, storage, settings=UPDATE, device="cpu"):
    network = TorchNetwork(policy, parameters, storage, 2, 64, torch.device(device))
    parts = LearnerParts(settings, policy, parameters, storage, network, None, 64, ALONE, torch.device(device))
    return network, DevicePPO(parts)


def in_host_memory(policy, parameters, storage, settings=UPDATE):
    workers = Workers(ENVS, 1)
    network = TorchNetwork(policy, parameters, storage, workers.count, 64)
    return network, PPO(LearnerParts(settings, policy, parameters, storage, network, workers, 64, ALONE, None))


def one_gradient(case, make, coefficient, **fields):
    """Return the gradient of all steps and the statistics, with ``make`` one of the two functions above."""
    settings = TrainConfig.of(
        num_steps=STEPS, num_envs=ENVS, num_minibatches=1, update_epochs=1, device="auto", **fields
    )
    policy, parameters, storage = prepared(case)
    _, ppo = make(policy, parameters, storage, settings)
    gradients = []

    def record(vector, gradient, *others):
        gradients.append((gradient.cpu().numpy() if isinstance(gradient, torch.Tensor) else gradient).copy())
        return step(vector, gradient, *others)

    owner, name = (device_update, "descend") if isinstance(ppo, DevicePPO) else (ppo.optimiser, "step")
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
def test_outputs_and_updates_equal_those_in_host_memory(case, device):
    results = []
    for make in (in_host_memory, functools.partial(on_device, device=device)):
        policy, parameters, storage = prepared(case)
        network, ppo = make(policy, parameters, storage)
        for number in (1, 2):
            statistics = ppo.update(number, 1e-3, 0.05, 0.5)
        columns = storage.columns(3, 11)
        logits, values = network.outputs(1, columns.observation())
        state = parameters.vector, ppo.optimiser.mean, ppo.optimiser.square
        results.append([*(array.copy() for array in (*state, logits, values)), np.array(statistics)])
        assert ppo.optimiser.count == 8
        assert logits.flags.c_contiguous
        assert logits.flags.writeable
    for got, expected in zip(*reversed(results), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)
    policy, parameters, storage = prepared(case)
    _, ppo = in_host_memory(policy, parameters, storage)
    ppo.update(4, 1e-3, 0.05, 0.5)
    assert np.abs(parameters.vector - results[0][0]).max() > 1e-3


@EACH
def test_an_update_waits_once(case, monkeypatch):
    """On ``meta`` there are no numbers, so an operation that has to wait for one fails."""
    for module in TRANSFERRING:
        monkeypatch.setattr(module, "fetch", lambda source, target: fetched.append(tuple(source.shape)))
    policy, parameters, storage = prepared(case)
    fetched = []
    network, ppo = on_device(policy, parameters, storage, device="meta")
    ppo.update(1, 1e-3, 0.05, 0.5)
    assert fetched == [(3 * len(parameters.vector) + 7,)]
    network.outputs(0, storage.columns(0, 4).observation())
    assert fetched[1:] == [(4 * 7,)]
    assert network.vector.is_meta


def test_waiting_and_other_devices_are_noticed(monkeypatch):
    """Negative controls of the test above: a number that is read, and an operation with a tensor of the processor."""
    for module in TRANSFERRING:
        monkeypatch.setattr(module, "fetch", lambda source, target: None)
    loss = device_update.module_loss
    for spoil in (lambda loss: loss * loss.item(), lambda loss: loss * torch.ones(3).sum().expand(2)):
        _, ppo = on_device(*prepared("vector"), device="meta")
        spoilt = lambda *arguments, spoil=spoil: (spoil(loss(*arguments)[0]), loss(*arguments)[1])  # noqa: E731
        monkeypatch.setattr(device_update, "module_loss", spoilt)
        with pytest.raises(RuntimeError):
            ppo.update(1, 1e-3, 0.05, 0.0)
    with pytest.raises(RuntimeError):
        stacked_rows(torch.zeros(9, 4, dtype=torch.bool), torch.zeros(5, dtype=torch.int64, device="meta"), 3)


@pytest.mark.parametrize("threads", [1, 2])
def test_transfers_are_counted(tmp_path, monkeypatch, threads):
    """One transfer back for each vector step of a group, one for its last values, one for the update."""
    with running(tmp_path, monkeypatch, num_threads=threads, num_envs=80, max_frames=10**4) as run:
        made, groups = noted_transfers(monkeypatch), len(run.collectors)
        collect_rollout(run)
        compute_returns(run)
        counts = Counter(made)
        made.clear()
        update_policy(run)
    assert groups > 1
    assert counts == dict.fromkeys(("send", "fetch"), (run.config.num_steps + 1) * groups)
    # parameters, two moments, order, numbers; one observation; actions, log probabilities, advantages, returns
    assert Counter(made) == {"fetch": 1, "send": 10}


def noted_transfers(monkeypatch):
    """Return a list to which the name of each copy from or to the device is appended."""
    made = []

    def noted(name, real, *arguments):
        made.append(name)
        real(*arguments)

    for module, name in itertools.product(TRANSFERRING, ("send", "fetch")):
        monkeypatch.setattr(module, name, functools.partial(noted, name, getattr(module, name)))
    return made


@contextmanager
def running(tmp_path, monkeypatch, device=CPU, make_envs=LineWorld, **fields):
    """Provide a prepared run on a device."""
    monkeypatch.setattr(run_module, "learning_device", lambda *arguments: device)
    with begun_run(config(tmp_path, **fields), make_envs=make_envs) as run:
        yield run


def trained(monkeypatch, device, settings, *arguments, **named):
    monkeypatch.setattr(run_module, "learning_device", lambda *all_of_them: device)
    return train(settings, *arguments, **named)


RUNS = {
    "MLP": (LineWorld, {}),
    "stacks": (LineWorld, {"frame_stack": 3, "num_envs": 80, "total_timesteps": 80 * 16 * 4}),
    "two towers": (LineWorld, {"shared_trunk": False}),
    "held-out levels": (LineWorld, {"held_out": 0.33, "evaluation_interval": 1, "curriculum": "progress"}),
    "masks": (make_environments, {"observations": ("game_state", "action_mask"), "max_frames": 40}),
}


@DEVICES
@pytest.mark.parametrize("name", RUNS)
def test_a_run_equals_that_in_host_memory(tmp_path, monkeypatch, name, device):
    make_envs, fields = RUNS[name]
    make = functools.partial(config, tmp_path, **fields)
    expected = trained(monkeypatch, None, make(name="host"), make_envs=make_envs)
    got = trained(monkeypatch, torch.device(device), make(name="device"), make_envs=make_envs)
    np.testing.assert_allclose(vector(got), vector(expected), rtol=0, atol=1e-4)
    for row, other in zip(got.curve, expected.curve, strict=True):
        for column in ("episodes", "success_rate", "value_loss", "entropy", "grad_norm", "held_out_success"):
            assert row.get(column, 0) == pytest.approx(other.get(column, 0), rel=1e-3, nan_ok=True), column
    other = trained(monkeypatch, torch.device(device), make(name="other", seed=1), make_envs=make_envs)
    assert np.abs(vector(other) - vector(expected)).max() > 1e-2


@DEVICES
def test_a_run_is_resumed_on_any_device(tmp_path, monkeypatch, device):
    """Bit for bit on the same one, equal to the rounding of sums on another; checkpoints are those of host memory."""
    make, device = functools.partial(config, tmp_path), torch.device(device)
    whole = trained(monkeypatch, device, make(name="whole"), make_envs=LineWorld)
    in_host = trained(monkeypatch, None, make(name="host"), make_envs=LineWorld)
    part = trained(monkeypatch, device, make(name="part"), until(2), make_envs=LineWorld)
    host_part = trained(monkeypatch, None, make(name="host part"), until(2), make_envs=LineWorld)
    assert part.counters.updates == host_part.counters.updates == 2
    here = trained(monkeypatch, device, make(name="here"), resume=part.checkpoint, make_envs=LineWorld)
    if device == CPU:
        assert contents(here.checkpoint) == contents(whole.checkpoint)
    there = trained(monkeypatch, None, make(name="there"), resume=part.checkpoint, make_envs=LineWorld)
    back = trained(monkeypatch, device, make(name="back"), resume=host_part.checkpoint, make_envs=LineWorld)
    for result in (here, there, back, whole):
        np.testing.assert_allclose(vector(result), vector(in_host), rtol=0, atol=1e-4)
    assert np.abs(vector(part) - vector(whole)).max() > 1e-3
    saved, expected = load_checkpoint(here.checkpoint), load_checkpoint(in_host.checkpoint)
    for name, tensor in expected.policy.items():
        got = saved.policy[name]
        assert (got.device, got.dtype, got.shape) == (CPU, tensor.dtype, tensor.shape)
    assert saved.optimiser["count"] == expected.optimiser["count"]
    torch.testing.assert_close(saved.optimiser["mean"], expected.optimiser["mean"], rtol=0, atol=1e-4)


@DEVICES
def test_a_warm_start_and_its_resume(tmp_path, monkeypatch, device):
    level = "first-steps/02-step"
    fields = {"levels": (level,), "warm_start": (level,), "max_frames": 300, "anneal": False}
    make, device = functools.partial(config, tmp_path, **fields), torch.device(device)
    expected = trained(monkeypatch, None, make(name="host"))
    whole = trained(monkeypatch, device, make(name="device"))
    assert expected.curve[-1]["clone_kl"] > 1e-3
    for row, other in zip(whole.curve, expected.curve, strict=True):
        # the clone is nearly sure of its actions, where rounding weighs more than in an untrained policy
        assert row["clone_kl"] == pytest.approx(other["clone_kl"], rel=0.1, abs=1e-6)
        assert row["entropy"] == pytest.approx(other["entropy"], rel=0.1)
    half = trained(monkeypatch, device, make(name="half", total_timesteps=32 * 16 * 2))
    before = vector(half)
    ended = trained(monkeypatch, device, make(name="half"), resume=half.checkpoint)
    assert np.abs(vector(ended) - before).max() > 1e-3
    if device == CPU:
        np.testing.assert_array_equal(vector(ended), vector(whole))


def test_an_initial_policy_is_the_one_that_acts(tmp_path, monkeypatch):
    """The first rollout of a run that begins from another policy is played by that policy."""
    first = trained(monkeypatch, CPU, config(tmp_path, name="first", learning_rate=0.03), make_envs=LineWorld)
    once = {"total_timesteps": 32 * 16, "seed": 5}
    results = {}
    for name, device, init in (("host", None, True), ("device", CPU, True), ("fresh", CPU, False)):
        settings = config(tmp_path, name=name, **once)
        made = trained(monkeypatch, device, settings, make_envs=LineWorld, init=first.checkpoint if init else None)
        results[name] = made.curve[0]["entropy"]
    assert results["device"] == pytest.approx(results["host"], rel=1e-4)
    assert results["fresh"] > results["device"] + 0.03


def test_nan_is_found(tmp_path, monkeypatch):
    with running(tmp_path, monkeypatch) as run:
        collect_rollout(run)
        run.storage.arrays.rewards[3, 4] = np.nan
        compute_returns(run)
        with pytest.raises(NonFiniteError, match="got nan or infinity in: rewards;"):
            update_policy(run)


VARIANTS = {
    "vector": {},
    "stacks": {"frame_stack": 2, "num_threads": 3, "observations": ("game_state", "action_mask")},
    "warm start": {"warm_start": ("first-steps/01-walk",), "max_frames": 300},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_estimate_equals_use(tmp_path, monkeypatch, variant):
    monkeypatch.setattr(estimate, "learning_device", lambda *arguments: CPU)
    fields = {"num_minibatches": 2, "update_epochs": 2, "num_envs": 40, "num_steps": 8, "hidden_size": 16}
    with running(tmp_path, monkeypatch, make_envs=make_environments, **{**fields, **VARIANTS[variant]}) as run:
        used = {node.name: node.total_bytes for node in run.memory().children}
        expected = {node.name: node.total_bytes for node in estimate.estimate_bytes(run.config).children}
    for name in ("parameters", "rollout storage", "network scratch", "update", "reference policy"):
        assert expected.get(name) == used.get(name), name
