"""Each piece of advice saves what it says: on the trees of two runs, and on their measured memory."""

from __future__ import annotations

from contextlib import closing

import pytest

from nclone_env.config import EnvironmentConfig
from nclone_env.memory.owners import owned_nodes
from nclone_env.memory.sizes import Process, in_fresh_process
from nclone_env.profiler.environments import GymTarget, SyncTarget, VectorTarget
from nclone_env.profiler.training import TrainingTarget
from nclone_env.train.config import TrainConfig

STEPS = 3


def config(observations=("game_state", "player_frame"), size=128, dtype="float32"):
    made = EnvironmentConfig(observations=observations)
    fields = {"render": {"player_frame_size": size}, "observation": {"dtype": dtype}}
    for name, values in fields.items():
        made = made.replace(**{name: type(getattr(made, name))(**values)})
    return made


STATES = ("game_state", "entity_states")
CASES = {
    "--picture-size 64": (VectorTarget(config()), VectorTarget(config(size=64)), 64),
    "--picture-size 32": (GymTarget(config(size=64)), GymTarget(config(size=32)), 64),
    "--vector-dtype float16": (VectorTarget(config(STATES)), VectorTarget(config(STATES, dtype="float16")), 2048),
    "--contract out": (VectorTarget(config(), contract="ring"), VectorTarget(config(), contract="out"), 64),
    "--num-envs 64": (
        TrainingTarget(TrainConfig.of(num_steps=32)),
        TrainingTarget(TrainConfig.of(num_steps=32)),
        32,
    ),
}


def owners_and_bytes(target, num_envs):
    with closing(target.make(num_envs)) as subject:
        for _ in range(STEPS):
            subject.step()
        tree = subject.memory()
    shared = sum(node.own_bytes for _, node in tree.walk() if node.shared and not node.mapped)
    return owned_nodes(tree), tree.bytes_where(shared=False) + shared


def advice(target, owners, num_envs, option):
    found = {item.option: item for item in target.advice(owners, num_envs, 0.0)}
    return found[option].saved_bytes


def numbers(option, num_envs):
    return num_envs, int(option.split()[1]) if option.startswith("--num-envs") else num_envs


@pytest.mark.parametrize("option", CASES)
def test_the_tree_of_the_other_run_is_smaller_by_what_was_said(option):
    before, after, num_envs = CASES[option]
    first, second = numbers(option, num_envs)
    owners, used = owners_and_bytes(before, first)
    saved = used - owners_and_bytes(after, second)[1]
    # tolerance: results beside the observations differ by contract
    assert advice(before, owners, num_envs, option) == pytest.approx(saved, rel=0.03)


def measured_saving(before, after, num_envs):
    """Return what the environments of fresh processes take less, and what is shared less.

    The first environment is subtracted: some of the arrays that all share stay cached when it closes, others do not.
    """
    used, other = (taken_by_more(target, num_envs) for target in (before, after))
    shared, less = (owners_and_bytes(target, 1)[1] - owned(target) for target in (before, after))
    return used - other + shared - less


def taken_by_more(target, num_envs):
    one, many = (in_fresh_process(Process(target, count, STEPS, traced=False)).data_bytes for count in (1, num_envs))
    return (many - one) * num_envs / (num_envs - 1)


def owned(target):
    with closing(target.make(1)) as subject:
        for _ in range(STEPS):
            subject.step()
        return subject.memory().bytes_where(shared=False)


@pytest.mark.slow
@pytest.mark.parametrize("option", [option for option in CASES if not option.startswith("--num-envs")])
def test_the_measured_memory_is_smaller_by_what_was_said(option):
    before, after, num_envs = CASES[option]
    owners, _ = owners_and_bytes(before, 8 * num_envs)
    said = advice(before, owners, 8 * num_envs, option)
    # tolerance: pages, and objects of Python
    assert said == pytest.approx(measured_saving(before, after, 8 * num_envs), rel=0.1)


@pytest.mark.slow
def test_batches_that_gymnasium_keeps_count():
    """They are the memory of Python that no owner reports."""
    before, after = SyncTarget(config()), SyncTarget(config(size=64))
    owners, _ = owners_and_bytes(before, 64)
    traced = in_fresh_process(Process(before, 64, STEPS, traced=True)).python_bytes
    found = before.advice(owners, 64, traced / 64)[0]
    assert found.saved_bytes == pytest.approx(measured_saving(before, after, 64), rel=0.1)
