"""Warm start: PPO begins from the clone, stays close to it, and continues from a checkpoint bit by bit."""

import functools

import numpy as np
import pytest
import torch

from nclone_env.env.threads import Workers
from nclone_env.errors import ConfigError
from nclone_env.level import known_solutions, load_level
from nclone_env.level.formats.text import format_text
from nclone_env.replay.recording import Recording
from nclone_env.train import CloningSettings, Hooks, TrainConfig, clone, load_checkpoint, train
from nclone_env.train.learn.reference import Reference
from nclone_env.train.runs import warm_start
from nclone_env.train.runs.warm_start import reference_coefficient

from ..policies.test_mlp import random_policy, random_rollout
from . import vector

LEVEL = "first-steps/02-step"
UPDATES, STEPS = 4, 16 * 32


def config(folder, **fields):
    fixed = {"levels": (LEVEL,), "warm_start": (LEVEL,), "num_envs": 16, "num_steps": 32, "hidden_size": 32}
    limits = {"total_timesteps": UPDATES * STEPS, "clone_kl_steps": 3 * STEPS, "num_minibatches": 2}
    constant = {"anneal": False, "entropy_coef": 0.01, "update_epochs": 4}
    return TrainConfig.of(output=folder, **{**fixed, **limits, **constant, **fields})


@pytest.fixture
def rough_clones(monkeypatch):
    """Learn from a tenth of the minibatches, where it does not matter how good a clone is."""
    settings = CloningSettings(least_updates=500, max_epochs=30)
    monkeypatch.setattr(warm_start, "clone", functools.partial(clone, settings=settings))


def test_a_run_begins_from_the_clone(tmp_path):
    started = []
    result = train(config(tmp_path), Hooks(on_warm_start=started.append))
    (warm,) = started
    assert warm.demonstrated.sources == [LEVEL]
    assert warm.cloning.accuracy > 0.8
    without = train(config(tmp_path, name="without", warm_start=()))
    assert result.curve[0]["entropy"] < 1.0 < 1.7 < without.curve[0]["entropy"] < np.log(6)
    assert [row["clone_kl"] > 0 for row in result.curve] == [True, True, True, False], "the coefficient has decayed"
    assert all(row["clone_kl"] == 0 for row in without.curve)
    assert load_checkpoint(without.checkpoint).reference == {}


def test_a_run_begins_from_what_the_planner_shows(tmp_path):
    started = []
    path = tmp_path / "mine.toml"
    path.write_text(format_text(load_level(LEVEL).raw))
    planned = config(tmp_path, levels=(str(path),), warm_start=("planned",), max_frames=480)
    result = train(planned, Hooks(on_warm_start=started.append))
    (warm,) = started
    assert warm.cloning.accuracy > 0.8
    assert len(warm.demonstrated.trajectories) == 1
    assert result.curve[0]["entropy"] < 1.0
    assert result.curve[-1]["success_rate"] > 0.5  # about 0 with random actions


@pytest.mark.usefixtures("rough_clones")
def test_the_penalty_keeps_the_policy_close(tmp_path):
    strong, weak, none = (
        train(config(tmp_path, name=str(coef), clone_kl_coef=coef, clone_kl_steps=10**9, learning_rate=3e-3))
        for coef in (100.0, 1e-6, 0.0)
    )
    far, near, unmeasured = (sum(row["clone_kl"] for row in result.curve) for result in (weak, strong, none))
    assert near < 0.5 * far
    assert unmeasured == 0
    np.testing.assert_allclose(vector(weak), vector(none), atol=1e-3)  # a millionth of the penalty is almost none
    assert not np.allclose(vector(strong), vector(none), atol=1e-3)


