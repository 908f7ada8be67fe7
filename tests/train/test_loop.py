"""Training runs on a toy environment: learning, bit-for-bit determinism, and resuming from a checkpoint."""

import csv
import ctypes
import signal
import sys
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch

from nclone_env.train import Hooks, estimate_bytes, evaluate, load_checkpoint, loop, restore_config, train
from nclone_env.train.runs.steps import annealed, compute_returns

from ..processes import flushing
from .runs import config, untimed
from .stub import LineWorld

RATES = [0.004, 0.003, 0.002, 0.001]
"""Of four updates, annealed."""


def test_learns_and_stops_when_every_level_is_solved(tmp_path):
    settings = config(tmp_path, total_timesteps=200_000, stop_at_success=0.95, anneal=False)
    result = train(settings, make_envs=LineWorld)
    assert result.solved
    assert result.counters.timesteps < 100_000
    assert result.curve[-1]["min_success_rate"] >= 0.95
    learnt, chance = (
        evaluate(policy, settings.evaluated_environment, make_envs=LineWorld) for policy in (result.policy, None)
    )
    assert min(level.success_rate for level in learnt) >= 0.9
    assert max(level.success_rate for level in chance) < 0.5


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def rounding(mode):
    library = ctypes.CDLL(None)
    library.fesetround(mode)
    try:
        yield
    finally:
        library.fesetround(0)


def roundings():
    """Return the other modes, whose numbers the processor chooses: bits of its register on x86 and ARM."""
    library = ctypes.CDLL(None)
    numbers = [mode << shift for shift in (0, 10, 22) for mode in (1, 2, 3)]
    known = [number for number in numbers if library.fesetround(number) == 0 and library.fesetround(0) == 0]
    return {f"rounding {number:#x}": partial(rounding, number) for number in known}


SETTINGS = {
    "float64": partial(default_dtype, torch.float64),
    "bfloat16": partial(default_dtype, torch.bfloat16),
    "another device": partial(torch.device, "meta"),
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "lower precision": partial(torch.autocast, "cpu", torch.bfloat16),
    "no denormal numbers": flushing,
    "numpy raises": partial(np.errstate, all="raise"),
}
"""What programs set for themselves, or libraries that they import for all."""


@pytest.mark.parametrize("fields", [{}, {"frame_stack": 3}], ids=["compiled", "torch"])
def test_what_the_caller_has_set_changes_no_bit(tmp_path, fields):
    def learnt(name, **others):
        settings = config(tmp_path, name=name, seed=3, num_threads=1, **fields, **others)
        result = train(settings, make_envs=LineWorld)
        bits = torch.cat([parameter.detach().flatten() for parameter in result.policy.parameters()])
        played = ()
        if not fields:  # the toy environment of an evaluation has no stacks
            played = evaluate(result.policy, settings.evaluated_environment, episodes_per_level=4, make_envs=LineWorld)
        return bits.numpy().tobytes(), untimed(result.curve), [level.actions.tobytes() for level in played]

    expected = learnt("plain")
    for name, setting in {**SETTINGS, **roundings()}.items():
        with setting():
            assert learnt(name) == expected, name
    assert sys.float_info.min * 0.5 > 0
    assert learnt("other", learning_rate=0.002)[0] != expected[0]


def test_groups_have_the_seeds_of_one_environment_of_all(tmp_path):
    worlds = []

    def make(environment, count):
        worlds.append(LineWorld(environment, count))
        return worlds[-1]

    train(config(tmp_path, num_envs=80, total_timesteps=1), make_envs=make)
    assert [world.num_envs for world in worlds] == [40, 40]
    assert worlds[1].seed == worlds[0].seed + 40
    assert all(world.closed for world in worlds)


def test_truncated_episodes_bootstrap_from_the_value_of_their_final_observation(tmp_path, monkeypatch):
    finals = {}

    class Recording(LineWorld):
        steps = 0

        def step(self, actions, *, out=None):
            *results, info = super().step(actions, out=out)
            for place, index in enumerate((results[2] | results[3]).nonzero()[0]):
                if results[3][index]:
                    finals[self.steps % 16, self.seed + index] = info["final_obs"]["game_state"][place]
            self.steps += 1
            return *results, info

    checked = []

    def check(run):
        truncated = run.storage.arrays.truncated
        stored = run.storage.arrays.final_values[truncated]
        first = run.collectors[0].envs.seed
        seen = np.stack([finals[step, first + index] for step, index in zip(*truncated.nonzero())])
        values = run.policy({"game_state": torch.from_numpy(seen)})[1].detach().numpy()
        # tolerance: the size of a matrix product changes the order of its sums
        np.testing.assert_allclose(stored, values, rtol=0, atol=1e-6)
        checked.append(len(finals))
        finals.clear()
        compute_returns(run)

    monkeypatch.setattr(loop, "compute_returns", check)
    train(config(tmp_path, max_frames=16, total_timesteps=1024), make_envs=Recording)
    assert min(checked) > 50


