from __future__ import annotations

import pytest

from nclone_env.cli.targets import SingleTarget, VectorTarget
from nclone_env.config import DEFAULT_OBSERVATIONS, EnvironmentConfig
from nclone_env.memory.plan import extrapolated, plan_text, scaled
from nclone_env.memory_tree import MemoryNode

from .stub import StubTarget


def tree(own, shared=700):
    children = (MemoryNode("levels", shared, shared=True), MemoryNode("state", own), MemoryNode("fixed", 11))
    return MemoryNode("all", children=children)


def test_growth_from_one_to_two_is_continued():
    found = scaled(tree(own=50), tree(own=90), 10)
    assert [node.own_bytes for node in found.children] == [700, 50 + 9 * 40, 11]
    assert scaled(tree(50), tree(90), 1) == tree(50)


def test_a_part_that_only_one_environment_has_is_kept():
    one = MemoryNode("all", children=(MemoryNode("first", 5),))
    assert scaled(one, MemoryNode("all"), 7).total_bytes == 5


def test_a_stub_is_estimated_exactly():
    target = StubTarget()
    assert extrapolated(target, 300).total_bytes == target.make(300).memory().total_bytes


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


def test_the_plan_is_a_table():
    words = " ".join(plan_text(scaled(tree(50), tree(90), 10), 10).split())
    assert "owner shared all 10 per environment" in words
    assert "levels 700 B - - state - 410 B 41 B" in words
