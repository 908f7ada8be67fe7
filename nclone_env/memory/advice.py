"""Advice computed from the memory tree: the option to change, and the bytes that it saves on this run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from nclone_env.memory.measurements import Advice, OwnedNode
from nclone_env.memory.section import format_bytes

MOST_ADVICE = 3
_LEAST_SHARE = 0.05
"""Of the memory that grows with the environments: less is not worth a sentence."""
_COPIES = re.compile(r"(.+) x (\d+)")


def chosen(candidates: Iterable[Advice], owners: Sequence[OwnedNode]) -> tuple[Advice, ...]:
    """Return the pieces of advice that save most, without those that save next to nothing."""
    least = _LEAST_SHARE * owners[0].environment_bytes if owners else 0.0
    kept = [advice for advice in candidates if abs(advice.saved_bytes) > least]
    return tuple(sorted(kept, key=lambda advice: -advice.saved_bytes)[:MOST_ADVICE])


def copies(owners: Sequence[OwnedNode], name: str) -> Iterator[tuple[int, int]]:
    """Yield (number of copies, bytes of all) of the arrays with a name, which pools write as ``name x 2``."""
    for node in owners:
        found = _COPIES.fullmatch(node.name)
        if not node.shared_bytes and (node.name == name or (found and found[1] == name)):
            yield int(found[2]) if found else 1, node.environment_bytes


def of_kept_results(owners: Sequence[OwnedNode]) -> Iterator[Advice]:
    """Yield advice on results of a vector environment that are alive at the same time, for any code."""
    pools = [node for node in owners if _COPIES.fullmatch(node.name) and not node.shared_bytes]
    kept = max((int(node.name.rpartition(" x ")[2]) for node in pools), default=0)
    saved = sum(node.environment_bytes * (count - 1) // count for node in pools if (count := _count(node)))
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
    groups = [node.environment_bytes for node in owners if node.name.startswith("outputs of group ")]
    together = sum(node.environment_bytes for node in owners if node.name == "outputs")
    if groups and together:
        saved = min(sum(groups), together)
        yield Advice(
            "num_groups=1",
            saved,
            f"num_groups=1 saves {format_bytes(saved)}: each group keeps outputs of its own besides those of all.",
        )


def _count(node: OwnedNode) -> int:
    return int(node.name.rpartition(" x ")[2])
