"""Garbage is collected beside the code that is judged, as far as it takes little of the time."""

import types
from functools import partial

import numpy as np
import pytest

from nclone_env.memory.measure import process, snapshots
from nclone_env.memory.measure.process import ResidentBytes
from nclone_env.memory.measure.snapshots import Garbage, SnapshotLog, TracedLog, tracing
from nclone_env.memory.measure.tree import MemoryNode


class Collector:
    """Stands in for ``gc``, ``sys`` and ``time``: a full collection takes so many seconds."""

    def __init__(self, seconds=0.0, frozen=0):
        self.seconds, self.frozen, self.enabled = seconds, frozen, True
        self.now = 1000.0
        self.collected = []

    def isenabled(self):
        return self.enabled

    def collect(self, generation):
        self.collected.append(generation)
        self.now += self.seconds if generation == 2 else 0.0

    def freeze(self):
        self.frozen += 100

    def unfreeze(self):
        self.frozen = 0

    def get_freeze_count(self):
        return self.frozen

    def thread_time(self):
        return self.now

    def clear_caches(self):
        self.collected.append("names")

    perf_counter = thread_time


@pytest.fixture
def collector(monkeypatch):
    found = Collector()
    for module in ("gc", "time"):
        monkeypatch.setattr(snapshots, module, found)
    monkeypatch.setattr(snapshots, "_clear_caches", found.clear_caches)
    return found


def test_fast_collections_are_full(collector):
    own = Garbage()
    for _ in range(3):
        own.collect()
    assert collector.collected == [2, "names"] * 3
    assert own.all_full


def test_slow_collections_take_a_twentieth_of_the_time(collector):
    collector.seconds, own = 1.0, Garbage()
    for _ in range(41):
        own.collect()
        collector.now += 1.0
    assert collector.collected.count(2) == 2
    assert collector.collected.count(1) == 39
    assert not own.all_full


def test_what_is_left_out_does_not_count_for_the_next_time(collector):
    collector.seconds, own = 1.0, Garbage()
    own.collect()
    own.leave_out()
    own.collect()
    assert collector.collected.count(2) == 2


def test_a_program_without_collections_gets_none(collector):
    collector.enabled, own = False, Garbage()
    own.collect()
    assert collector.collected == []
    assert not own.all_full


def test_what_was_left_out_is_included_again(collector):
    own = Garbage()
    own.leave_out()
    assert collector.frozen == 100
    own.include()
    assert collector.frozen == 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_the_code_leaves_out_stays_so(collector, when):
    own = Garbage()
    if when == "before":
        collector.freeze()
    own.leave_out()
    if when == "after":
        collector.freeze()
    before = collector.frozen
    own.include()
    assert collector.frozen == before


def test_a_log_of_snapshots_makes_room():
    log = SnapshotLog(4)
    for step in range(4):
        log.take(step, MemoryNode("nothing"))
    log.thin()
    log.take(4, MemoryNode("nothing"))
    assert [item.step for item in log.snapshots()] == [0, 2, 4]


def test_what_the_profiler_has_freed_is_no_memory_of_the_code(monkeypatch):
    monkeypatch.setattr(snapshots, "resident_bytes", lambda: ResidentBytes(9000, 9000, 9000, 9000))
    log = SnapshotLog(2)
    log.take(0, MemoryNode("nothing"))
    log.take(1, MemoryNode("nothing"), left=2000)
    before, after = log.snapshots()
    assert before.data_bytes - after.data_bytes == 2000


def test_what_the_profiler_takes_in_workers_is_no_memory_of_theirs(monkeypatch):
    sizes = iter([{7: 1000, 8: 1000}, *[{7: 9000, 8: 1500}] * 2, {7: 9100, 8: 1600}])
    monkeypatch.setattr(snapshots, "worker_sizes", lambda field: next(sizes))
    log = SnapshotLog(4)
    looks = iter([{}, {}, {}, {7: None}, {7: None}, {7: 8000}, {7: 8000}, {7: 8000}])  # not known while it takes more
    for step in range(4):
        log.take(step, MemoryNode("nothing"), in_workers=lambda: next(looks))
    assert [snapshot.worker_bytes for snapshot in log.snapshots()] == [2000, -1, -1, 2700]
    assert log.workers == {7: 1100, 8: 1600}


def test_looks_at_traced_blocks_leave_memory_resident():
    """As much as the most that there were, as it stays when they are freed."""
    log = TracedLog(4)
    with tracing():
        log.take(0, lines=True, always=True)
        assert log.left < 100_000
        kept = [object() for _ in range(2_000)]
        log.take(1, lines=True, always=True)
        most = log.left
        assert 2_000 * 180 <= most < 2_000 * 180 + 100_000
        kept.clear()
        log.take(2, lines=True, always=True)
        assert log.left == most


@pytest.mark.skipif(process.heap_bytes() is None or not process._PAGEMAP.exists(), reason="needs glibc on Linux")
def test_what_is_written_of_blocks_counts_as_long_as_they_are_there(monkeypatch):
    late, filled = np.empty(64 << 20, np.uint8), snapshots.FilledBlocks()  # over 32 MB: the system maps it
    late[: 4 << 20] = 1
    filled.note()
    before = filled.grown_bytes()
    late[: 20 << 20] = 1
    filled.note()  # again: what is known keeps its beginning
    written = filled.grown_bytes() - before
    assert written == pytest.approx(16 << 20, abs=4 << 20)  # pages of 2 MB
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "committed_bytes", lambda blocks: 0)  # after a fork
        assert filled.grown_bytes() - before == written
    del late
    assert filled.grown_bytes() - before < 4 << 20


def test_a_budget_ends_by_the_processor_or_after_twice_the_time_by_the_clock(monkeypatch):
    now = {"thread_time": 0.0, "perf_counter": 0.0}
    clocks = types.SimpleNamespace(**{name: partial(now.get, name) for name in now})
    monkeypatch.setattr(snapshots, "time", clocks)
    budget, patient = snapshots.Budget(1.0), snapshots.Budget(1.0, by_clock=False)
    now["perf_counter"] = 1.0
    half = budget.part(0.5)  # of the 0.5 s that are left
    now["thread_time"] = 0.24
    assert not half.is_over
    now["thread_time"] = 0.25
    assert half.is_over
    assert not budget.is_over
    now["perf_counter"] = 2.0
    assert budget.is_over
    assert not patient.is_over
    now["thread_time"] = 1.0
    assert patient.is_over
