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


def test_what_another_line_frees_is_not_taken():
    found = {("a", 9): 470, ("b", -9): 468, ("leak", 10): 480, ("c", 100): 3, ("c", -300): 1, ("", 0): 50}
    assert native.unfreed(found) == {"a": 144, "b": 0, "leak": 38_400, "c": 0}
