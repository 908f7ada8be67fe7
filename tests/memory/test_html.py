from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import pytest

from nclone_env.memory.html import html_text
from nclone_env.memory.stats import compute
from nclone_env.memory.svg import Chart, Line, ticks

from .by_hand import recording

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
    page.feed(html_text(compute(recorded)))
    assert not page.open
    return page


def test_the_page_has_all_parts():
    text = " ".join(parsed(recording(traced_per_step=100)).text)
    for part in (
        "GROWING: traced +97.7 KB per 1,000 vector steps",
        "Memory by number of environments",
        "Bytes of the environments by owner, 1,000 B each",
        "Bytes that all environments share, 2.9 KB",
        "Growth: growing",
        "Time by phase of a vector step, 2 ms",
        "simulation",
        "Time by function",
        "inner (a.py:9)",
        "a processor, 2 cores, Linux",
    ):
        assert part in text, part


def test_the_page_needs_no_network():
    page = html_text(compute(recording()))
    assert not re.search(r"https?://|src=|href=|@import|url[(]", page)


def test_widths_are_proportional_to_bytes():
    styles = parsed(recording()).styles
    assert [style for style in styles if style.startswith("flex-grow")][:4] == [
        "flex-grow:4000",
        "flex-grow:3980",
        "flex-grow:20",
        "flex-grow:3000",
    ]


def test_names_are_escaped():
    page = html_text(compute(dataclasses.replace(recording(), name="<script>alert(1)</script>")))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_what_was_not_measured_is_left_out():
    bare = dataclasses.replace(recording(), owners=(), sizes=(), traced=(), functions=(), step_seconds=(), stages=())
    text = " ".join(parsed(bare).text)
    assert "Time by function" not in text
    assert "Bytes" not in text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 17), (0.2, 0.3), (1e6, 9e6), (-1e-3, 1e-3), (99.5, 101)])
def test_ticks_are_a_few_round_numbers_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 6
    assert all(low <= tick <= high for tick in found)
    digits = f"{found[1] - found[0]:.3e}"
    assert digits.partition("e")[0] in ("1.000", "2.000", "5.000")


def test_points_are_inside_the_chart():
    picture = Chart([Line("first", [(0, 5), (10, 5_000_000)], "a name", marks=True)], "steps").svg()
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', picture)]
    assert len(places) == 2
    assert all(84 <= x <= 468 and 10 <= y <= 206 for x, y in places)
    assert places[0][1] > places[1][1]
    assert "a name" in picture
    assert "MB" in picture
