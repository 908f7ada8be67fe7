"""Timers and turns."""

import itertools
import os

import numpy as np

from profiling.measure import best_of, describe, in_fresh_process, ratios, timed, timings, turns


def test_a_timed_call_gives_its_result_and_its_seconds():
    clock = itertools.count(start=5, step=3).__next__
    assert timed(lambda: "result", clock) == ("result", 3)


def test_the_first_call_is_not_timed():
    calls = []
    seconds = timings(4, lambda: calls.append(None))
    assert len(calls) == 5
    assert seconds.shape == (4,)
    assert (seconds >= 0).all()


def test_the_best_is_the_fastest(monkeypatch):
    monkeypatch.setattr("profiling.measure.timings", lambda runs, call: np.array([3.0, 1.0, 2.0])[:runs])
    assert best_of(3, int) == 1.0


def test_tasks_take_turns():
    order = []
    tasks = [lambda: order.append("a") or 2.0, lambda: order.append("b") or 4.0 * len(order)]
    table = turns(3, tasks)
    assert order == ["a", "b"] * 3
    assert table.tolist() == [[2, 8], [2, 16], [2, 24]]
    assert ratios(table).tolist() == [1, 8]


def test_a_fresh_process_is_another_one():
    assert in_fresh_process(os.getpid) != os.getpid()


def test_the_machine_line_names_the_versions():
    assert f"NumPy {np.__version__}" in describe()
