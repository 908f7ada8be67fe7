"""Whose a file is, and native memory by line."""

import sys
import types
from itertools import repeat
from os.path import join

import pytest

from nclone_env.memory.measure import snapshots
from nclone_env.memory.measure.snapshots import is_own

from ..planted import LIBC


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/usr/lib/python3/dist-packages/pandas/core.py", False),
        ("/other/venv/lib/python3.12/site-packages/torch/nn.py", False),
        ("{folder}/listed/module.py", False),
        ("{folder}/alone.py", False),
        ("{folder}/mine/module.py", True),
        ("{folder}/listed_not/module.py", True),
        ("/home/me/site-packages.py", True),
        ("<string>", False),
    ],
)
def test_libraries_are_libraries_wherever_they_are_installed(file, own, tmp_path, monkeypatch):
    """``pip --target`` installs into any folder, whose ``RECORD`` lists what is of a library."""
    monkeypatch.syspath_prepend(str(tmp_path))
    info = tmp_path / "listed-1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("listed/module.py,sha256=x,3\nalone.py,,\nlisted-1.0.dist-info/RECORD,,\n")
    assert sys.path[0] == str(tmp_path)
    monkeypatch.setattr(
        snapshots, "_recorded", lambda folder, read=snapshots._recorded: looked.append(1) or read(folder)
    )
    looked: list[int] = []
    assert is_own(file.format(folder=tmp_path)) == own
    assert "-packages/" not in file or not looked  # the records there are large


def test_a_stretch_ends_inside_one_call_of_a_library():
    """A line such as ``train(...)`` is the last of the user's for hours; every call would be watched meanwhile."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        lines, looks = snapshots.NativeLines(), iter([False] * 100)
        budget = type("Budget", (), {"is_over": property(lambda _: next(looks, True))})()
        lines._begin(None)
        lines._budget = budget  # in looks: a collection between two calls may take any time
        calls = zip(map(join, repeat("a", 1000), repeat("b")), iter(sys.gettrace, lines))  # no line of this file
        traces = list(calls)
    finally:
        sys.settrace(before)
    assert traces[0][1] is not None
    assert traces[-1][1] is None
    assert not lines.is_watching


def test_what_another_line_frees_is_not_taken():
    found = {("a", 9): 470, ("b", -9): 468, ("leak", 10): 480, ("c", 100): 3, ("c", -300): 1, ("", 0): 50}
    assert snapshots.unfreed(found) == {"a": 144, "b": 0, "leak": 38_400, "c": 0}


def test_a_line_that_was_seen_once_has_no_share():
    lines = snapshots.NativeLines()
    lines._found.update({("noise", 16_000): 1, ("noise", 6): 7, ("leak", 300): 20})
    assert lines.shares() == {"leak": 1.0}
    lines._found.clear()
    lines._found["noise", 16_000] += 1
    assert lines.shares() == {}


@pytest.mark.parametrize(("expected", "shares"), [(60_000, {"leak": 1.0}), (600_000, {})])
def test_lines_that_took_far_less_than_what_grew_have_no_share(expected, shares):
    """A container that doubles takes nothing in most stretches: what is seen then is noise."""
    lines = snapshots.NativeLines()
    lines._found["leak", 300] += 20
    lines._expected = expected
    assert lines.shares() == shares


@pytest.mark.parametrize("rate", [0.0, 1e6])
def test_growth_is_expected_in_the_time_that_the_program_has(rate, monkeypatch):
    """The profiler takes 2 s of each 3, at an event and in ``step()``."""
    now = iter(range(100))
    clocks = types.SimpleNamespace(perf_counter=lambda: next(now), thread_time=lambda: 0.0)
    monkeypatch.setattr(snapshots, "_native_bytes", lambda: next(now) * 0)
    lines = snapshots.NativeLines()
    lines._rate, lines._budget = rate, types.SimpleNamespace(is_over=False)
    monkeypatch.setattr(snapshots, "time", clocks)
    lines._go_on()  # at 1 s
    lines._trace(sys._getframe(), "line", None)  # at 2 s, until 5 s
    lines._watched.append(sys._getframe())
    lines.skip()  # at 7 s
    lines._trace(sys._getframe(), "line", None)  # at 8 s
    assert lines._expected == 2 * rate


def test_the_line_that_calls_the_profiler_takes_nothing():
    """What the profiler takes in ``step()`` is no line's; what the line itself takes is."""
    sizes, kept, before = [50_000, 70_000], [], sys.gettrace()
    code = compile("def step(size, kept):\n    kept.append(malloc(size))\n", snapshots.FOLDER + "own.py", "exec")
    namespace = {"malloc": LIBC.malloc}
    exec(code, namespace)
    lines, sys_trace = snapshots.NativeLines(), sys.settrace
    sys_trace(None)
    try:
        lines._begin(None)
        for size in sizes:
            namespace["step"](size, kept)
        for size in sizes:
            kept.append(LIBC.malloc(size))
        lines.close()
    finally:
        sys_trace(before)
        for block in kept:
            LIBC.free(block)
    first = sys._getframe().f_code.co_firstlineno
    (place,) = (place for place, share in lines.shares().items() if share > 0.5)
    assert place == f"{__file__}:{first + 13}"
