import copy
import dataclasses
import json
import math
import re
import sys
from html.parser import HTMLParser

import pytest

from nclone_env._table import format_bytes
from nclone_env.errors import ConfigError, MissingExtraError, is_plain
from nclone_env.memory.explain.stats import compute_stats
from nclone_env.memory.measure.measurements import TIME_UNIT, OwnedNode, ProfileSettings, SourceLine, Traced
from nclone_env.memory.show import (
    FLAME_GRAPH,
    HEIGHT,
    HTML_REPORT,
    JSON_REPORT,
    MEMORY_REPORT,
    TIME_PROFILE,
    TIME_REPORT,
    WIDTH,
    Line,
    answers,
    chart,
    compare,
    comparison,
    comparison_text,
    different_settings,
    folded,
    format_seconds,
    html_text,
    json_text,
    load_profile,
    memory_sections,
    memory_text,
    summary,
    text_of,
    ticks,
    time_sections,
    time_text,
    write_reports,
)

from ..gallery.browser import PROGRAM, Chromium
from ..processes import REPOSITORY
from .by_hand import STEPS, measurements


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (-1e-9, "0 B"),
        (21.3, "21.3 B"),
        (1023, "1,023 B"),
        (1023.99, "1.0 KB"),
        (1024, "1.0 KB"),
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


@pytest.mark.parametrize(
    ("traced", "blocks", "quantity", "named"),
    [(100, 2, "native", True), (0, 5, "native", False), (0, 6, "native", True), (0, 6, "workers", False)],
)
def test_where_traced_memory_is_flat_only_lines_that_took_blocks_again_and_again_are_named(
    traced, blocks, quantity, named
):
    """They took what holds the memory that grows, unless that is of other processes; others are noise."""
    lines = (SourceLine("a.py", 1, (100, 400), (1, blocks)),)
    made, field = measurements(traced), {"native": "native_bytes", "workers": "worker_bytes"}[quantity]
    snapshots = tuple(dataclasses.replace(item, **{field: 5_000 * item.step}) for item in made.snapshots)
    grew = answers(compute_stats(dataclasses.replace(made, snapshots=snapshots, untraced=(), lines=lines)))["grew"]
    assert grew[0].startswith("a.py:1 ") == named
    assert grew[-1] == f"{quantity}: no line was seen taking it"


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


@pytest.mark.parametrize("ran", [1, 100, 500, 1000, 1999, 2500])
def test_a_run_too_short_to_judge_has_no_negative_time(ran):
    """Whatever was judged of it: nothing, what follows its end, a part, or nearly enough."""
    made = measurements()
    logs = {
        name: tuple(dataclasses.replace(item, step=5 * item.step) for item in getattr(made, name))
        for name in ("snapshots", "traced")
    }
    for judged in ((0.0, 0.0), (ran, 0.9 * ran), (0.9 * ran, ran), (0.0, 980.0)):
        made = dataclasses.replace(made, unit=TIME_UNIT, settings=ProfileSettings(0, ran), judged=judged, **logs)
        (text,) = answers(compute_stats(made))["growth"]
        found = re.match(r"UNDECIDED: (\d+\.\d) s to judge, at least 1\.0 s required", text)
        assert found, text
        assert float(found[1]) < 1.0


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
            "UNDECIDED: traced +976.6 KB until vector step 600: taken once or ever more slowly, or a leak; take 1,200 "
            "vector steps",
        ),
        (300, "in 700 of 1,000 vector steps; before that traced +976.6 KB until vector step 300"),
    ],
)
def test_a_jump_is_told_with_its_place_and_what_would_tell(jump_at, answer):
    traced = tuple(Traced(step, 5_000 + 1_000_000 * (step >= jump_at)) for step in STEPS)
    assert answer in text_of([summary(compute_stats(dataclasses.replace(measurements(), traced=traced)))])


_EMPTY = {"meta", "line", "circle", "polyline", "polygon", "br"}


