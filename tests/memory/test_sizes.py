import pytest

from nclone_env.memory.explain.stats import per_environment
from nclone_env.memory.measure.measurements import ProfileSettings
from nclone_env.memory.measure.process import owned_nodes
from nclone_env.memory.measure.tree import MemoryNode
from nclone_env.memory.passes import _grown, estimated, extrapolated, measure_sizes, scaled
from nclone_env.memory.show import owner_rows

from .stub import StubTarget


def test_fresh_processes_measure_what_an_environment_takes():
    target = StubTarget()
    sizes = measure_sizes(target, ProfileSettings(16, steps=5), 24_000)
    assert [point.num_envs for point in sizes] == [500, 1000, 2000, 500, 2000]
    found = per_environment(sizes)
    assert found is not None
    assert found.reported == 24_000
    assert found.committed == pytest.approx(24_000, rel=0.01)
    assert found.measured == pytest.approx(24_000, rel=0.05)
    assert found.python == pytest.approx(0, abs=200)


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


def test_an_estimated_tree_has_rows_with_shared_and_other_bytes():
    rows, columns = owner_rows(owned_nodes(scaled(tree(50), tree(90), 10)), 10)
    assert columns == ("owner", "shared", "all 10", "per environment")
    assert rows[1:3] == [("  levels", "700 B", "-", "-"), ("  state", "-", "410 B", "41 B")]


def test_an_estimate_begins_with_what_the_owners_will_report():
    made = StubTarget().make(300).memory()
    names = {node.name: node.total_bytes for node in estimated(StubTarget(), 300).children}
    assert {node.name: node.total_bytes for node in made.children}.items() <= names.items()
    assert "worker processes" not in names


def test_growth_from_one_to_two_is_that_of_each_and_the_rest_is_once():
    assert list(_grown("workers", 10, 50, 90)) == [
        MemoryNode("workers", 400),
        MemoryNode("workers, once", 10, shared=True),
    ]
    assert [node.own_bytes for node in _grown("workers", 10, 50, 40)] == [0, 50]
