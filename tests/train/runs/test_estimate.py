"""The estimate equals what a prepared run owns, to the byte."""

import pytest
import torch

from nclone_env.errors import MemoryLimitError, StoppedError
from nclone_env.train import Hooks, TrainConfig, begun_run, check_memory, estimate_bytes

SMALL = {"num_envs": 40, "num_steps": 8, "hidden_size": 16, "max_frames": 40}
VARIANTS = {
    "defaults": {},
    "one environment": {"num_envs": 1},
    "many groups": {"num_envs": 400, "num_minibatches": 1},
    "warm start": {"warm_start": ("first-steps/01-walk",), "max_frames": 300},
    "warm start with stacks": {"warm_start": ("first-steps/01-walk",), "frame_stack": 2, "max_frames": 300},
    "two towers": {"shared_trunk": False, "num_threads": 3},
    "stacks": {"frame_stack": 3},
    "held-out levels": {
        "held_out": 0.4,
        "num_threads": 3,
        "curriculum": "progress",
        "starts": ("known",),
        "max_frames": 1200,
    },
    "held-out stacks": {"held_out": 0.4, "frame_stack": 2},
    "stacks with masks": {"frame_stack": 2, "observations": ("game_state", "action_mask"), "vector_dtype": "float16"},
    "masks": {"observations": ("game_state", "locals", "action_mask"), "locals_size": 5},
    "outcomes": {"observations": ("game_state", "action_outcomes"), "held_out": 0.4},
    "memory": {"recurrent_size": 8, "num_threads": 3, "held_out": 0.4},
    "memory and stacks": {"recurrent_size": 8, "frame_stack": 2, "num_envs": 48},
    "pictures": {"observations": ("game_state", "player_frame"), "frame_stack": 2, "num_envs": 4},
}


def lasting_bytes(tree, shared):
    """Return the bytes of one kind without start states and what comes and goes with episodes."""
    left_out = [part for _, part in tree.walk() if part.name in ("final observations", "episode log")]
    starts = [part for _, node in tree.walk() if node.name == "start states" for part in node.children]
    left_out += [part for part in starts if part.name != "first"]
    return tree.bytes_where(shared) - sum(part.bytes_where(shared) for part in left_out)


BOTH = ("warm start with stacks", "held-out stacks", "stacks with masks", "memory and stacks")
"""Variants of which others have the one part and the other."""


@pytest.mark.parametrize(
    "variant", [pytest.param(name, marks=[pytest.mark.slow] * (name in BOTH)) for name in VARIANTS]
)
def test_estimate_equals_use(variant, tmp_path):
    config = TrainConfig.of(output=tmp_path, **{**SMALL, **VARIANTS[variant]})
    estimate = estimate_bytes(config)
    with begun_run(config) as run:
        nodes = [node for node in run.memory().children if node.total_bytes]
    for shared in (False, True):
        used = {node.name: lasting_bytes(node, shared) for node in nodes if node.name != "selection"}
        assert {node.name: node.bytes_where(shared) for node in estimate.children} == used


def test_estimate_grows_with_every_size(tmp_path):
    """Negative control: each size that costs memory changes the estimate."""
    totals = {estimate_bytes(TrainConfig.of(output=tmp_path, **SMALL)).total_bytes}
    for name, value in (
        ("num_envs", 44),
        ("num_steps", 12),
        ("hidden_size", 20),
        ("frame_stack", 2),
        ("recurrent_size", 8),
    ):
        totals.add(estimate_bytes(TrainConfig.of(output=tmp_path, **{**SMALL, name: value})).total_bytes)
    assert len(totals) == 6


def test_a_run_that_does_not_fit_is_refused(monkeypatch):
    check_memory(TrainConfig.of(**SMALL))
    monkeypatch.setattr("nclone_env.machine.available_bytes", lambda: 1_000_000)
    with pytest.raises(MemoryLimitError, match=r"num_envs: 256 need .* at most [0-9]+ fit"):
        check_memory(TrainConfig())


def test_paths_of_the_levels_are_told_and_can_be_stopped(monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_LEVEL_CACHE_MB", "0")  # else they may be kept
    config, told = TrainConfig.of(**{**SMALL, "levels": "motifs-7", "paths": "doors"}), list[tuple[str, int, int]]()
    with pytest.raises(StoppedError, match=r"asked to end with 1/5 paths found$"):
        check_memory(config, hooks=Hooks(stop=lambda: True))
    check_memory(config, hooks=Hooks(on_level=lambda *call: told.append(call)))
    assert told == [("paths found", number, 5) for number in range(1, 6)], "once, for all sizes that are measured"


def test_an_estimate_initialises_no_weights():
    """Initial weights would draw from torch's generator, and start threads that a forked process waits for in vain."""
    before = torch.get_rng_state()
    estimate_bytes(TrainConfig.of(**SMALL))
    assert torch.equal(torch.get_rng_state(), before)
    torch.nn.init.orthogonal_(torch.empty(2, 2))  # negative control
    assert not torch.equal(torch.get_rng_state(), before)
