"""Bars with text above and below pictures."""

from dataclasses import replace

import pytest

from nclone_env.level.level import Level
from nclone_env.replay.recording import shown_name
from nclone_env.replay.text import BAR_HEIGHT, title_bar

from .bases import DEADLY


def test_a_title_bar_is_as_wide_as_asked_and_shows_title_and_author():
    bar = title_bar("the well", "", 600)
    assert bar.shape == (BAR_HEIGHT, 600, 3)
    assert (bar != title_bar("another one", "", 600)).any()
    assert (bar != title_bar("the well", "someone", 600)).any()
    assert (bar == title_bar("the well", "", 600)).all(), "the negative control"


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
    assert (title_bar("Café", "", 600) == title_bar("Cafe", "", 600)).all()
    assert (title_bar("Café", "", 600) != title_bar("Caf?", "", 600)).any()