class Balance(HTMLParser):
    """Collects the text, and fails if elements are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.styles = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in _EMPTY:
            self.open.append(tag)
        self.styles += [value for name, value in attributes if name == "style"]

    def handle_endtag(self, tag):
        if tag not in _EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(recorded):
    page = Balance()
    page.feed(html_text(compute_stats(recorded)))
    assert not page.open
    return page


def first_screen(recorded):
    """Return the text before the first part that is folded."""
    page = Balance()
    page.feed(html_text(compute_stats(recorded)).split("<details>")[0].replace("<body>", ""))
    return " ".join(" ".join(page.text).split())


def test_the_page_says_what_the_texts_say():
    stats = compute_stats(measurements(traced_per_step=100))
    found = parsed(measurements(traced_per_step=100)).text
    answer, *sections = (*memory_sections(stats), *time_sections(stats))
    for section in sections:
        bars = section.title.startswith("Peak")
        cells = [cell for row in (() if bars else section.columns, *section.rows) for cell in row if cell]
        assert {section.title, *cells, *section.notes} <= set(found), section.title
    verdict, *others = (text for name, text in answer.rows if name != "peak")
    assert {answer.title, *verdict.split(": ", 1), *others} <= set(found)


def test_the_first_screen_has_the_answer_and_all_else_is_folded():
    text = first_screen(measurements(traced_per_step=100))
    assert "GROWING traced +97.7 KB per 1,000 vector steps" in text
    assert "would have shown" not in text
    assert "traced: growing" in text  # the curve of what grew
    assert "a.py:1 +375 B per 1,000 vector steps (+300 B) kept by Keep.kept < env (list of 2: bytes)" in text
    assert "1,000 B measured for each further environment" in text
    assert "advice --picture-size 64 saves 2.0 KB." in text
    assert "Peak by part: 94.7 KB resident interpreter 8.8 KB 9%" in text
    assert "500 us (median), 500 us (p95)" in text
    assert "Run" not in text
    assert "FLAT more than 2.7 KB per 1,000 vector steps would have shown" in first_screen(measurements())
    sections = len(memory_sections(compute_stats(measurements()))) + len(time_sections(compute_stats(measurements())))
    assert html_text(compute_stats(measurements())).count("<details>") == sections - 2


@pytest.mark.skipif(PROGRAM is None, reason="there is no chromium, chromium-browser or google-chrome")
def test_the_answer_fits_on_a_screen(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(html_text(compute_stats(measurements(traced_per_step=100))))
    with Chromium(tmp_path / "browser", 1280, 900) as browser:
        for width, height, mobile in ((1280, 900, False), (390, 2 * 844, True)):
            browser.resize(width, height, mobile=mobile)
            browser.open(page)
            assert browser.evaluate("document.querySelector('.cards').getBoundingClientRect().bottom") < height
            assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.evaluate("document.querySelectorAll('details[open]').length") == 0
        browser.click("summary")
        assert browser.evaluate("document.querySelectorAll('details[open]').length") == 1
        assert browser.errors == []


def test_growth_is_drawn():
    text = " ".join(parsed(measurements(traced_per_step=100)).text)
    for part in ("traced: growing", "native: flat", "process: flat", "owners: flat"):
        assert part in text, part


def test_the_page_needs_no_network():
    page = html_text(compute_stats(measurements()))
    assert not re.search(r"https?://|src=|href=|@import|url[(]", page)


def test_bars_are_proportional_to_bytes_and_times():
    shares = [style.removeprefix("--share:") for style in parsed(measurements()).styles if "%" in style]
    assert shares[:4] == ["100.0%", "42.9%", "56.9%", "0.3%"]  # 7,000 bytes of owners, 3,000, 3,980, 20
    assert shares[4:] == ["100.0%", "75.0%", "-0.5%", "50.0%", "45.0%", "45.0%", "5.0%"]


def test_names_are_escaped():
    page = html_text(compute_stats(dataclasses.replace(measurements(), name="<script>alert(1)</script>")))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_what_was_not_measured_is_left_out():
    bare = dataclasses.replace(measurements(), owners=(), sizes=(), traced=(), functions=(), step_seconds=(), stages=())
    text = " ".join(parsed(bare).text)
    for part in ("Time profile", "Functions", "Memory by", "Stages", "Largest", "Peak"):
        assert part not in text, part


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 17), (0.2, 0.3), (1e6, 9e6), (-1e-3, 1e-3), (99.5, 101)])
def test_ticks_are_a_few_round_numbers_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 6
    assert all(low <= tick <= high for tick in found)
    digits = f"{found[1] - found[0]:.3e}"
    assert digits.partition("e")[0] in ("1.000", "2.000", "5.000")


def test_points_are_inside_the_chart():
    drawn = chart("a caption", "steps", [Line("a name", "first", [(0, 5), (10, 5_000_000)])])
    (line,) = drawn.lines
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line.points)
    assert line.points[0][1] > line.points[1][1]
    assert "MB" in drawn.y_ticks[-1][1]


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r'jinja2 is not installed; run pip install "\.\[profile\]"'):
        html_text(compute_stats(measurements()))


@pytest.fixture
def written():
    return json.loads(json_text(compute_stats(measurements())))


def test_equal_profiles_have_no_changes(written):
    changes = compare(written, written)
    assert {change.row for change in changes} >= {
        "measured for each further environment",
        "environment / state, per environment",
        "environment / levels, shared",
        "allocated and freed by a vector step, at most",
    }
    assert not any(change.increase for change in changes)
    assert comparison_text(changes, 5, 64).startswith("no row changed by more than 5 % and 64 B")
    assert not list(different_settings(written, written))


def test_a_larger_row_is_found_and_a_smaller_one_is_shown(written):
    later = copy.deepcopy(written)
    later["owners"][2]["environment_bytes"] += 4 * 200
    later["owners"][1]["shared_bytes"] -= 1000
    exceeded = [change for change in compare(written, later) if change.exceeds(5, 64)]
    assert [change.row for change in exceeded] == ["environment / state, per environment"]
    assert exceeded[0].increase == 200
    text = comparison_text(compare(written, later), 5, 64)
    assert "environment / state, per environment" in text
    assert "-1,000 B" in text


def test_both_tolerances_must_be_exceeded(written):
    later = copy.deepcopy(written)
    later["owners"][2]["environment_bytes"] += 4 * 60  # 6 %, 60 B
    later["per_environment"]["measured"] += 40  # 4 %
    assert not any(change.exceeds(5, 64) for change in compare(written, later))
    assert sum(change.exceeds(3, 30) for change in compare(written, later)) == 2


def test_new_growth_exceeds(written):
    later = json.loads(json_text(compute_stats(measurements(traced_per_step=100))))
    rows = [change.row for change in compare(written, later) if change.exceeds(5, 64)]
    assert {f"growth per 1,000 vector steps, {name}" for name in ("a.py:1", "traced")} <= set(rows)


def test_different_settings_are_named(written):
    later = copy.deepcopy(written)
    later["facts"][0] = ["levels", "two"]
    later["settings"]["num_envs"] = 8
    assert list(different_settings(written, later)) == ["levels: one -> two", "environments: 4 -> 8"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": "other"}',
        '{"format": "nclone_env memory profile", "version": 3}',
        '{"format": "nclone_env memory profile", "version": 3, "per_environment": 3}',
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"x\.json: expected .* write one with nclone-env profile"):
        load_profile(path)


def changed(profile, place, value):
    """Return a profile with another value at a place, keys and numbers with dots between."""
    profile, (*path, last) = copy.deepcopy(profile), [int(key) if key.isdigit() else key for key in place.split(".")]
    inner = profile
    for key in path:
        inner = inner[key]
    inner[last] = value
    return profile


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("per_environment.measured", "5"),
        ("per_environment.measured", 10**400),
        ("per_environment.measured", True),
        ("step_peak.largest", None),
        ("growths.0.slope", math.inf),
        ("growths", 5),
        ("settings.num_envs", 10**30),
        ("settings.num_envs", -1),
        ("owners.1.depth", 10**6),
        ("owners.0", "x"),
        ("facts", [["a"]]),
        ("facts", [[[], "a"]]),
    ],
)
def test_forged_numbers_are_refused(tmp_path, written, place, value):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(changed(written, place, value)))
    with pytest.raises(ConfigError, match=r"x\.json: expected all parts of a memory profile, got others") as caught:
        load_profile(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("place", ["unit", "name", "facts.0.0", "facts.0.1", "growths.0.quantity", "owners.0.name"])
@pytest.mark.parametrize("value", ["\x1b[31mred\n\x07", "\ud800", "x" * 10**6, 10**50, ["a"], {}])
def test_names_are_shown_as_plain_text(tmp_path, written, place, value):
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    before.write_text(json.dumps(written))
    after.write_text(json.dumps(changed(written, place, value)))
    try:
        text, _ = comparison(before, after, 0.0, 0.0)
    except ConfigError as error:
        assert isinstance(value, list | dict)
        text = str(error)
    assert all(character == "\n" or is_plain(character) for character in text)
    assert len(text) < 10_000
    assert comparison(before, before, 0.0, 0.0)[0].startswith("no row changed")


@pytest.mark.parametrize("version", [1, 2, 4, None, "3"])
def test_other_versions_are_refused(tmp_path, written, version):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(written | {"version": version}))
    expected = (
        rf"x\.json: expected version 3 of the format, got {version!r}, whose fields have other meanings; write one with"
    )
    with pytest.raises(ConfigError, match=expected):
        load_profile(path)
    path.write_text(json.dumps(written))
    assert load_profile(path) == written


def test_without_tracing_the_claim_is_that_of_resident_memory():
    """A leak of small objects of Python is none of the C library, whose margin is far smaller."""
    found = compute_stats(dataclasses.replace(measurements(), traced=(), line_steps=(), lines=()))
    margins = {item.quantity: format_bytes(item.margin) for item in found.growths}
    text = text_of([summary(found)])
    assert f"FLAT: more than {margins['process']} per 1,000 vector steps would have shown" in text
    assert f"(native code: {margins['native']}" in text


def documented():
    """Return the words in backticks of each key in the table."""
    page = (REPOSITORY / "docs" / "operation" / "profiling.md").read_text().split("## JSON")[1].split("## ")[0]
    table = {}
    for row in re.findall(r"^\| (`.*)$", page, re.MULTILINE):
        keys, fields, _ = (re.findall(r"`(\w+)`", cell) for cell in row.split("|"))
        table.update({key: set(fields) for key in keys})
    return table


def test_every_key_and_field_is_documented():
    content, table = json.loads(json_text(compute_stats(measurements(traced_per_step=100)))), documented()
    assert set(content) == set(table)
    for key, value in content.items():
        record = value[0] if isinstance(value, list) else value
        if isinstance(record, dict):
            assert set(record) == table[key] - {"env_steps"}, key


def test_nothing_of_the_recording_by_hand_is_empty():
    """Else its fields would go unchecked."""
    made = dataclasses.replace(measurements(traced_per_step=100), tracing=(200, 1000))
    assert not [field.name for field in dataclasses.fields(made) if not getattr(made, field.name)]
