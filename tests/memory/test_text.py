import dataclasses
import json

import pytest

from nclone_env.memory.measurements import OwnedNode, SourceLine, Traced
from nclone_env.memory.report import (
    FLAME_GRAPH,
    HTML_REPORT,
    JSON_REPORT,
    MEMORY_REPORT,
    TIME_PROFILE,
    TIME_REPORT,
    answers,
    folded,
    format_bytes,
    format_seconds,
    json_text,
    memory_text,
    summary,
    text_of,
    time_text,
    write_reports,
)
from nclone_env.memory.stats import compute_stats

from .by_hand import STEPS, measurements


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (-1e-9, "0 B"),
        (1, "1 B"),
        (21.3, "21.3 B"),
        (1023, "1,023 B"),
        (1023.99, "1.0 KB"),
        (1024, "1.0 KB"),
        (1536, "1.5 KB"),
        (1024**2 - 1, "1.00 MB"),
        (-3 * 1024**2, "-3.00 MB"),
        (5 * 1024**3, "5.00 GB"),
        (5000 * 1024**3, "5,000.00 GB"),
    ],
)
def test_bytes_are_formatted_with_the_right_unit(count, text):
    assert format_bytes(count) == text


def test_the_sign_is_formatted_on_request():
    assert format_bytes(2048, sign=True) == "+2.0 KB"
    assert format_bytes(-2048, sign=True) == "-2.0 KB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5e-6, "1.5 us"), (0.000123, "123 us"), (0.5, "500 ms"), (2.0, "2 s"), (1234.0, "1.23e+03 s")],
)
def test_seconds_are_formatted_with_the_right_unit(seconds, text):
    assert format_seconds(seconds) == text


def test_the_report_begins_with_the_answer():
    lines = memory_text(compute_stats(measurements(traced_per_step=100))).splitlines()
    assert lines[:4] == [
        "Memory profile: stub, 4 environments",
        "  growth  GROWING: traced +97.7 KB per 1,000 vector steps (+73.2 KB in 750 of 1,000 vector steps)",
        "  grew    a.py:1 +375 B per 1,000 vector steps (+300 B)",
        "            kept by Keep.kept < env (list of 2: bytes)",
    ]


@pytest.mark.parametrize(("traced", "blocks", "named"), [(100, 2, True), (0, 5, False), (0, 6, True)])
def test_where_traced_memory_is_flat_only_lines_that_took_blocks_again_and_again_are_named(traced, blocks, named):
    """They took what holds the memory of native code that grows; others are noise."""
    lines = (SourceLine("a.py", 1, (100, 400), (1, blocks)),)
    made = dataclasses.replace(measurements(traced, native_per_step=500), untraced=(), lines=lines)
    grew = answers(compute_stats(made))["grew"]
    assert grew[0].startswith("a.py:1 ") == named
    assert grew[-1] == "native: no line was seen taking it"


@pytest.mark.parametrize(
    ("changes", "unseen"),
    [
        ({}, []),
        ({"untraced": ()}, ["native: no line was seen taking it"]),
        ({"untraced": (), "lines": ()}, ["native, traced: no line was seen taking it"]),
    ],
)
def test_what_no_line_was_seen_taking_is_said(changes, unseen):
    made = dataclasses.replace(measurements(traced_per_step=100, native_per_step=500), **changes)
    rows = [text for _, text in summary(compute_stats(made)).rows]
    assert [text for text in rows if "was seen" in text] == unseen


def test_the_memory_report_contains_the_measurements():
    text = memory_text(compute_stats(measurements(traced_per_step=100)))
    words = " ".join(text.split())
    for expected in (
        "memory 1,000 B measured for each further environment, 1,000 B reported by the owners",
        "churn at most 300 B at a time in a vector step (median), 500 B in the worst one, freed at its end",
        "2 allocations, 3.2 KB in all",
        "whole step 2 ms 100.0% simulation 1.5 ms 75.0% rest -10 us -0.5%",
        "b.py:2 0.50 3.0 KB a.py:1 2.00 200 B < caller.py:7",
        "speed 8,000 environment steps/s; a vector step takes 500 us (median), 500 us (p95)",
        "observations game_state",
        "other Python and NumPy memory 50 B",
        "unexplained (-5.0%) -50 B",
        "levels 2.9 KB - - 2.0 KB state - 3.9 KB 995 B 3.9 KB 2 small parts - 20 B 5 B 20 B",
        "made: by hand 78.1 KB +19.5 KB 94.7 KB",
        "traced 17 +97.7 KB 0 B 2.7 KB +73.2 KB growing",
        "150 * 87.9 KB 78.1 KB 68.4 KB 48.8 KB 6.8 KB 5.9 KB 200 87.9 KB",
        "a.py:1 +375 B - +300 B +1 kept by Keep.kept < env (list of 2: bytes) < caller.py:7 < main.py:1",
        "mine.py:5 +62.5 B",
    ):
        assert expected in words, expected
    assert max(map(len, text.splitlines())) <= 120


