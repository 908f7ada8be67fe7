"""Levels are shared by processes."""

import pytest

from profiling.memory import shared_levels

from ..output import lines


@pytest.mark.slow
def test_levels_are_shared_by_processes(capsys):
    shared_levels.main("first-steps", processes=2, environments=2)
    text = "\n".join(lines(capsys))
    assert text.count("  process ") == 2
    assert "without files" in text
