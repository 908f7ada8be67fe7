"""Targets step what they say, report its memory, and are estimated from one and two environments."""

from __future__ import annotations

import pickle
from contextlib import closing

import pytest

from nclone_env.config import DEFAULT_OBSERVATIONS, EnvironmentConfig
from nclone_env.memory.sizes import extrapolated
from nclone_env.profiler.environments import (
    GymTarget,
    RandomActions,
    SingleTarget,
    SyncTarget,
    VectorTarget,
)

SMALL = EnvironmentConfig(observations=("game_state",), max_frames=20)
TARGETS = {
    "out, same-step": VectorTarget(SMALL, contract="out", autoreset="same-step"),
    "ring, disabled": VectorTarget(SMALL, contract="ring", autoreset="disabled"),
    "single": SingleTarget(SMALL),
    "gym": GymTarget(SMALL),
    "sync": SyncTarget(SMALL),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_steps_through_ends_of_episodes_and_reports_its_memory(name):
    target = pickle.loads(pickle.dumps(TARGETS[name]))  # fresh processes get it
    with closing(target.make(2)) as subject:
        for _ in range(12):  # episodes have 5 steps
            subject.step()
        assert subject.memory().bytes_where(shared=False) > 1500  # the actions alone: 1,026
        assert subject.memory().bytes_where(shared=True) > 100_000
    assert ("max frames", "20") in target.facts()
    assert target.env_steps(2) == 2


@pytest.mark.parametrize("contract", ["default", "out", "ring"])
@pytest.mark.parametrize("mode", ["next-step", "same-step"])
def test_vector_environments_are_estimated_exactly(contract, mode):
    observations = (*DEFAULT_OBSERVATIONS, "entity_states", "locals", "reachability", "action_outcomes", "action_mask")
    target = VectorTarget(EnvironmentConfig(observations=observations), contract=contract, autoreset=mode)
    subject = target.make(60)
    for _ in range(3):
        subject.step()
    made = subject.memory()
    subject.close()
    estimated = extrapolated(target, 60)
    assert estimated.bytes_where(shared=True) == made.bytes_where(shared=True)
    assert estimated.bytes_where(shared=False) == pytest.approx(made.bytes_where(shared=False), rel=0.01)


def test_lists_of_environments_are_estimated_exactly():
    target = SingleTarget(EnvironmentConfig(observations=("game_state",)))
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
