"""The tree that owners report: its rows in the report, its parts of the peak, and advice on what would save memory.

Advice names the option to change, and the bytes that it saves on this run.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from nclone_env._table import format_bytes
from nclone_env.memory.measurements import FIRST_STEPS, MADE, STEPS, Advice, OwnedNode
from nclone_env.memory.process import committed_tree_bytes
from nclone_env.memory.stats import Stats
from nclone_env.memory.tree import MemoryNode

_SMALL_SHARE = 0.01  # of the bytes of the root; smaller rows are folded
MOST_ADVICE = 3
MORE_ENVIRONMENTS = "--num-envs"
"""Begins the option of the one piece of advice that takes memory: what it takes is little for what it gives."""
_LEAST_SHARE = 0.05
"""Of the memory that grows with the environments: less is not worth a sentence."""
_LATER = (MADE, FIRST_STEPS, STEPS, "after")
"""Stages in which what is profiled exists; those before them are parts of the peak."""
_ENVIRONMENTS = ("vector environment", "environments", "environment")
_TRAINING = "training run"
_COPIES = re.compile(r"(.+) x (\d+)")


def owned_nodes(tree: MemoryNode) -> tuple[OwnedNode, ...]:
    """Return the nodes of a tree, parents first, with the bytes of each in committed pages."""
    return tuple(
        OwnedNode(
            depth=depth,
            name=node.name,
            shared_bytes=node.bytes_where(shared=True),
            environment_bytes=node.bytes_where(shared=False),
            committed_bytes=committed_tree_bytes(node),
            mapped=node.mapped,
        )
        for depth, node in tree.walk()
    )


def owner_rows(owners: Sequence[OwnedNode], num_envs: int) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return a row for each node of a tree, and the titles of the columns."""
    rows: list[tuple[str, ...]] = []
    for node in owners:
        name = "  " * node.depth + node.name + (" (mapped file)" if node.mapped else "")
        sizes = (node.shared_bytes, node.environment_bytes, node.environment_bytes / max(1, num_envs))
        rows.append((name, *map(or_dash, sizes)))
    return rows, ("owner", "shared", f"all {num_envs:,}", "per environment")


def folded(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    """Yield the rows of a tree with small leaves of one parent folded into a row.

    A row is small below one hundredth of both the shared and the other bytes of the root.
    """

    def depth_if_small(pair: tuple[OwnedNode, OwnedNode | None]) -> int:
        node, following = pair
        is_leaf = following is None or following.depth <= node.depth
        is_small = (
            node.shared_bytes <= _SMALL_SHARE * owners[0].shared_bytes
            and node.environment_bytes <= _SMALL_SHARE * owners[0].environment_bytes
        )
        return node.depth if is_leaf and is_small else 0

    for depth, pairs in groupby(zip(owners, (*owners[1:], None)), depth_if_small):
        nodes = [node for node, _ in pairs]
        if not depth or len(nodes) == 1:
            yield from nodes
        else:
            sizes = ((node.shared_bytes, node.environment_bytes, node.committed_bytes) for node in nodes)
            shared, own, committed = map(sum, zip(*sizes))
            yield OwnedNode(depth, f"{len(nodes)} small parts", shared, own, committed, mapped=False)


def or_dash(count: float) -> str:
    """Format a number of bytes, 0 as a dash."""
    return format_bytes(count) if count else "-"


def peak_parts(stats: Stats) -> Iterator[tuple[str, int]]:
    """Yield the name and the bytes of each part of the peak; their sum is the peak."""
    measured, left = stats.measurements, stats.peak_bytes
    for stage in measured.stages:
        size = min(left, stage.rss_bytes - (stats.peak_bytes - left))
        if stage.name not in _LATER and size > 0:
            yield "before the program" if stage.name == "before" else stage.name, size
            left -= size
    for name, size in _owned(stats):
        if min(size, left):
            yield name, min(size, left)
        left -= min(size, left)
    if left:
        yield "the rest" if measured.owners else "the program", left


def _owned(stats: Stats) -> Iterator[tuple[str, int]]:
    """Yield the committed bytes of the environments, and of what trains in them."""
    owners, snapshots = stats.measurements.owners, stats.measurements.snapshots
    if not owners:
        yield "environments", max((item.committed_bytes for item in snapshots), default=0)
    elif owners[0].name == _TRAINING:
        environments = sum(node.committed_bytes for node in _topmost(owners))
        yield "environments", environments
        yield "trainer", owners[0].committed_bytes - environments
    else:
        yield "environments", owners[0].committed_bytes


def _topmost(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    """Yield the nodes of environments that are in no other one."""
    inside = None
    for node in owners:
        if inside is not None and node.depth > inside:
            continue
        inside = node.depth if node.name in _ENVIRONMENTS else None
        if inside is not None:
            yield node


def chosen(candidates: Iterable[Advice], owners: Sequence[OwnedNode]) -> tuple[Advice, ...]:
    """Return the pieces of advice that save most; none that takes memory, but that on more environments."""
    least = _LEAST_SHARE * owners[0].environment_bytes if owners else 0.0
    kept = [item for item in candidates if item.saved_bytes > least or item.option.startswith(MORE_ENVIRONMENTS)]
    return tuple(sorted(kept, key=lambda advice: -advice.saved_bytes)[:MOST_ADVICE])


def copies(owners: Sequence[OwnedNode], name: str) -> Iterator[tuple[int, int]]:
    """Yield (number of copies, bytes of all) of the arrays with a name."""
    return ((count, size) for array, count, size in _pools(owners) if array == name)


def _pools(owners: Sequence[OwnedNode]) -> Iterator[tuple[str, int, int]]:
    """Yield (name, number of copies, bytes of all) of arrays, which pools write as ``name x 2``."""
    for node in owners:
        found = _COPIES.fullmatch(node.name)
        if not node.shared_bytes:
            yield found[1] if found else node.name, int(found[2]) if found else 1, node.environment_bytes


def of_kept_results(owners: Sequence[OwnedNode]) -> Iterator[Advice]:
    """Yield advice on results of a vector environment that are alive at the same time, for any code."""
    pools = [(count, size) for _, count, size in _pools(owners)]
    kept = max((count for count, _ in pools), default=0)
    saved = sum(size * (count - 1) // count for count, size in pools if count)
    if kept > 1:
        yield Advice(
            "out=",
            saved,
            f"out= of step saves {format_bytes(saved)}: {kept} batches of observations are alive at the same time, and "
            "with arrays of its own the loop needs one.",
        )
    finals = sum(node.environment_bytes for node in owners if node.name == "final observations")
    if finals:
        yield Advice(
            "final_obs",
            finals,
            f'Copy what is needed of info["final_obs"] before the next step: {format_bytes(finals)} of final '
            "observations are kept.",
        )