def test_rollouts_are_contiguous_and_end_with_a_bootstrap_value(tmp_path, monkeypatch):
    ends = []

    def check(run):
        seen = run.storage.observation_arrays["game_state"]
        if ends:
            np.testing.assert_array_equal(seen[0], ends[-1])
        ends.append(seen[-1].copy())
        # tolerance: see above
        values = run.policy({"game_state": torch.from_numpy(seen).flatten(0, 1)})[1].detach().reshape(17, 32).numpy()
        np.testing.assert_allclose(run.storage.arrays.values, values, rtol=0, atol=1e-6)
        compute_returns(run)

    monkeypatch.setattr(loop, "compute_returns", check)
    train(config(tmp_path), make_envs=LineWorld)
    assert len(ends) == 4


def test_run_folder_and_callback(tmp_path):
    rows, worlds = [], []

    def make(*arguments):
        worlds.append(LineWorld(*arguments))
        return worlds[-1]

    settings = config(tmp_path, name="run", learning_rate=RATES[0])
    folders = []
    result = train(settings, Hooks(on_update=rows.append, on_start=folders.append), make_envs=make)
    assert folders == [tmp_path / "run"]
    assert worlds[0].closed
    assert untimed(rows) == untimed(result.curve)
    assert [row["timesteps"] for row in rows] == [512, 1024, 1536, 2048]
    estimate = estimate_bytes(settings, make_envs=LineWorld).bytes_where(shared=False) / settings.num_envs / 1024
    # tolerance: the episodes that ended in the warm-up are logged
    assert rows[-1]["kilobytes_per_environment"] == pytest.approx(estimate, rel=0.02)
    with (tmp_path / "run" / "learning_curve.csv").open() as file:
        table = list(csv.DictReader(file))
    updates = [row["collect_seconds"] + row["learn_seconds"] for row in rows]
    assert float(table[-1]["update_p95_seconds"]) == max(updates)
    assert 0 < float(table[-1]["step_p95_seconds"]) < rows[-1]["collect_seconds"]
    assert [float(row["entropy"]) for row in table] == [row["entropy"] for row in rows]
    assert [row["learning_rate"] for row in rows] == RATES == [annealed(settings, RATES[0], n) for n in (1, 2, 3, 4)]
    assert annealed(settings.replace(anneal=False), RATES[0], 4) == RATES[0]
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))
    assert result.checkpoint == tmp_path / "run" / "checkpoint.pt"
    assert not list((tmp_path / "run").glob(".*.*"))


SEEN = {
    "locals": {"observations": ("locals",), "locals_size": 15},
    "entities": {"observations": ("game_state", "entity_states"), "max_entities": 8},
    "reachability": {"observations": ("game_state", "reachability", "action_mask")},
    "outcomes": {"observations": ("free_motion", "action_outcomes"), "frame_stack": 2, "outcome_frames": 8},
    "float16": {"observations": ("game_state", "locals", "free_motion"), "vector_dtype": "float16"},
    "stacks with masks": {"observations": ("game_state", "action_mask"), "frame_stack": 3},
    "memory": {
        "observations": ("locals", "action_mask", "free_motion"),
        "vector_dtype": "float16",
        "recurrent_size": 8,
    },
    "small pictures": {"observations": ("player_frame", "global_view"), "picture_size": 64, "frame_stack": 2},
}


@pytest.mark.parametrize("seen", SEEN)
def test_every_observation_can_be_trained_on(seen, tmp_path):
    fields = {"num_envs": 32, "num_steps": 8, "total_timesteps": 512, "hidden_size": 16, "max_frames": 40}
    result = train(config(tmp_path, **fields, **SEEN[seen]))
    assert result.counters.updates == 2
    assert all(np.isfinite(row["policy_loss"]) for row in result.curve)
    tables = evaluate(
        result.policy, restore_config(load_checkpoint(result.checkpoint)).evaluated_environment, episodes_per_level=2
    )
    assert len(tables) == 6


@pytest.mark.parametrize("error", [BrokenPipeError, RuntimeError, KeyboardInterrupt])
def test_a_run_is_saved_when_who_is_told_fails(error, tmp_path):
    told = []

    def tell(row):
        told.append(row)
        if len(told) == 3:
            raise error

    with pytest.raises(error):
        train(config(tmp_path, name="run", checkpoint_interval=1000), Hooks(on_update=tell), make_envs=LineWorld)
    assert load_checkpoint(tmp_path / "run" / "checkpoint.pt").counters["updates"] == 3


def test_ctrl_c_in_a_program_ends_the_run_after_its_update(tmp_path, monkeypatch):
    before, real, seen = signal.getsignal(signal.SIGINT), loop.update_policy, []

    def update(run):
        seen.append(run.counters.updates)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(run)

    monkeypatch.setattr(loop, "update_policy", update)
    settings = config(tmp_path, name="run", checkpoint_interval=1000)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            train(settings, make_envs=LineWorld)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        seen.clear()
        whole = train(config(tmp_path, name="whole"), make_envs=LineWorld)
    finally:
        signal.signal(signal.SIGINT, before)
    assert load_checkpoint(tmp_path / "run" / "checkpoint.pt").counters["updates"] == 2
    resumed = train(settings, resume=tmp_path / "run", make_envs=LineWorld)
    assert untimed(resumed.curve) == untimed(whole.curve)
    assert len(resumed.curve) == 4
