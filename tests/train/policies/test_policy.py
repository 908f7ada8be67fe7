"""A policy that is called acts as the evaluation does, for one observation and for batches."""

import numpy as np
import pytest
import torch

from nclone_env.errors import ConfigError
from nclone_env.train import TrainConfig, evaluate, load_policy, make_environments, make_policy
from nclone_env.train.policies.checkpoint import save_checkpoint

from ..runs import checkpoint_of

LEVEL = "first-steps/01-walk"
SHAPES = {"game_state": (30,)}


def write_run(folder, shapes=None, **options):
    """Write the checkpoint of a run with initial weights of a small network, and return its folder."""
    config = TrainConfig.of(hidden_size=8, levels=(LEVEL,), max_frames=240, **options)
    shapes = shapes or SHAPES
    network = make_policy(config, shapes, torch.Generator().manual_seed(1))
    with torch.no_grad():
        for parameter in network.actor.parameters():
            parameter *= 30  # so that observations matter
    counters = {"timesteps": 5, "updates": 1, "episodes": 2}
    checkpoint = checkpoint_of(config, network, [{"timesteps": 5, "success_rate": float("nan")}], counters=counters)
    save_checkpoint(folder / "checkpoint.pt", checkpoint)
    return folder


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path)


def played(policy, count, argmax, seed):
    """Return the actions of ``count`` environments, (steps, count)."""
    envs = make_environments(policy.environment, count)
    observations, _ = envs.reset(seed=seed, options={"level": 0})
    chosen = [policy.act(observations, argmax, seed)]
    for _ in range(policy.environment.max_steps - 1):
        observations, *_ = envs.step(chosen[-1])
        chosen.append(policy.act(observations, argmax))
    envs.close()
    return np.array(chosen)


@pytest.mark.parametrize("mode", ["sampled", "argmax"])
def test_it_acts_as_the_evaluation_for_equal_seeds(run, mode):
    policy = load_policy(run)
    (result,) = evaluate(policy.network, policy.environment, mode, 5, seed=3)
    steps = len(result.actions)

    def agreeing(seed):
        actions = played(policy, 5, mode == "argmax", seed)[:steps]
        return (actions == result.actions[:, None]).all(axis=0).any()

    assert agreeing(3)
    assert agreeing(4) == (mode == "argmax")


@pytest.mark.parametrize("threads", [1, 3])
def test_it_computes_on_one_thread_whatever_torch_is_told(run, threads):
    """Sums over many inputs have other bits on several threads. The number is that of the caller again, also later."""
    policy, before, seen = load_policy(run), torch.get_num_threads(), []
    policy.network.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    torch.set_num_threads(threads)
    try:
        policy.act(np.zeros(30, np.float32))
        policy.network({"game_state": torch.zeros(1, 30)})  # what the caller computes
        policy.network.register_forward_hook(lambda *_: fail("of the network"))
        with pytest.raises(RuntimeError, match="of the network"):
            policy.act(np.zeros(30, np.float32))
        assert seen == [1, threads, 1]
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def fail(message):
    raise RuntimeError(message)


def test_one_observation_gives_an_int_and_a_batch_an_array(run):
    policy = load_policy(run)
    batch = np.random.default_rng(0).random((4, 30), np.float32)
    actions = policy.act({"game_state": batch}, argmax=True)
    assert actions.shape == (4,)
    assert actions.dtype == np.int64
    one = [policy.act({"game_state": row, "another": 1}, argmax=True) for row in batch]
    assert all(type(action) is int for action in one)
    assert one == actions.tolist()
    assert policy.act(batch[0], argmax=True) == one[0]
    assert policy.act(batch.astype(np.float64), argmax=True).tolist() == one


def test_a_seed_begins_a_sequence_that_goes_on(run):
    policy = load_policy(run)
    batch = np.zeros((64, 30), np.float32)
    first, second = policy.act(batch, seed=7), policy.act(batch)
    assert (first != second).any()
    assert (policy.act(batch, seed=7) == first).all()
    assert (policy.act(batch) == second).all()
    assert (policy.act(batch, seed=8) != first).any()
    assert (load_policy(run).act(batch) != load_policy(run).act(batch)).any()


def test_a_mask_is_applied(tmp_path):
    folder = write_run(tmp_path, {"game_state": (30,), "action_mask": (6,)}, observations=("game_state", "action_mask"))
    policy = load_policy(folder)
    masks = np.zeros((50, 6), np.int8)
    masks[:, 4] = 1
    for argmax in (False, True):
        assert set(policy.act({"game_state": np.ones((50, 30), np.float32), "action_mask": masks}, argmax)) == {4}


@pytest.mark.parametrize(
    ("observation", "options", "message"),
    [
        ({"game_stat": np.zeros(30)}, {}, "observation: expected 'game_state', got .'game_stat'.; did you mean"),
        ({"game_state": np.zeros(29)}, {}, r"game_state: expected shape \(30\), or \(n, 30\) .*, got \(29,\)"),
        (np.zeros(()), {}, r"game_state: expected shape \(30\), or \(n, 30\) .*, got \(\)"),
        ({"game_state": np.array(["a"] * 30)}, {}, "game_state: expected numbers, got <U1"),
        ({"game_state": np.zeros(30)}, {"seed": -1}, "seed: expected"),
    ],
)
def test_what_it_refuses(run, observation, options, message):
    with pytest.raises(ConfigError, match=message):
        load_policy(run).act(observation, **options)


def test_several_observations_need_a_dict(tmp_path):
    folder = write_run(tmp_path, {"game_state": (30,), "action_mask": (6,)}, observations=("game_state", "action_mask"))
    with pytest.raises(ConfigError, match="observation: expected a dict of game_state, action_mask"):
        load_policy(folder).act(np.zeros(30))


def test_the_policy_of_a_run(run):
    for named in (run, run / "checkpoint.pt"):
        policy = load_policy(named)
        assert policy.environment == policy.config.evaluated_environment
        assert policy.checkpoint.counters["timesteps"] == 5
        assert policy.network.observation_shapes == SHAPES
    others = load_policy(run, ("jumps",)).environment
    assert others == policy.environment.replace(levels=("jumps",))
    assert others != policy.environment


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_gives_the_same_logits(run, tmp_path):
    policy = load_policy(run)
    module, examples = policy.logits_module()
    batch = torch.linspace(0, 1, 3 * 30).view(3, 30)
    torch.jit.trace(module, tuple(examples.values())).save(tmp_path / "policy.ts")
    restored = torch.jit.load(tmp_path / "policy.ts")
    assert torch.allclose(restored(batch), policy.network({"game_state": batch})[0], atol=1e-6)  # fused differently
    assert not torch.allclose(restored(batch + 1), restored(batch), atol=1e-6)


@pytest.mark.slow
def test_an_exported_module_gives_the_same_logits(run):
    policy = load_policy(run)
    module, examples = policy.logits_module()
    batch = torch.linspace(0, 1, 2 * 30).view(2, 30)
    exported = torch.export.export(module, tuple(examples.values())).module()
    assert torch.equal(exported(batch), policy.network({"game_state": batch})[0])


def test_a_mask_is_no_argument_of_the_exported_module(tmp_path):
    shapes = {"game_state": (30,), "action_mask": (6,)}
    policy = load_policy(write_run(tmp_path, shapes, observations=("game_state", "action_mask")))
    module, examples = policy.logits_module()
    assert list(examples) == ["game_state"]
    assert module(*examples.values()).shape == (2, 6)
