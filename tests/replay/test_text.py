"""Bars with text above and below pictures."""

from nclone_env.replay.text import BAR_HEIGHT, title_bar


def test_a_title_bar_is_as_wide_as_asked_and_shows_title_and_author():
    bar = title_bar("the well", "", 600)
    assert bar.shape == (BAR_HEIGHT, 600, 3)
    assert (bar != title_bar("another one", "", 600)).any()
    assert (bar != title_bar("the well", "someone", 600)).any()
    assert (bar == title_bar("the well", "", 600)).all(), "the negative control"
