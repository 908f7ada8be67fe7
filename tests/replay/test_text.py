"""Bars with text below pictures."""

from dataclasses import replace

import pytest

from nclone_env.level.level import Level
from nclone_env.replay.recording import shown_name
from nclone_env.replay.text import GOOD, fitting, text_width, write_bar

from .bases import DEADLY


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("the basics", "the basics   pack.txt#3"),
        ("Café Ünïque", "Café Ünïque   pack.txt#3"),
        ("忍者の道", "pack.txt#3"),  # rather than question marks
        ("", "pack.txt#3"),
        ("pack.txt#3", "pack.txt#3"),
    ],
)
def test_a_level_is_called_by_its_title_if_the_font_has_it(title, shown):
    assert shown_name(Level(replace(DEADLY.raw, title=title), "pack.txt#3")) == shown


def test_accents_are_left_out():
    cafe, plain, other = (write_bar(600, name, [], 0) for name in ("Café", "Cafe", "Caf?"))
    assert (cafe == plain).all()
    assert (cafe != other).any()


@pytest.mark.parametrize(
    "text", ["first-steps/06-hop", "W i" * 30, "Café Ünïque", "忍者の道", "e\u0301" * 9, "x" * 300, ""]
)
def test_as_much_of_a_text_is_left_as_fits(text):
    text = text[:200]
    lengths = range(len(text), -1, -1)
    for width in (*range(-4, 400, 3), 1e9):
        fits = (length for length in lengths if text_width(f"{text[:length]}...", 9.5) <= width)
        whole = text_width(text, 9.5) <= width
        assert fitting(text, 9.5, width) == (text if whole else f"{text[: next(fits, 0)].rstrip()}...")


def test_the_bar_of_a_further_frame_measures_no_text_but_a_new_one():
    text_width.cache_clear()
    bars, measured = [], []
    for frame in (7, 7, 8):
        bars.append(write_bar(211, "a name that has to be cut", [(f"frame {frame}", GOOD)], 0).tobytes())
        measured.append(text_width.cache_info().misses)
    assert 0 < measured[0] == measured[1] < measured[2] < measured[1] + 3
    assert bars[0] == bars[1] != bars[2]
