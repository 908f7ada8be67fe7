from __future__ import annotations

import dataclasses
import json

import pytest

from nclone_env.memory.report import (
    JSON_REPORT,
    MEMORY_REPORT,
    PROFILE_REPORT,
    format_bytes,
    json_text,
    memory_text,
    profile_text,
    table,
    write_reports,
)
from nclone_env.memory.stats import compute

from .by_hand import recording


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


def test_tables_are_aligned():
    assert table(("name", "n"), [("a", "100"), ("long name", "2")]) == [
        "  name         n",
        "  ---------  ---",
        "  a          100",
        "  long name    2",
    ]


def test_the_memory_report_contains_the_measurements():
    text = memory_text(compute(recording(traced_per_step=100)))
    words = " ".join(text.split())
    for expected in (
        "memory 1,000 B per environment, 2.9 KB shared by all 4",
        "growth GROWING",
        "traced +97.7 KB per 1,000 steps (noise margin 2.5 KB)",
        "levels 2.9 KB - - state - 3.9 KB 1,000 B",
        "unaccounted +500 B measured - accounted",
        "100 * 14.6 KB 10 87.9 KB 78.1 KB 68.4 KB",
        "a.py:1 +300 B +1 c.py:3 +50 B +1",
    ):
        assert expected in words, expected
    assert "FLAT" in memory_text(compute(recording()))
    assert max(map(len, text.splitlines())) <= 110


def test_an_undecided_report_names_the_required_snapshots():
    made = recording()
    short = dataclasses.replace(made, traced=made.traced[-3:], resident=made.resident[-3:])
    assert "undecided (3 snapshots after warm-up, at least 4 required)" in memory_text(compute(short))


def test_the_time_report_has_both_throughputs_and_sorts_functions():
    text = profile_text(compute(recording()))
    assert "without profiling (pass 1)        8,000" in text
    assert "under cProfile (pass 3)           2,000" in text
    cumulative, own = text.split("Functions by own time")
    assert cumulative.index("outer (a.py:1)") < cumulative.index("inner (a.py:9)")
    assert own.index("inner (a.py:9)") < own.index("outer (a.py:1)")


def test_json_holds_every_field_of_the_statistics():
    stats = compute(recording())
    content = json.loads(json_text(stats))
    assert content["format"] == "nclone_env memory profile"
    assert content["version"] == 1
    assert {field.name for field in dataclasses.fields(stats)} < set(content)
    assert content["owners"][0]["per_env_bytes"] == 1000.0


def test_reports_are_written_atomically(tmp_path):
    stats = compute(recording())
    folder = tmp_path / "new" / "folder"
    assert [path.name for path in write_reports(stats, folder)] == [MEMORY_REPORT, PROFILE_REPORT]
    write_reports(stats, folder, as_json=True)
    assert sorted(path.name for path in folder.iterdir()) == sorted([MEMORY_REPORT, PROFILE_REPORT, JSON_REPORT])
    assert (folder / MEMORY_REPORT).read_text() == memory_text(stats)
