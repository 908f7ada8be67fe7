import importlib.util
import pstats
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest

from nclone_env.errors import ConfigError, MissingExtraError
from nclone_env.memory.measure import process
from nclone_env.memory.measure.measurements import ProfileSettings
from nclone_env.memory.measure.process import heap_bytes, resident_bytes, worker_bytes, worker_sizes
from nclone_env.memory.passes import drive, environment_counts, measured, plain_pass, record_allocations, traced_pass

from .by_hand import measurements
from .stub import StubTarget

pytestmark = pytest.mark.usefixtures("frozen_heap")


needs_memray = pytest.mark.skipif(importlib.util.find_spec("memray") is None, reason="needs memray")


@pytest.fixture(autouse=True)
def no_fresh_processes(monkeypatch):
    """Leave out the fresh processes, which test_sizes starts once."""
    monkeypatch.setattr("nclone_env.memory.passes.measure_sizes", lambda *arguments: ())


def stats_of(**leaks):
    return measured(StubTarget(**leaks), 16, 1000)


def growth_of(stats, quantity):
    return next(item for item in stats.growths if item.quantity == quantity)


def test_without_a_leak_the_verdict_is_flat():
    stats = stats_of()
    assert stats.verdict == "flat"
    assert (
        [item.step for item in stats.measurements.snapshots]
        == [item.step for item in stats.measurements.traced]
        == list(range(0, 1001, 50))
    )
    assert stats.measurements.owners[0].environment_bytes == 16 * 24_000
    assert stats.speed is not None
    assert stats.speed.plain > 0


@pytest.mark.parametrize(("workers", "floor"), [(0, 1024**2), (8, 1024**2), (24, 3 * 1024**2)])
def test_the_floor_of_workers_is_that_of_code_of_the_user(monkeypatch, workers, floor):
    monkeypatch.setattr(
        "nclone_env.memory.measure.snapshots.worker_sizes", lambda kind: dict.fromkeys(range(workers), 1)
    )
    assert plain_pass(StubTarget(), ProfileSettings(2, 20)).floors["workers"] == floor


@pytest.mark.parametrize("size", [5, 100])
def test_a_leak_of_python_is_found_with_its_line_and_rate(size):
    stats = stats_of(leak_bytes=size)
    traced = growth_of(stats, "traced")
    assert stats.verdict == traced.verdict == "growing"
    whole = bytes(size).__sizeof__()
    assert whole * 1000 < traced.slope < (whole + 16) * 1000  # the object and its place in a list
    worst = stats.grown_lines[0]
    assert worst.file.endswith("stub.py")
    assert any("passes.py" in caller for caller in worst.callers)


def test_a_slow_leak_of_python_is_found():
    assert stats_of(leak_bytes=67, leak_every=20).verdict == "growing"  # 5 KB per 1,000 steps


