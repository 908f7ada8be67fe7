import dataclasses

import numpy as np
import pytest

from nclone_env.memory import show, watch
from nclone_env.memory.explain.stats import (
    compute_stats,
    grown_lines,
    largest_lines,
    per_environment,
    untraced_lines,
)
from nclone_env.memory.judge import Growth
from nclone_env.memory.measure.measurements import FLOORS, NATIVE, WORKER, Keeper, SourceLine, Traced, UntracedLine

from ..by_hand import measurements
from ..curves import LEAKS


def test_the_bytes_of_each_further_environment_are_fitted():
    found = per_environment(measurements().sizes)
    assert found is not None
    assert found.measured == pytest.approx(1000)
    assert found.error == pytest.approx(0, abs=1e-6)
    assert found.committed == pytest.approx(1000)
    assert found.reported == 1000
    assert found.python == pytest.approx(50)
    assert found.once == pytest.approx(11_000)
    assert found.unexplained == pytest.approx(-50)


def test_one_size_alone_is_no_fit():
    assert per_environment(measurements().sizes[:1]) is None
    assert per_environment(()) is None


def test_every_measured_quantity_has_a_growth():
    names = [item.quantity for item in compute_stats(measurements()).growths]
    assert names == ["traced", "native", "process", "owners"]  # no worker used any memory
    assert compute_stats(measurements()).verdict == "flat"
    assert compute_stats(measurements(traced_per_step=10)).verdict == "growing"
    assert compute_stats(measurements(native_per_step=100)).verdict == "growing"


def test_committed_pages_of_owners_are_no_growth():
    made = dataclasses.replace(measurements(), judged=None)
    snapshots = tuple(
        dataclasses.replace(item, data_bytes=item.data_bytes + 1000 * int(item.step), committed_bytes=6_000 + late)
        for item in made.snapshots
        for late in [1000 * int(item.step)]
    )
    assert compute_stats(dataclasses.replace(made, snapshots=snapshots)).verdict == "flat"
    uncommitted = tuple(dataclasses.replace(item, committed_bytes=6_000) for item in snapshots)
    assert compute_stats(dataclasses.replace(made, snapshots=uncommitted)).verdict == "growing"


@pytest.mark.parametrize(("each", "verdict"), [(0, "flat"), (100_000, "growing")])
def test_a_program_is_judged_until_it_ends(each, verdict):
    made = measurements()
    last = len(made.snapshots) - 1
    snapshots = tuple(
        dataclasses.replace(
            item,
            step=2 * item.step,
            worker_bytes=20_000_000 + each * int(item.step) if number < last - 1 else 5_000,
        )
        for number, item in enumerate(made.snapshots)
    )
    found = compute_stats(
        dataclasses.replace(made, snapshots=snapshots, traced=(), unit="millisecond", judged=(0.0, 2000.0))
    )
    (workers,) = (item for item in found.growths if item.quantity == "workers")
    assert workers.verdict == verdict
    assert workers.last == snapshots[last - 3].step  # the last part holds two


@pytest.mark.parametrize("unknown", [range(5, 8), range(8, 11)])
def test_a_leak_of_workers_is_judged_where_their_memory_is_known(unknown):
    """The profiler searches in them for a while, maybe until the end: nothing is said of that time."""
    made = measurements()
    steps = [item.step for number, item in enumerate(made.snapshots) if number not in unknown]
    snapshots = tuple(
        dataclasses.replace(item, worker_bytes=10_000 * int(item.step) if item.step in steps else -1)
        for item in made.snapshots
    )
    found = compute_stats(dataclasses.replace(made, snapshots=snapshots))
    (workers,) = (item for item in found.growths if item.quantity == "workers")
    assert workers.verdict == "growing"
    assert max(item.last for item in found.growths) <= steps[-1]


def test_lines_of_a_program_are_judged_until_it_ends():
    """A snapshot may come when the program has freed all that it held."""
    made, steps = measurements(traced_per_step=50_000), range(0, 10_001, 1000)
    held = [100_000 * (step < 10_000) * step for step in steps]
    changed = dataclasses.replace(
        made,
        snapshots=(),
        traced=tuple(map(Traced, steps, held)),
        line_steps=tuple(steps),
        lines=(SourceLine("leak.py", 1, tuple(held), tuple(held)),),
        unit="millisecond",
        judged=(2000.0, 10_000.0),
    )
    found = compute_stats(changed)
    assert found.verdict == "growing"
    assert [line.file for line in found.grown_lines] == ["leak.py"]


