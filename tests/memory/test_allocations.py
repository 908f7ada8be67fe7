"""Allocations recorded by memray."""

import sys

import pytest

from nclone_env.errors import MissingExtraError
from nclone_env.memory.allocations import record_allocations
from nclone_env.memory.measurements import ProfileSettings
from nclone_env.memory.passes import collect

from .stub import StubTarget

pytest.importorskip("memray")


def test_every_allocation_of_a_step_is_recorded_with_its_line():
    recorded = record_allocations(StubTarget(leak_bytes=5000, leak_pages=3), 2, steps=20)
    assert recorded.steps == 20
    sizes = {line.allocated_bytes // 20: line for line in recorded.lines if line.file.endswith("stub.py")}
    for expected in (5000, 3 * 4096):
        found = [line for size, line in sizes.items() if expected <= size < expected + 300]  # and small objects
        assert found, sizes
        assert found[0].blocks >= 20
    assert b"flamegraph" in recorded.flame_graph.lower()


def test_steps_that_allocate_nothing_have_no_large_lines():
    recorded = record_allocations(StubTarget(), 2, steps=20)
    assert sum(line.allocated_bytes for line in recorded.lines) < 20 * 500


def test_long_runs_are_recorded_in_part():
    assert record_allocations(StubTarget(), 1, steps=10_000).steps == 100


def test_without_memray_nothing_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "memray", None)
    passes = []
    with pytest.raises(MissingExtraError, match=r"memray is not installed; run pip install .*\[profile\]"):
        collect(StubTarget(), ProfileSettings(1), notify=passes.append, memray=True)
    assert passes == []