@pytest.mark.skipif(heap_bytes() is None, reason="needs mallinfo2")
@pytest.mark.parametrize(("size", "every"), [(64, 1), (20_000, 100)])
def test_a_leak_of_native_code_is_found_by_the_allocator(size, every):
    stats = stats_of(leak_native=size, leak_every=every)
    native = growth_of(stats, "native")
    assert stats.verdict == native.verdict == "growing"
    assert growth_of(stats, "traced").verdict == "flat"
    block = -(-(size + 8) // 16) * 16  # a header, and whole multiples of 16 bytes
    assert native.slope == pytest.approx(1000 * block / every, rel=0.35)


def test_pages_from_outside_all_allocators_are_found_in_resident_memory():
    stats = stats_of(leak_pages=4)
    assert stats.verdict == growth_of(stats, "process").verdict == "growing"
    assert growth_of(stats, "process").slope == pytest.approx(4 * 4096 * 1000, rel=0.1)


def test_an_array_whose_pages_are_committed_late_is_not_a_leak():
    stats = stats_of(touch_late=True)
    assert stats.verdict == "flat"
    assert stats.measurements.snapshots[-1].data_bytes - stats.measurements.snapshots[0].data_bytes > 3_000_000
    assert (
        stats.measurements.snapshots[-1].committed_bytes - stats.measurements.snapshots[0].committed_bytes > 3_000_000
    )


def test_the_profiler_excludes_its_own_memory():
    steps = ProfileSettings(2, steps=100, interval=2)  # many snapshots, so that any accumulation would show
    found = traced_pass(StubTarget(), replace(measurements(), settings=steps))
    traced, lines = found.traced, found.lines
    assert len(traced) == 51
    assert len(found.step_peaks) == 100
    assert max(item.traced_bytes for item in traced[10:]) - traced[10].traced_bytes < 512
    assert not [line for line in lines if "nclone_env/memory" in line.file or "fnmatch" in line.file]
    assert not tracemalloc.is_tracing()


def test_tracing_started_before_continues():
    tracemalloc.start()
    try:
        traced_pass(StubTarget(), replace(measurements(), settings=ProfileSettings(1, steps=4, interval=2)))
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_the_profile_can_be_read_by_pstats(tmp_path):
    (tmp_path / "x.prof").write_bytes(measured(StubTarget(), 1, 20).measurements.profile)
    functions = {name for _, _, name in pstats.Stats(str(tmp_path / "x.prof")).stats}
    assert "step" in functions


def test_snapshots_are_taken_after_exactly_their_steps():
    subject, seen = StubTarget().make(1), []
    drive(subject.step, ProfileSettings(1, steps=25, interval=2), lambda step: seen.append((step, subject.steps)))
    assert seen == [(step, step) for step in (*range(0, 25, 2), 25)]


@pytest.mark.parametrize(
    ("steps", "interval", "count"),
    [(1000, 100, 11), (1000, None, 21), (50, 100, 11), (3, None, 4), (1, 7, 2), (100, 1, 101)],
)
def test_the_interval_adapts_to_short_runs(steps, interval, count):
    taken = ProfileSettings(1, steps, interval).snapshot_steps()
    assert len(taken) == count
    assert (taken[0], taken[-1]) == (0, steps)


@pytest.mark.parametrize("name", ["num_envs", "steps", "interval"])
def test_settings_out_of_range_are_refused(name):
    with pytest.raises(ConfigError, match=f"{name}: expected a whole number of at least 1, got 0"):
        measured(StubTarget(), **{"num_envs": 1, "steps": 1, name: 0})


def test_fresh_processes_have_enough_environments_to_measure():
    assert environment_counts(16, 50_000, 4096) == (251, 503, 1006)
    assert environment_counts(16, 100, 4096) == (1024, 2048, 4096)
    assert environment_counts(10_000, 50_000, 4096) == (2500, 5000, 10_000)
    assert environment_counts(1, 0, 8) == (2, 4, 8)


def test_resident_memory_is_plausible_and_psutil_agrees(monkeypatch, tmp_path):
    pytest.importorskip("psutil")
    ours = resident_bytes()
    monkeypatch.setattr(process, "_SMAPS", tmp_path / "none")
    theirs = resident_bytes()
    assert 0 < ours.data < ours.pss <= ours.rss
    assert theirs.rss == pytest.approx(ours.rss, rel=0.05)


def test_without_smaps_and_psutil_the_error_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "_SMAPS", tmp_path / "none")
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(MissingExtraError, match=r"\.\[profile\]"):
        resident_bytes()


PEAKS = """
import numpy as np
from nclone_env.memory.measure import process
process.restart_peak()
low = process.peak_bytes()
held = np.ones(400_000_000, np.uint8)
del held
high = process.peak_bytes()
process.restart_peak()
print(low, high, process.peak_bytes())
"""


def test_the_peak_is_restarted():
    """In a small process: of a large one the system may take back as much meanwhile."""
    done = subprocess.run([sys.executable, "-c", PEAKS], capture_output=True, text=True, check=True)
    low, high, after = map(int, done.stdout.split())
    if low == 0 or after == high:
        pytest.skip("the system does not restart peaks")
    assert high - low > 200_000_000
    assert after < high - 200_000_000


def test_the_memory_of_child_processes_is_summed():
    code = "x = bytearray(20_000_000); print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert 20_000_000 < worker_sizes("data")[child.pid] < 60_000_000
        assert worker_bytes() > 20_000_000
        child.communicate(b"\n")
    assert child.pid not in worker_sizes("data")


@needs_memray
def test_every_allocation_of_a_step_is_recorded_with_its_line():
    recorded = record_allocations(StubTarget(leak_bytes=5000, leak_pages=3), 2, steps=20)
    assert recorded.steps == 20
    sizes = {line.allocated_bytes // 20: line for line in recorded.lines if line.file.endswith("stub.py")}
    for expected in (5000, 3 * 4096):
        found = [line for size, line in sizes.items() if expected <= size < expected + 300]  # and small objects
        assert found, sizes
        assert found[0].blocks >= 20
    assert b"flamegraph" in recorded.flame_graph.lower()


@needs_memray
def test_long_runs_are_recorded_in_part_and_what_allocates_nothing_has_no_large_lines(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.passes._flame_graph", lambda file: b"")
    recorded = record_allocations(StubTarget(), 2, steps=10_000)
    assert recorded.steps == 100
    assert sum(line.allocated_bytes for line in recorded.lines) < 100 * 500


def test_without_memray_nothing_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "memray", None)
    passes = []
    with pytest.raises(MissingExtraError, match=r"memray is not installed; run pip install .*\[profile\]"):
        measured(StubTarget(), 1, 1000, notify=passes.append, memray=True)
    assert passes == []
