"""Whole runs on a device, here on a stand-in: those of host memory, resumed with the same bytes, read anywhere."""

import functools
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from nclone_env.errors import NonFiniteError
from nclone_env.train import TrainConfig
from nclone_env.train.learn import learners
from nclone_env.train.loop import train
from nclone_env.train.policies.checkpoint import load_checkpoint
from nclone_env.train.runs.begin import begun_run
from nclone_env.train.runs.estimate import estimate_bytes
from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

from ..env.processor import Processor
from .on_device import as_on_the_processor, choose_device
from .runs import config, contents, until, untimed, vector

CPU = torch.device("cpu")
LEVELS = {"levels": ("first-steps/01-walk", "hazards/01-mind-the-mine"), "max_frames": 160, "frame_skip": 8}
RUNS = {
    "MLP": {},
    "two towers": {"shared_trunk": False},
    "stacks and masks": {"frame_stack": 3, "observations": ("game_state", "action_mask")},
    "curriculum": {"curriculum": "progress"},
    "starts": {"levels": ("first-steps/02-step",), "starts": ("known",), "max_frames": 300},
    "held-out levels": {"levels": ("first-steps",), "held_out": 0.33, "evaluation_interval": 1, "max_frames": 240},
}


def trained(monkeypatch, device, settings, *arguments, **named):
    choose_device(monkeypatch, device)
    return train(settings, *arguments, **named)


@contextmanager
def running(tmp_path, monkeypatch, **fields):
    """Provide a prepared run on a stand-in."""
    choose_device(monkeypatch)
    with begun_run(config(tmp_path, **{**LEVELS, **fields})) as run:
        yield run


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("MLP", "curriculum"))) for name in RUNS]
)
def test_a_run_equals_that_in_host_memory(tmp_path, monkeypatch, name):
    """In the order of minibatches of host memory: as a device has its own, with it the runs differ.

    Adam makes a whole step of a gradient that is nothing but rounding, so single parameters may differ by as much.
    """
    make = functools.partial(config, tmp_path, **{**LEVELS, **RUNS[name]})
    expected = trained(monkeypatch, None, make(name="host"))
    others = trained(monkeypatch, "stand-in", make(name="other"))
    monkeypatch.setattr(learners, "minibatch_orders", as_on_the_processor)
    got = trained(monkeypatch, "stand-in", make(name="device"))
    apart, control = (np.linalg.norm(vector(run) - vector(expected)) for run in (got, others))
    assert 0 < control > 20 * apart
    for row, other in zip(got.curve, expected.curve, strict=True):
        for column in ("episodes", "success_rate", "value_loss", "entropy", "grad_norm", "held_out_success"):
            assert row.get(column, 0) == pytest.approx(other.get(column, 0), rel=1e-3, nan_ok=True), column
    assert got.counters == expected.counters
    assert got.counters.episodes > 0


@pytest.mark.slow
def test_a_run_solves_the_first_steps(tmp_path, monkeypatch):
    """With the size of a GPU and the defaults: 99 % on each level within the first quarter of two million steps."""
    choose_device(monkeypatch)
    size = {"num_envs": 1024, "num_steps": 16, "num_threads": 1}
    result = train(TrainConfig.of(levels=("first-steps",), output=tmp_path, track="none", **size), until(30))
    solved = [row["min_success_rate"] >= 0.99 for row in result.curve]
    assert any(solved)
    assert not solved[0]


def test_the_same_seed_is_the_same_run(tmp_path, monkeypatch):
    """In whatever order the threads of the device end."""
    make = functools.partial(config, tmp_path, **LEVELS)
    one, two, other = (
        trained(monkeypatch, "stand-in", make(name=name, seed=seed)) for name, seed in (("1", 0), ("2", 0), ("3", 1))
    )
    turned = trained(monkeypatch, Processor(lambda count: reversed(range(count))), make(name="turned"))
    assert contents(one.checkpoint) == contents(two.checkpoint) == contents(turned.checkpoint)
    assert untimed(one.curve) == untimed(two.curve)
    assert contents(one.checkpoint) != contents(other.checkpoint)


@pytest.mark.parametrize(
    "name",
    ["stacks and masks", *(pytest.param(name, marks=pytest.mark.slow) for name in ("MLP", "starts", "curriculum"))],
)
def test_a_run_is_resumed_on_any_device(tmp_path, monkeypatch, name):
    """Bit for bit on the same one; checkpoints are those of host memory."""
    make = functools.partial(config, tmp_path, **{**LEVELS, **RUNS[name]})
    whole = trained(monkeypatch, "stand-in", make(name="whole"))
    part = trained(monkeypatch, "stand-in", make(name="part"), until(2))
    assert part.counters.updates == 2
    here = trained(monkeypatch, "stand-in", make(name="here"), resume=part.checkpoint)
    assert contents(here.checkpoint) == contents(whole.checkpoint)
    assert contents(part.checkpoint) != contents(whole.checkpoint)
    monkeypatch.setattr(learners, "minibatch_orders", as_on_the_processor)
    there = trained(monkeypatch, None, make(name="there"), resume=part.checkpoint)
    again = trained(monkeypatch, "stand-in", make(name="again"), resume=part.checkpoint)
    np.testing.assert_allclose(vector(there), vector(again), rtol=0, atol=1e-4)
    saved, expected = load_checkpoint(here.checkpoint), load_checkpoint(there.checkpoint)
    for key, tensor in expected.policy.items():
        got = saved.policy[key]
        assert (got.device, got.dtype, got.shape) == (CPU, tensor.dtype, tensor.shape)
    assert saved.optimiser["count"] == expected.optimiser["count"]


