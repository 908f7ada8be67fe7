"""What a number of environments will take, computed from one and two of them.

Owners report their arrays; the tree of one and of two is continued. What no owner reports, objects of Python and worker
processes, is measured in fresh processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from nclone_env.memory.sizes import measure_one_and_two
from nclone_env.memory.subject import Target
from nclone_env.memory_tree import MemoryNode

_STEPS = 3  # after them every array has been used


def estimated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree that a target will report, and what it will take besides."""
    tree, others = target.estimate(num_envs), _unreported(target, num_envs)
    return replace(tree, children=(*tree.children, *(node for node in others if node.own_bytes)))


def _unreported(target: Target, num_envs: int) -> Iterator[MemoryNode]:
    """Yield the memory of Python and of worker processes that no owner reports, by its growth from one to two."""
    one, two = measure_one_and_two(target)
    assert one.traced.python_bytes is not None
    assert two.traced.python_bytes is not None
    python = one.traced.python_bytes, two.traced.python_bytes
    yield from _grown("other Python memory", *python, num_envs)
    if two.plain.worker_bytes:
        known = one.plain.committed_bytes + python[0], two.plain.committed_bytes + python[1]
        yield from _grown(
            "worker processes", one.plain.data_bytes - known[0], two.plain.data_bytes - known[1], num_envs
        )


def _grown(name: str, one: int, two: int, num_envs: int) -> Iterator[MemoryNode]:
    each = max(0, two - one)
    yield MemoryNode(name, each * num_envs)
    yield MemoryNode(f"{name}, once", max(0, one - each), shared=True)


def extrapolated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree of a number of environments, of which only one and two are made."""
    return scaled(_tree(target, 1), _tree(target, 2), num_envs)


def scaled(one: MemoryNode, two: MemoryNode, num_envs: int) -> MemoryNode:
    """Continue the growth of a tree from one environment to two; parts that ``two`` lacks are kept as they are."""
    more = {child.name: child for child in two.children}
    own = one.own_bytes if one.shared else one.own_bytes + (two.own_bytes - one.own_bytes) * (num_envs - 1)
    children = tuple(scaled(child, more.get(child.name, child), num_envs) for child in one.children)
    return replace(one, own_bytes=own, children=children, blocks=())


def _tree(target: Target, num_envs: int) -> MemoryNode:
    with closing(target.make(num_envs)) as subject:
        for _ in range(_STEPS):
            subject.step()
        return subject.memory()
