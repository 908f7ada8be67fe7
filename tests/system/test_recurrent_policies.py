"""Policies with memory in all that trains, evaluates, plays and measures policies."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.benchmark import evaluate as benchmark
from nclone_env.benchmark import load_track
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train import EpisodeData, TrainConfig, clone, evaluate, load_policy, make_environments, train
from nclone_env.train.collect.evaluate import policy_runs
from nclone_env.train.learn.learners import LEARNERS
from nclone_env.train.policies.device import learning_device
from nclone_env.train.ranks import ALONE
from nclone_env.train.runs.begin import begun_run
from nclone_env.train.runs.steps import collect_rollout, compute_returns, update_policy

from ..train.runs import config
from ..train.stub import LineWorld

LEVELS = ("first-steps/01-walk", "first-steps/02-step")
REAL = {"levels": LEVELS, "recurrent_size": 8, "hidden_size": 8, "frame_skip": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a short run on real levels."""
    return train(config(tmp_path_factory.mktemp("recurrent"), **REAL)).checkpoint.parent


class Recall(LineWorld):
    """The walker sees where its goal is in the first observation of an episode alone."""

    def _observe(self, out):
        seen = super()._observe(out)
        (array,) = seen.values()
        array[self.walkers["length"] > 0, 1:3] = 0
        return seen


@pytest.mark.parametrize("frame_stack", [1, 3])
def test_the_learner_computes_what_the_actors_computed(tmp_path, frame_stack):
    """Over episodes that end in a rollout, or go on from the one before."""
    settings = config(tmp_path, recurrent_size=8, frame_stack=frame_stack, total_timesteps=32 * 16 * 8)
    with begun_run(settings, make_envs=LineWorld) as begun:
        for _ in range(3):
            collect_rollout(begun)
            compute_returns(begun)
            storage = begun.storage
            network, rows = begun.network, np.arange(4)
            seen = storage.observation_buffers(16 * 4)
            steps = (np.arange(16)[:, None] * 32 + rows).ravel()
            storage.gather(torch.from_numpy(steps), seen)
            starts = np.ascontiguousarray(storage.episode_starts[frame_stack - 1 :][:16, rows])
            assert 0 < starts.sum() < starts.size
            logits, values = network._unroll(seen, starts, storage.states[0, rows], network._scratch[0])
            log_probs = (
                torch.log_softmax(logits, 1).detach().numpy()[np.arange(64), storage.arrays.actions.ravel()[steps]]
            )
            # Batches of other sizes are rounded in another way.
            np.testing.assert_allclose(log_probs, storage.arrays.log_probs.ravel()[steps], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(values.detach().numpy(), storage.arrays.values[:16].ravel()[steps], atol=1e-5)
            update_policy(begun)
        assert storage.states[0].any()


def test_it_remembers_what_a_policy_without_memory_forgets(tmp_path):
    success = []
    for size in (0, 16):
        fields = {"total_timesteps": 32 * 16 * 60, "max_frames": 400, "learning_rate": 0.01, "anneal": False}
        result = train(config(tmp_path, name=str(size), recurrent_size=size, **fields), make_envs=Recall)
        success.append(result.curve[-1]["success_rate"])
    assert success[0] < 0.8
    assert success[1] > 0.9


def test_act_keeps_the_states_that_evaluation_keeps(run):
    policy = load_policy(run)
    assert policy.recurrent
    assert not load_policy("builtin").recurrent
    environment = policy.environment.replace(levels=LEVELS[:1])
    (result,) = evaluate(policy.network, environment, "argmax", 3)
    envs = make_environments(environment, 3)
    (seen, _), starts, actions = envs.reset(seed=0), True, []
    for _ in result.actions:
        actions.append(policy.act(seen, argmax=True, episode_start=starts))
        seen, _, terminated, truncated, _ = envs.step(actions[-1])
        starts = terminated | truncated
    envs.close()
    assert [int(row[0]) for row in actions] == result.actions.tolist()
    (played, *_) = policy_runs(policy.network, environment, "argmax")
    inputs = result.inputs(environment).tolist()
    assert list(played.inputs)[: len(inputs)] == inputs


def test_states_matter_and_are_those_of_one_batch(run):
    policy, seen = load_policy(run), np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    policy.act(seen, episode_start=True)
    first = policy._states.copy()
    policy.act(seen, episode_start=np.arange(50) < 25)
    assert (policy._states[:25] == first[:25]).all()
    assert (policy._states[25:] != first[25:]).any(axis=1).all()
    assert isinstance(policy.act(seen[0], episode_start=True), int)
    message = "episode_start: expected True for all 50 observations, as the call before had 1, got False"
    with pytest.raises(ConfigError, match=message):
        policy.act(seen, episode_start=False)
    for given, got in ((None, "None"), (1, r"int64 of shape \(\)"), (np.zeros(3, bool), r"bool of shape \(3,\)")):
        with pytest.raises(
            ConfigError, match=rf"episode_start: expected a bool, or bool of shape \(50,\), .* got {got}"
        ):
            policy.act(seen, episode_start=given)


def test_the_benchmark_keeps_states_by_episode(run):
    track = load_track("Builtin-v1")
    one, same, other = (benchmark(str(run), track, seed=seed) for seed in (0, 0, 1))
    assert one.sampled.actions.tobytes() == same.sampled.actions.tobytes()
    assert one.sampled.actions.tobytes() != other.sampled.actions.tobytes()


REFUSED = {
    "minibatches": (
        {"num_minibatches": 64},
        "num_minibatches: expected a divisor of num_envs = 32 .* choose one of 1, 2",
    ),
    "warm start": ({"warm_start": LEVELS}, "recurrent_size: expected 0 with warm_start, .* got 8; use starts=known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_do_not_fit(tmp_path, name):
    fields, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        config(tmp_path, recurrent_size=8, num_steps=64, **fields)


def test_what_has_no_memory_refuses_in_one_line(run, tmp_path, monkeypatch):
    policy = load_policy(run)
    with pytest.raises(
        ConfigError, match="candidates: expected 1 for a policy with memory, got 4 with recurrent_size 8"
    ):
        evaluate(policy.network, policy.environment, candidates=4)
    with pytest.raises(ConfigError, match=r"policy: expected one without memory, .*; export its network"):
        policy.logits_module()
    with pytest.raises(ConfigError, match="device: expected cpu with recurrent_size 8, got cuda"):
        learning_device(TrainConfig.of(recurrent_size=8, device="cuda"), ALONE)
    assert learning_device(TrainConfig.of(recurrent_size=8, device="auto"), ALONE) is None
    monkeypatch.setitem(LEARNERS, "another", None)
    with pytest.raises(ConfigError, match=r"learner: expected ppo with recurrent_size, .* got 'another'"):
        train(config(tmp_path, recurrent_size=8, learner="another"), make_envs=LineWorld)
    with pytest.raises(CheckpointError, match=r"recurrent_size: expected 8, .* got 4; leave out --recurrent-size"):
        train(config(tmp_path, **{**REAL, "recurrent_size": 4}), resume=run)


def test_a_clone_has_no_memory(run):
    policy = load_policy(run)
    episode = EpisodeData({"game_state": np.zeros((20, 30), np.float32)}, np.zeros(20, np.int64), terminated=True)
    space = spaces.Dict({"game_state": spaces.Box(-1, 1, (30,), np.float32)})
    with pytest.raises(ConfigError, match="policy: expected one without memory to learn from single steps"):
        clone(policy.network, [episode], space)
