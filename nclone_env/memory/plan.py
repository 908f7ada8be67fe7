"""What a number of environments will take, computed from one and two of them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from nclone_env.memory.subject import Target
from nclone_env.memory_tree import MemoryNode

_STEPS = 3  # after them every array has been used


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
