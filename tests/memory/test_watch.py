import json
import mmap
import tempfile
import time
import tracemalloc
import types
from contextlib import contextmanager, nullcontext
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import pytest

from nclone_env.memory import profile
from nclone_env.memory.explain.stats import GrownLine, compute_stats
from nclone_env.memory.measure.measurements import Keeper
from nclone_env.memory.measure.snapshots import tracing
from nclone_env.memory.measure.tree import MemoryNode, array_node
from nclone_env.memory.show import memory_text
from nclone_env.memory.watch import Watch

from ..processes import run_copy

pytestmark = pytest.mark.usefixtures("frozen_heap")


@pytest.mark.usefixtures("few_snapshots")
def test_a_block_without_a_leak_is_flat():
    with profile("fine") as watch:
        for _ in range(400):
            bytearray(500)
            watch.step()
    assert watch.stats is not None
    assert watch.stats.verdict == "flat"
    assert watch.stats.measurements.unit == "step"
    assert watch.stats.measurements.snapshots[-1].step == 400
    assert 12 <= len(watch.stats.measurements.snapshots) <= 25


@pytest.mark.usefixtures("few_snapshots")
def test_a_fault_of_the_search_is_printed_and_the_block_goes_on(monkeypatch, capsys):
    monkeypatch.setattr("nclone_env.memory.watch.find_graphs", lambda *arguments: 1 / 0)
    kept = []
    with profile("leaky") as watch:
        for _ in range(400):
            kept.append(bytearray(500))
            watch.step()
    assert watch.stats is not None
    assert watch.stats.grown_lines[0].file == __file__
    assert "GROWING: traced" in str(watch)
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.usefixtures("few_snapshots")
def test_without_tracing_the_allocator_finds_it():
    kept = []
    with profile(trace=False) as watch:
        for _ in range(400):
            kept.append(bytearray(2000))
            watch.step()
    assert watch.stats is not None
    assert watch.stats.verdict == "growing"
    assert not watch.stats.measurements.traced


@pytest.mark.usefixtures("few_snapshots")
def test_the_answer_so_far_names_what_grows(monkeypatch):
    kept, ours, watch = [], [], profile("leaky")
    assert watch.so_far() == ""
    with watch:
        for _ in range(400):
            kept.append(bytearray(500))
            watch.step()
        monkeypatch.setattr(
            "nclone_env.memory.watch.compute_stats", lambda found: ours.append(bytearray(2**20)) or compute_stats(found)
        )
        before = watch._log._own.native
        seen = watch.so_far()
        assert watch._log._own.native - before >= 2**20  # what the answer takes is no memory of the code
        monkeypatch.undo()
    assert seen.startswith("GROWING: traced +")
    assert "test_watch.py:" in seen


def test_a_block_without_steps_is_measured_by_time(tmp_path):
    with profile("clock", output_dir=tmp_path) as watch:
        while not watch._settled or len(watch._log) < 2:  # those taken before are forgotten then
            time.sleep(0.05)
    assert watch.stats is not None
    assert watch.stats.measurements.unit == "millisecond"
    assert watch.stats.measurements.snapshots[-1].step >= watch._settled
    assert len(watch.stats.measurements.snapshots) >= 2
    content = json.loads((tmp_path / "memory_profiling_report.json").read_text())
    assert content["name"] == "clock"


def test_a_search_that_lasts_beyond_the_end_of_a_block_is_no_time_of_it(monkeypatch):
    now = 0.0
    monkeypatch.setattr("nclone_env.memory.watch.Watch._milliseconds", lambda watch: now)
    watch = profile(trace=False)
    wait = watch._stopped.wait

    def wait_for_the_search():
        nonlocal now
        wait()
        now = 9000.0

    monkeypatch.setattr(watch._stopped, "wait", wait_for_the_search)
    with watch:
        now = 5000.0
    assert watch.stats is not None
    assert watch.stats.measurements.snapshots[-1].step == 5000


def test_reports_are_written_after_an_error_too(tmp_path):
    watch = profile(output_dir=tmp_path)
    with pytest.raises(ValueError, match="no number"), watch:
        int("no number")
    assert (tmp_path / "memory_profiling_report.txt").exists()
    assert "UNDECIDED" in str(watch)


