"""The tree that owners report, as rows of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nclone_env.memory.measurements import OwnedNode
from nclone_env.memory.process import committed_tree_bytes
from nclone_env.memory.section import format_bytes
from nclone_env.memory_tree import MemoryNode

_SMALL_SHARE = 0.01  # of the bytes of the root; smaller rows are folded


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
    rows: list[tuple[str, ...]] = [
        (
            "  " * node.depth + node.name + (" (mapped file)" if node.mapped else ""),
            or_dash(node.shared_bytes),
            or_dash(node.environment_bytes),
            or_dash(node.environment_bytes / max(1, num_envs)),
        )
        for node in owners
    ]
    return rows, ("owner", "shared", f"all {num_envs:,}", "per environment")


def folded(owners: Sequence[OwnedNode]) -> Iterator[OwnedNode]:
    """Yield the rows of a tree with small leaves of one parent folded into a row.

    A row is small below one hundredth of both the shared and the other bytes of the root.
    """
    pending: list[OwnedNode] = []
    for node, following in zip(owners, (*owners[1:], None)):
        root = owners[0]
        leaf = following is None or following.depth <= node.depth
        small = (
            leaf
            and node.depth > 0
            and node.shared_bytes <= _SMALL_SHARE * root.shared_bytes
            and node.environment_bytes <= _SMALL_SHARE * root.environment_bytes
        )
        if pending and (not small or pending[0].depth != node.depth):
            yield _fold(pending)
            pending = []
        if small:
            pending.append(node)
        else:
            yield node
    if pending:
        yield _fold(pending)


def _fold(nodes: Sequence[OwnedNode]) -> OwnedNode:
    if len(nodes) == 1:
        return nodes[0]
    return OwnedNode(
        depth=nodes[0].depth,
        name=f"{len(nodes)} small parts",
        shared_bytes=sum(node.shared_bytes for node in nodes),
        environment_bytes=sum(node.environment_bytes for node in nodes),
        committed_bytes=sum(node.committed_bytes for node in nodes),
        mapped=False,
    )


def or_dash(count: float) -> str:
    """Format a number of bytes, 0 as a dash."""
    return format_bytes(count) if count else "-"
