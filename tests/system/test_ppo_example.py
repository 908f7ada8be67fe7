"""``examples/ppo.py``: short, the same advantages as the trainer's, and it learns; ``ppo_baseline.py`` submits it.

``examples/ppo_gpu.py`` runs on a stand-in for a GPU."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from nclone_env.benchmark import read_submission, verify
from nclone_env.train.learn.gae import estimate_advantages
from tests.env.processor import Processor

PATH = Path(__file__).parents[2] / "examples" / "ppo.py"


@pytest.fixture
def example():
    """The names that the file defines."""
    threads = torch.get_num_threads()
    yield runpy.run_path(str(PATH))
    torch.set_num_threads(threads)


def test_it_stays_readable():
    assert len(PATH.read_text().splitlines()) <= 160


def test_its_advantages_are_those_of_the_trainer(example):
    random, shape = np.random.default_rng(0), (12, 7)
    rollout = example["Rollout"](*shape, 30)
    for field in (rollout.values, rollout.rewards, rollout.finals):
        field[:] = torch.from_numpy(random.standard_normal(field.shape))
    rollout.terminated[:] = torch.from_numpy(random.random(shape) < 0.2)
    rollout.truncated[:] = torch.from_numpy(random.random(shape) < 0.2) & ~rollout.terminated
    expected, returns = np.zeros((2, *shape), np.float32)
    fields = rollout.rewards, rollout.values, rollout.terminated, rollout.truncated, rollout.finals
    estimate_advantages(*(field.numpy() for field in fields), 0.99, 0.9, expected, returns)
    np.testing.assert_allclose(example["advantages"](rollout, 0.99, 0.9).numpy(), expected, rtol=1e-4, atol=1e-5)
    rollout.truncated[:] = False
    assert np.abs(example["advantages"](rollout, 0.99, 0.9).numpy() - expected).max() > 0.1


def test_a_short_run_depends_on_the_seed_alone(example, capsys):
    printed = []
    for seed in (0, 0, 1):
        size = {"total_timesteps": 2 * 32 * 150, "num_envs": 32, "num_steps": 150, "epochs": 1}
        args = example["Args"](seed=seed, num_threads=1, **size)
        _, success = example["train"](args)
        assert len(success) == 6
        printed.append([line.split("won:")[1] for line in capsys.readouterr().out.splitlines()])
    assert len(printed[0]) == 2
    assert printed[0] == printed[1] != printed[2]


def test_it_is_submitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(PATH.parent), *sys.path])
    baseline = runpy.run_path(str(PATH.parent / "ppo_baseline.py"))
    baseline["main"](baseline["Baseline"](steps=256 * 128, seeds=(0, 1), output=Path("ppo.zip")))
    assert verify("ppo.zip").accepted
    submission = read_submission("ppo.zip")
    assert [(run.seed, run.claimed["steps"], len(run.probable.steps)) for run in submission.runs] == [
        (0, 32768, 16),
        (1, 32768, 16),
    ]
    assert submission.scores["any"]["mean"] > 0


@pytest.fixture
def example_of_a_gpu(example, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(PATH.parent), *sys.path])
    return runpy.run_path(str(PATH.parent / "ppo_gpu.py"))


def test_a_short_run_on_a_device_depends_on_the_seed_alone(example_of_a_gpu, capsys):
    agents = []
    for seed in (0, 0, 1):
        size = {"total_timesteps": 2 * 32 * 40, "num_envs": 32, "num_steps": 40}
        agent, success = example_of_a_gpu["train"](
            example_of_a_gpu["DeviceArgs"](seed=seed, device=Processor(), **size)
        )
        assert len(success) == 6
        agents.append(torch.cat([part.flatten() for part in agent.parameters()]).detach())
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert torch.equal(agents[0], agents[1])
    assert not torch.equal(agents[0], agents[2])


@pytest.mark.slow
def test_it_solves_the_first_steps_on_a_device(example_of_a_gpu):
    assert min(example_of_a_gpu["train"](example_of_a_gpu["DeviceArgs"](device=Processor()))[1]) >= 0.95


@pytest.mark.slow
def test_it_solves_the_first_steps(example):
    assert min(example["train"](example["Args"]())[1]) >= 0.95