@pytest.mark.usefixtures("few_snapshots")
def test_arrays_of_an_owner_are_told_apart():
    class Owner:
        late = np.zeros((400, 4096), np.uint8)

        def memory(self):
            return MemoryNode("all", children=(array_node("late", self.late, shared=True),))

    owner = Owner()
    with profile(owner=owner) as watch:
        for step in range(400):
            owner.late[step] = 1
            watch.step()
    assert watch.stats is not None
    assert watch.stats.verdict != "growing"  # if what the profiler itself took came late, it is undecided
    assert watch.stats.measurements.snapshots[-1].committed_bytes > 1_400_000


def test_stretches_in_which_native_code_is_watched_count_as_searches(monkeypatch):
    stretches = []
    monkeypatch.setattr(
        "nclone_env.memory.watch.NativeLines.watch", lambda lines, seconds, *_, **__: stretches.append(seconds)
    )
    growing = {"native": types.SimpleNamespace(slope=0.0)}
    monkeypatch.setattr("nclone_env.memory.watch.growing_alone", lambda growths: growing)
    monkeypatch.setattr("nclone_env.memory.watch.Watch._find_keepers", lambda *arguments: None)
    elapsed = 0.0
    monkeypatch.setattr("nclone_env.memory.watch.time.process_time", lambda: elapsed)
    monkeypatch.setattr("nclone_env.memory.watch.time.thread_time", lambda: 0.0)
    with profile() as watch:
        watch.step()
        while elapsed < 30:
            elapsed += 0.1
            watch._search_now_and_then()
            assert watch._searched <= elapsed / 5 + 1  # one may have begun
    assert sum(stretches[:-1]) > 4
    assert stretches[0] == pytest.approx(0.06)


@pytest.mark.parametrize(("seen", "may_be_all"), [((60, 100), True), ((40, 100), False)])
def test_growth_of_a_container_that_was_full_in_the_first_half_of_a_run_is_not_its_filling(
    seen, may_be_all, monkeypatch
):
    full = Keeper("fills.py:1", "newest", "deque of 9", is_full=True)
    line = GrownLine("fills.py", 1, "", 1.0, 0.0, 900, 9, ())
    monkeypatch.setattr("nclone_env.memory.watch.find_keepers", lambda *arguments: (full,))
    watch = Watch("fills", None, 0, None, traced=True)
    watch._ended.set()  # lines with a keeper are searched again only then
    with tracing():
        for watch._steps in seen:
            watch._find_keepers([line], 0.0)
    assert watch._keepers["fills.py:1"].is_filling == may_be_all


@pytest.fixture
def soon_untraced(monkeypatch):
    """End tracing after 0.1 s in which nothing grew, instead of 20 s; a step takes a millisecond of the clock."""
    monkeypatch.setattr("nclone_env.memory.watch._TRACED", 0.1)
    monkeypatch.setattr("nclone_env.memory.measure.snapshots._FRAMES", 1)
    monkeypatch.setattr("nclone_env.memory.watch.Watch._milliseconds", lambda watch: 1.0 + watch._steps)


@pytest.mark.usefixtures("soon_untraced", "few_snapshots")
def test_tracing_ends_while_nothing_grows():
    with profile("fine") as watch:
        watch.step()
        while tracemalloc.is_tracing():
            bytearray(500)
            watch.step()
        for _ in range(2_000):
            bytearray(500)
            watch.step()
    assert watch.stats is not None
    found = watch.stats.measurements
    assert watch.stats.verdict == "flat"
    assert found.tracing is not None
    assert found.tracing[1] <= found.traced[-1].step <= found.snapshots[-1].step - 2_000
    assert "without tracing: " in str(watch)
    assert "Nothing grew while memory was traced, until" in memory_text(watch.stats)