@pytest.mark.parametrize("name", LEAKS)
def test_rates_of_lines_add_up_to_what_grows(name):
    """Within a quarter, as lines have fewer snapshots: also beside a large jump in the last part of the run."""
    steps, generator = np.linspace(0, 1, 65), np.random.default_rng(4)
    sizes = (1e7 * LEAKS[name](steps, generator)).astype(int)
    made = dataclasses.replace(
        measurements(),
        snapshots=(),
        traced=tuple(map(Traced, 1000 * steps, sizes.tolist())),
        line_steps=tuple(1000 * steps[::4]),
        lines=tuple(
            SourceLine("leak.py", line, tuple(sizes[::4] * share // 10), (1,) * 17) for line, share in ((1, 7), (2, 3))
        ),
    )
    found = compute_stats(made)
    (traced,) = found.growths
    assert traced.rises
    if traced.verdict == "growing":  # otherwise no rate is told beside them
        assert sum(line.rate for line in found.grown_lines) == pytest.approx(traced.slope, rel=0.25)


def test_growth_names_lines_that_are_too_noisy_to_tell():
    made, steps = measurements(traced_per_step=50_000), tuple(range(200, 1001, 100))
    noisy = tuple(10_000_000 + 9_000_000 * (step % 200 == 0) + 5_000 * step for step in steps)
    changed = dataclasses.replace(made, line_steps=steps, lines=(SourceLine("noisy.py", 1, noisy, noisy),))
    assert [line.file for line in compute_stats(changed).grown_lines] == ["noisy.py"]
    calm = dataclasses.replace(changed, traced=measurements().traced)
    assert compute_stats(calm).grown_lines == ()


@pytest.mark.parametrize(("rate", "verdict"), [(49_000, "growing"), (51_000, "undecided")])
def test_containers_that_will_stop_to_grow_are_undecided_if_they_explain_half(rate, verdict):
    made, steps = measurements(traced_per_step=100_000), tuple(range(200, 1001, 100))
    sizes = [tuple(each * step for step in steps) for each in (rate, 100_000 - rate)]
    lines = tuple(SourceLine("fills.py", number, size, size) for number, size in enumerate(sizes))
    keeper = Keeper("fills.py:0", "newest", "deque of 5, at most 9", is_filling=True)
    changed = dataclasses.replace(made, line_steps=steps, lines=lines, keepers=(keeper,))
    assert compute_stats(changed).verdict == verdict
    full = dataclasses.replace(changed, keepers=(dataclasses.replace(keeper, is_filling=False),))
    assert compute_stats(full).verdict == "growing"


@pytest.mark.parametrize(
    ("floors", "slope", "verdict"),
    [
        (FLOORS, 500, "growing"),
        (watch._FLOORS, 500, "flat"),
        (watch._FLOORS, 5_000, "growing"),
    ],
)
def test_resident_memory_may_vary_by_an_arena_beside_code_of_the_user(floors, slope, verdict):
    made = measurements()
    snapshots = tuple(dataclasses.replace(item, data_bytes=slope * int(item.step)) for item in made.snapshots)
    changed = dataclasses.replace(made, snapshots=snapshots, floors=floors, judged=(0, 1000))
    assert compute_stats(changed).verdict == verdict


def test_speed_counts_environment_steps():
    speed = compute_stats(measurements()).speed
    assert speed is not None
    assert speed.plain == pytest.approx(8000)
    assert speed.profiled == pytest.approx(2000)
    assert speed.median_seconds == speed.p95_seconds == 0.0005


def test_worker_processes_are_no_unexplained_memory():
    made = measurements().sizes
    found = per_environment(
        [dataclasses.replace(point, data_bytes=point.data_bytes + 700 * point.num_envs) for point in made]
    )
    with_workers = [
        dataclasses.replace(
            point, data_bytes=point.data_bytes + 700 * point.num_envs, worker_bytes=700 * point.num_envs
        )
        for point in made
    ]
    named = per_environment(with_workers)
    assert found is not None
    assert named is not None
    assert named.workers == pytest.approx(700)
    assert found.unexplained - named.unexplained == pytest.approx(700)


def test_step_peaks_leave_out_the_warm_up():
    peak = compute_stats(measurements()).step_peak
    assert peak is not None
    assert (peak.median, peak.largest) == (300, 500)


def test_the_peak_is_that_since_the_environments_were_made():
    assert compute_stats(measurements()).peak_bytes == 97_000


def test_lines_are_sorted_by_size():
    lines = largest_lines([SourceLine(name, 1, (0, size), (0, 1)) for name, size in (("a", 5), ("b", 9), ("c", 9))])
    assert [line.file for line in lines] == ["b", "c", "a"]


def test_grown_lines_are_those_with_more_than_before_at_a_rate():
    found = compute_stats(measurements()).grown_lines
    assert [(line.place, line.grown_bytes, line.grown_blocks) for line in found] == [
        ("a.py:1", 300, 1),
        ("mine.py:5", 50, 1),
    ]
    assert found[0].rate == pytest.approx(300 / 0.8)
    assert found[0].callers == ("caller.py:7", "main.py:1")
    assert found[0].keeper == "Keep.kept < env (list of 2: bytes)"
    assert found[1].behind == "c.py:3"  # the user's own line comes first


def test_a_line_that_grows_traced_and_in_native_code_has_a_row_of_each():
    made = measurements(native_per_step=500)
    found = compute_stats(dataclasses.replace(made, untraced=(UntracedLine(NATIVE, "mine.py:5", 1.0),)))
    line, traced = (line for line in found.grown_lines if line.place == "mine.py:5")
    assert (line.behind, line.rate) == (NATIVE, pytest.approx(500_000))
    assert traced.behind == "c.py:3"
    assert not line.keeper
    rows = show.text_of([show.summary(found)])
    assert "no line was seen" not in rows
    (line,) = (line for line in compute_stats(made).grown_lines if line.place == "mine.py:5")
    assert line.behind == "c.py:3"


@pytest.mark.parametrize(("verdict", "count"), [("growing", 1), ("undecided", 1), ("flat", 0)])
def test_lines_of_workers_are_named_where_these_rose(verdict, count):
    found = Growth("workers", 9, 0.0, 800.0, 100.0, 0.0, 0.0, 80, verdict)
    made = dataclasses.replace(measurements(), untraced=(UntracedLine(WORKER, "mine.py:5", 1.0),))
    assert len(list(untraced_lines(made, [found]))) == count


@pytest.mark.parametrize(
    ("others", "name"), [((), "kept"), ((Keeper(NATIVE, "total.grad_fn", "graph"),), "total.grad_fn")]
)
def test_what_keeps_the_objects_of_a_line_keeps_their_native_memory_too(others, name):
    keepers = (Keeper("mine.py:5", "kept", "list"), *others)
    made = measurements(native_per_step=500)
    found = compute_stats(
        dataclasses.replace(made, untraced=(UntracedLine(NATIVE, "mine.py:5", 1.0),), keepers=keepers)
    )
    line, _ = (line for line in found.grown_lines if line.place == "mine.py:5")
    assert line.keeper.split(" (")[0] == name


def test_the_rate_of_a_line_has_an_error_and_a_jump_is_none():
    steps = tuple(range(200, 1001, 100))
    steady = SourceLine("steady.py", 1, tuple(257 * step for step in steps), (1,) * 9)
    jump = SourceLine("jump.py", 1, tuple(90_000 * (step > 500) for step in steps), (1,) * 9)
    (found,) = grown_lines([steady, jump], steps, 200, 1000)
    assert (found.file, found.rate) == ("steady.py", pytest.approx(257_000))
    assert found.error == pytest.approx(0, abs=1e-3)


def test_functions_below_a_thousandth_of_the_time_are_left_out():
    stats = compute_stats(measurements())
    assert [item.name for item in stats.by_own] == ["inner", "outer"]
    assert [item.name for item in stats.by_cumulative] == ["outer", "inner"]