def test_an_undecided_report_says_what_is_missing():
    made = measurements()
    short = dataclasses.replace(made, traced=made.traced[-3:], snapshots=made.snapshots[-3:])
    assert "UNDECIDED: 3 snapshots after the warm-up, at least 5 required; take more steps" in text_of(
        [summary(compute_stats(short))]
    )


def test_small_leaves_of_one_parent_are_folded():
    nodes = [
        OwnedNode(0, "root", 0, 10_000, 0, mapped=False),
        OwnedNode(1, "group", 0, 30, 0, mapped=False),  # small, but no leaf
        OwnedNode(2, "x", 0, 10, 0, mapped=False),
        OwnedNode(2, "y", 0, 20, 0, mapped=False),
        OwnedNode(1, "single", 0, 1, 0, mapped=False),
        OwnedNode(1, "large", 0, 9_969, 0, mapped=False),
    ]
    assert [(node.depth, node.name) for node in folded(nodes)] == [
        (0, "root"),
        (1, "group"),
        (2, "2 small parts"),
        (1, "single"),
        (1, "large"),
    ]


def test_the_time_report_has_both_throughputs_and_sorts_functions():
    text = time_text(compute_stats(measurements()))
    words = " ".join(text.split())
    assert "without profiling 8,000 under cProfile 2,000" in words
    assert "a factor of 4.00" in words
    cumulative, own = text.split("Functions by own time")
    assert cumulative.index("outer (a.py:1)") < cumulative.index("inner (a.py:9)")
    assert own.index("inner (a.py:9)") < own.index("outer (a.py:1)")


def test_json_holds_every_field_of_the_statistics():
    stats = compute_stats(measurements())
    content = json.loads(json_text(stats))
    assert content["format"] == "nclone_env memory profile"
    assert content["version"] == 3
    assert {field.name for field in dataclasses.fields(stats)} - {"measurements"} < set(content)
    assert content["per_environment"]["reported"] == 1000.0


def test_reports_are_written_atomically(tmp_path):
    stats = compute_stats(measurements())
    folder = tmp_path / "new" / "folder"
    texts = {MEMORY_REPORT, TIME_REPORT, TIME_PROFILE, FLAME_GRAPH}
    assert {path.name for path in write_reports(stats, folder)} == texts
    write_reports(stats, folder, as_json=True, as_html=True)
    assert {path.name for path in folder.iterdir()} == texts | {JSON_REPORT, HTML_REPORT}
    assert (folder / MEMORY_REPORT).read_text() == memory_text(stats)
    assert (folder / FLAME_GRAPH).read_bytes() == b"a page"
    assert (folder / TIME_PROFILE).read_bytes() == b"a profile"


def test_files_of_what_was_not_measured_are_not_written(tmp_path):
    bare = dataclasses.replace(measurements(), functions=(), profile=b"", allocations=None)
    assert [path.name for path in write_reports(compute_stats(bare), tmp_path)] == [MEMORY_REPORT]


@pytest.mark.parametrize(
    ("jump_at", "answer"),
    [
        (
            600,
            "UNDECIDED: traced +976.6 KB until vector step 600: memory taken once, or a leak; take 1,200 vector steps",
        ),
        (300, "in 700 of 1,000 vector steps; before that traced +976.6 KB until vector step 300"),
    ],
)
def test_a_jump_is_told_with_its_place_and_what_would_tell(jump_at, answer):
    traced = tuple(Traced(step, 5_000 + 1_000_000 * (step >= jump_at)) for step in STEPS)
    assert answer in text_of([summary(compute_stats(dataclasses.replace(measurements(), traced=traced)))])