@pytest.mark.usefixtures("soon_untraced", "few_snapshots")
@pytest.mark.parametrize(("expected", "traced"), [(0, 200), (5_000, 1_000)])
def test_a_fifth_of_the_steps_is_traced_however_fast_the_clock_runs(expected, traced, monkeypatch):
    monkeypatch.setattr("nclone_env.memory.watch._TRACED", 0.0)
    monkeypatch.setattr("nclone_env.memory.watch.growths_of", lambda measured: ())  # else a large process has some
    steps = 0
    with profile("fine", trace=True) as watch:
        watch.expected_steps = expected
        watch.step()
        while tracemalloc.is_tracing():
            watch.step()
            steps += 1
    assert traced <= steps < 1.5 * traced


@pytest.mark.usefixtures("soon_untraced", "few_snapshots")
def test_a_program_that_waits_is_traced_however_long(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.watch._TRACED", 1e9)
    with profile("waits") as watch:
        for _ in range(1_000):
            watch.step()
        assert tracemalloc.is_tracing()


@pytest.mark.usefixtures("soon_untraced")
def test_tracing_begins_again_when_something_grows_and_names_the_line(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.watch.find_keepers", lambda *arguments: ())  # it would take seconds
    kept = []
    with profile("late") as watch:
        watch.step()
        while tracemalloc.is_tracing():
            bytearray(5000)
            watch.step()
        while not tracemalloc.is_tracing():
            kept.append(bytearray(5000))
            watch.step()
        for _ in range(2 * len(kept)):
            kept.append(bytearray(5000))
            watch.step()
    assert watch.stats is not None
    assert watch.stats.verdict == "growing"
    assert watch.stats.measurements.tracing is None
    assert watch.stats.grown_lines[0].file == __file__
    assert "without tracing" in [stage.name for stage in watch.stats.measurements.stages][-2]


@pytest.mark.usefixtures("few_snapshots")
def test_a_profile_that_ends_first_leaves_the_other_one_tracing():
    first, second = profile("first"), profile("second")
    first.__enter__()
    first.step()
    second.__enter__()
    second.step()
    first.__exit__(None, None, None)
    for _ in range(30):
        second.step()
    second.__exit__(None, None, None)
    assert second.stats is not None
    assert second.stats.measurements.traced
    assert not tracemalloc.is_tracing()


# Last, as torch makes each look at memory slower
@contextmanager
def tensor(size):
    torch = pytest.importorskip("torch")
    yield torch.empty(size, dtype=torch.uint8).numpy()


@contextmanager
def shared_block(size):
    shared = shared_memory.SharedMemory(create=True, size=size)
    yield shared.buf
    shared.close()
    shared.unlink()


@contextmanager
def copy_of_a_file(size):
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(size)
        yield np.memmap(file.name, np.uint8, "c")


RESERVED = {
    "array": lambda size: nullcontext(np.zeros(size, np.uint8)),
    "map": lambda size: nullcontext(memoryview(mmap.mmap(-1, size))),
    "shared block": shared_block,
    "copy of a file": copy_of_a_file,
    "tensor": tensor,
}


PART = 1 << 17
CONTROL = f"""
import numpy as np
from nclone_env.memory import profile
from nclone_env.memory.measure import snapshots
snapshots.reserved_blocks = lambda: ()
late = np.zeros(300 * {PART}, np.uint8)
with profile(trace=False) as watch:
    for step in range(300):
        late[step * {PART} : (step + 1) * {PART}] = 1
        watch.step()
print(watch.stats.verdict)
"""


@pytest.mark.usefixtures("few_snapshots")
@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="needs the table of pages")
@pytest.mark.parametrize("kind", RESERVED)
def test_memory_that_is_reserved_at_once_and_written_bit_by_bit_is_no_growth(kind):
    """Such as a replay buffer."""
    with RESERVED[kind](300 * PART) as late, profile(trace=False) as watch:  # over 32 MB: the system maps it
        for step in range(300):
            late[step * PART : (step + 1) * PART] = np.ones(PART, np.uint8)
            watch.step()
    assert watch.stats is not None
    assert watch.stats.verdict == "flat"


def test_an_array_whose_block_is_not_found_is_growth(folder):
    """Negative control, in a process of its own: one that has freed as much makes the array of written memory."""
    Path("control.py").write_text(CONTROL)
    assert run_copy(folder / "control.py")[0].split()[-1] == "growing"
