"""The peak of resident memory by part: libraries, compiled code, environments, trainer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nclone_env.memory.formatting import format_bytes
from nclone_env.memory.measurements import FIRST_STEPS, MADE, STEPS, OwnedNode
from nclone_env.memory.section import Section
from nclone_env.memory.stats import Stats

_LATER = (MADE, FIRST_STEPS, STEPS, "after")
"""Stages in which what is profiled exists; those before them are parts of the peak."""
_LABELS = {"before": "before the program"}
_ENVIRONMENTS = ("vector environment", "environments", "environment")
_TRAINING = "training run"


def peak_section(stats: Stats) -> Section:
    """Return the peak by part; no rows if it is not known."""
    parts = list(peak_parts(stats))
    whole = max(1, stats.peak_bytes)
    rows = [(name, format_bytes(size), f"{size / whole:.0%}" if size > whole / 200 else "<1%") for name, size in parts]
    workers = max((item.worker_bytes for item in stats.measurements.snapshots), default=0)
    notes = [f"Worker processes take {format_bytes(workers)} besides, without file pages."] if workers else []
    title = f"Peak by part: {format_bytes(stats.peak_bytes)} resident"
    return Section(title, rows, ("part", "resident", "share"), notes, [size / whole for _, size in parts])


def peak_parts(stats: Stats) -> Iterator[tuple[str, int]]:
    """Yield the name and the bytes of each part of the peak; their sum is the peak."""
    measured, left = stats.measurements, stats.peak_bytes
    for stage in measured.stages:
        size = min(left, stage.rss_bytes - (stats.peak_bytes - left))
        if stage.name not in _LATER and size > 0:
            yield _LABELS.get(stage.name, stage.name), size
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