@pytest.mark.usefixtures("rough_clones")
def test_a_resumed_run_ends_in_the_same_bytes(tmp_path):
    whole = train(config(tmp_path, name="whole", anneal=True))
    half = train(config(tmp_path, name="half", total_timesteps=2 * STEPS, anneal=False))
    reference = train(config(tmp_path, name="reference", anneal=False))
    resumed = train(config(tmp_path, name="resumed", anneal=False), resume=half.checkpoint)
    np.testing.assert_array_equal(vector(resumed), vector(reference))
    assert not np.array_equal(vector(whole), vector(reference)), "control: another learning rate"
    clone = load_checkpoint(half.checkpoint).reference
    assert all(torch.equal(value, load_checkpoint(resumed.checkpoint).reference[name]) for name, value in clone.items())


@pytest.mark.usefixtures("rough_clones")
def test_a_resume_reads_no_recordings(tmp_path):
    recording = tmp_path / "win.replay"
    Recording.of(LEVEL, known_solutions()[LEVEL]).save(recording)
    half = train(config(tmp_path, total_timesteps=STEPS, warm_start=(str(recording),)))
    recording.unlink()
    resumed = train(config(tmp_path, name="on", warm_start=(str(recording),)), resume=half.checkpoint)
    assert resumed.counters.updates == UPDATES


@pytest.mark.usefixtures("rough_clones")
def test_threads_do_not_change_the_result(tmp_path):
    one, two, three, seeded = (
        vector(train(config(tmp_path, name=f"{threads}-{seed}", num_threads=threads, seed=seed, total_timesteps=STEPS)))
        for threads, seed in ((1, 0), (2, 0), (3, 0), (2, 1))
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(three, two)
    assert not np.array_equal(two, seeded)


@pytest.mark.usefixtures("rough_clones")
@pytest.mark.parametrize("fields", [{"frame_stack": 2}, {"shared_trunk": False}])
def test_other_networks(tmp_path, fields):
    result = train(config(tmp_path, total_timesteps=STEPS, **fields))
    assert result.curve[0]["clone_kl"] > 0


@pytest.mark.parametrize("frame_stack", [1, 3])
def test_probabilities_of_the_reference(frame_stack):
    """Against torch, over more steps than a part, with masks; stacks take theirs from the newest observation."""
    storage = random_rollout(("game_state",), True, frame_stack, reference=True)
    policy, _ = random_policy(storage)
    with torch.no_grad():
        policy.actor.weight.mul_(3)  # far from uniform
    reference = Reference(policy, storage, 3, 50)
    with torch.no_grad():
        policy.actor.weight.zero_()  # what is trained afterwards does not matter
    workers = Workers(len(storage.reference), 2, min_chunk=1)
    reference.evaluate(workers)
    workers.close()
    seen = storage.observation_buffers(len(storage.reference))
    storage.gather(torch.arange(len(storage.reference)), seen)
    logits = reference.policy(seen)[0].detach()
    masks = storage.observation_arrays["action_mask"][frame_stack - 1 : -1]
    newest = torch.from_numpy(masks.reshape(-1, 6))
    expected = torch.softmax(logits.masked_fill(newest == 0, -torch.inf), 1).numpy()
    np.testing.assert_allclose(storage.reference, expected, rtol=1e-4, atol=1e-6)
    assert (storage.reference.max(axis=1) > 0.5).mean() > 0.3


def test_the_coefficient_decays(tmp_path):
    settings = config(tmp_path, clone_kl_coef=0.4, clone_kl_steps=4 * STEPS)
    values = [reference_coefficient(settings, STEPS * update) for update in range(1, 7)]
    np.testing.assert_allclose(values, [0.4, 0.3, 0.2, 0.1, 0.0, 0.0])
    assert reference_coefficient(config(tmp_path, warm_start=()), STEPS) == 0


def test_recordings_that_lose_are_named(tmp_path):
    losing = tmp_path / "lose.replay"
    Recording.of(LEVEL, bytes(50)).save(losing)
    with pytest.raises(ConfigError, match=r"expected at least one recording.*lose\.replay: it does not finish"):
        train(config(tmp_path, warm_start=(str(losing),)))
