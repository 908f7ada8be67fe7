"""Targets step what they say, report its memory, and are estimated from one and two environments; advice is exact."""

import pickle
from contextlib import closing

import pytest

from nclone_env.config import DEFAULT_OBSERVATIONS, EnvironmentConfig
from nclone_env.memory.measure.process import owned_nodes
from nclone_env.memory.passes import Process, extrapolated, in_fresh_process
from nclone_env.profiler.environments import EnvironmentTarget, RandomActions
from nclone_env.profiler.training import TrainingTarget
from nclone_env.train.config import TrainConfig

STEPS = 3
SMALL = EnvironmentConfig(observations=("game_state",), max_frames=20)
TARGETS = {
    "out, same-step": EnvironmentTarget(SMALL, contract="out", autoreset="same-step"),
    "default, disabled": EnvironmentTarget(SMALL, autoreset="disabled"),
    "single": EnvironmentTarget(SMALL, form="single"),
    "gym": EnvironmentTarget(SMALL, form="gym"),
    "sync": EnvironmentTarget(SMALL, form="sync"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_steps_through_ends_of_episodes_and_reports_its_memory(name):
    target = pickle.loads(pickle.dumps(TARGETS[name]))  # fresh processes get it
    with closing(target.make(2)) as subject:
        for _ in range(12):  # episodes have 5 steps
            subject.step()
        assert subject.memory().bytes_where(shared=False) > 1500  # the actions alone: 1,026
        assert subject.memory().bytes_where(shared=True) > 50_000
    assert ("max frames", "20") in target.facts()
    assert target.env_steps(2) == 2


@pytest.mark.parametrize("contract", ["default", "out"])
@pytest.mark.parametrize("mode", ["next-step", "same-step"])
def test_vector_environments_are_estimated_exactly(contract, mode):
    vectors = "entity_states", "locals", "reachability", "free_motion", "action_outcomes"
    observations = (*DEFAULT_OBSERVATIONS, *vectors, "action_mask")
    target = EnvironmentTarget(EnvironmentConfig(observations=observations), contract=contract, autoreset=mode)
    subject = target.make(60)
    for _ in range(3):
        subject.step()
    made = subject.memory()
    subject.close()
    estimated = extrapolated(target, 60)
    assert estimated.bytes_where(shared=True) == made.bytes_where(shared=True)
    assert estimated.bytes_where(shared=False) == pytest.approx(made.bytes_where(shared=False), rel=0.01)


def test_lists_of_environments_are_estimated_exactly():
    target = EnvironmentTarget(EnvironmentConfig(observations=("game_state",)), form="single")
    subject = target.make(20)
    made = subject.memory()
    subject.close()
    assert extrapolated(target, 20).bytes_where(shared=True) == made.bytes_where(shared=True)
    assert extrapolated(target, 20).total_bytes == pytest.approx(made.total_bytes, rel=0.01)


def test_random_actions_are_seeded_and_allocate_nothing():
    first, second, other = RandomActions(5, seed=1), RandomActions(5, seed=1), RandomActions(5, seed=2)
    taken = [actions.next().copy() for actions in (first, second, other)]
    assert (taken[0] == taken[1]).all()
    assert any((first.next() != other.next()).any() for _ in range(10))
    assert {int(action) for _ in range(50) for action in first.next()} == set(range(6))
    assert first.next().base is first.actions


def config(observations=("game_state", "player_frame"), size=128, dtype="float32"):
    made = EnvironmentConfig(observations=observations)
    fields = {"render": {"player_frame_size": size}, "observation": {"dtype": dtype}}
    for name, values in fields.items():
        made = made.replace(**{name: type(getattr(made, name))(**values)})
    return made


STATES = ("game_state", "entity_states")
CASES = {
    "--picture-size 64": (EnvironmentTarget(config()), EnvironmentTarget(config(size=64)), 64),
    "--picture-size 32": (
        EnvironmentTarget(config(size=64), form="gym"),
        EnvironmentTarget(config(size=32), form="gym"),
        64,
    ),
    "--vector-dtype float16": (
        EnvironmentTarget(config(STATES)),
        EnvironmentTarget(config(STATES, dtype="float16")),
        2048,
    ),
    "--num-envs 64": (TrainingTarget(TrainConfig.of(num_steps=32)), TrainingTarget(TrainConfig.of(num_steps=32)), 32),
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
    before, after = EnvironmentTarget(config(), form="sync"), EnvironmentTarget(config(size=64), form="sync")
    owners, _ = owners_and_bytes(before, 64)
    traced = in_fresh_process(Process(before, 64, STEPS, traced=True)).python_bytes
    found = next(before.advice(owners, 64, traced / 64))
    assert found.saved_bytes == pytest.approx(measured_saving(before, after, 64), rel=0.1)