def test_a_warm_start_and_its_resume(tmp_path, monkeypatch):
    level = "first-steps/02-step"
    fields = {"levels": (level,), "warm_start": (level,), "max_frames": 300, "anneal": False}
    make = functools.partial(config, tmp_path, **fields)
    monkeypatch.setattr(learners, "minibatch_orders", as_on_the_processor)
    expected = trained(monkeypatch, None, make(name="host"))
    whole = trained(monkeypatch, "stand-in", make(name="device"))
    assert expected.curve[-1]["clone_kl"] > 1e-3
    for row, other in zip(whole.curve, expected.curve, strict=True):
        # the clone is nearly sure of its actions, where rounding weighs more than in an untrained policy
        assert row["clone_kl"] == pytest.approx(other["clone_kl"], rel=0.1, abs=1e-6)
        assert row["entropy"] == pytest.approx(other["entropy"], rel=0.1)
    half = trained(monkeypatch, "stand-in", make(name="half", total_timesteps=32 * 16 * 2))
    before = vector(half)
    ended = trained(monkeypatch, "stand-in", make(name="half"), resume=half.checkpoint)
    assert np.abs(vector(ended) - before).max() > 1e-3
    np.testing.assert_array_equal(vector(ended), vector(whole))


def test_an_initial_policy_is_the_one_that_acts(tmp_path, monkeypatch):
    """The first rollout of a run that begins from another policy is played by that policy."""
    first = trained(monkeypatch, "stand-in", config(tmp_path, name="first", learning_rate=0.03, **LEVELS))
    once = {"total_timesteps": 32 * 16, "seed": 5, **LEVELS}
    results = {}
    for name, device, init in (("host", None, True), ("device", "stand-in", True), ("fresh", "stand-in", False)):
        settings = config(tmp_path, name=name, **once)
        made = trained(monkeypatch, device, settings, init=first.checkpoint if init else None)
        results[name] = made.curve[0]["entropy"]
    assert results["device"] == pytest.approx(results["host"], rel=0.02)
    assert results["fresh"] > results["device"] + 0.03


def test_nan_is_found(tmp_path, monkeypatch):
    with running(tmp_path, monkeypatch) as run:
        collect_rollout(run)
        compute_returns(run)  # they are there, so the reward alone would change nothing
        for name in ("rewards", "advantages"):
            getattr(run.storage.arrays, name)[3, 4] = np.nan
        with pytest.raises(NonFiniteError, match="got nan or infinity in: rewards;"):
            update_policy(run)


def test_the_state_of_the_environments_stays_on_the_device(tmp_path, monkeypatch):
    """Also while a curriculum chooses levels; only what is saved is copied."""
    with running(tmp_path, monkeypatch, curriculum="progress") as run:
        envs = run.collectors[0].envs
        monkeypatch.setattr(envs, "_pull", lambda *names: pytest.fail("the state is read"))
        monkeypatch.setattr(envs, "_make_calls", lambda: pytest.fail("a recorded rollout would be out of date"))
        for _ in range(2):
            collect_rollout(run)
            update_policy(run)
        assert run.counters.episodes > 0
        with pytest.raises(pytest.fail.Exception, match="the state is read"):
            run.collectors[0].states()
        monkeypatch.undo()


ESTIMATES = {
    "vector": {},
    "stacks": {"frame_stack": 2, "num_threads": 3, "observations": ("game_state", "action_mask")},
    "many": {"num_envs": 600, "num_steps": 16},
    "warm start": {"levels": ("first-steps/01-walk",), "warm_start": ("first-steps/01-walk",), "max_frames": 300},
}


@pytest.mark.parametrize("variant", ESTIMATES)
def test_estimate_equals_use(tmp_path, monkeypatch, variant):
    fields = {"num_minibatches": 2, "update_epochs": 2, "num_envs": 40, "num_steps": 8, "hidden_size": 16}
    with running(tmp_path, monkeypatch, **{**fields, **ESTIMATES[variant]}) as run:
        used = {node.name: node.total_bytes for node in run.memory().children}
        expected = {node.name: node.total_bytes for node in estimate_bytes(run.config).children}
    assert expected.keys() == used.keys() - {"selection"}
    assert expected == {name: used[name] for name in expected}
