"""Native memory by line."""

import sys
from itertools import repeat
from os.path import join

from nclone_env.memory import native


def test_a_stretch_ends_inside_one_call_of_a_library(monkeypatch):
    """A line such as ``train(...)`` is the last of the user's for hours; every call would be watched meanwhile."""
    monkeypatch.setattr(native, "_SECONDS", 0.05)
    before = sys.gettrace()
    sys.settrace(None)
    try:
        lines = native.NativeLines()
        lines._begin(None)
        calls = zip(map(join, repeat("a", 100_000), repeat("b")), iter(sys.gettrace, lines))  # no line of this file
        traces = list(calls)
    finally:
        sys.settrace(before)
    assert traces[0][1] is not None
    assert traces[-1][1] is None
    assert not lines.is_watching
