"""Planted leaks are found, with the user's line and the keeper, and nothing is found beside them.

``python -m profiling.memory.planted_leaks`` runs all programs at several lengths.
"""

from __future__ import annotations

import pytest

from nclone_env.memory import Watch, profile
from profiling.memory.planted_leaks import answer

from .planted import PROGRAMS, leaking_line

QUICK = {
    "malloc": "",
    "closure": "note.seen",
    "weak_keys": "weak_keys.by_key",
}
"""What the keeper is called; empty: nothing keeps it."""


def counted(name: str, leaks: bool, count: int) -> Watch:
    with profile(name) as watch:

        def steps():
            for step in range(count):
                yield step
                watch.step()

        PROGRAMS[name](steps, leaks)
    return watch


@pytest.fixture
def short(monkeypatch):
    """Take few snapshots, and search from the beginning on, as long as the objects of all tests require."""
    monkeypatch.setattr("nclone_env.memory.watch._CAPACITY", 24)
    monkeypatch.setattr("nclone_env.memory.watch._SEARCH_AFTER", 0.0)
    monkeypatch.setattr("nclone_env.memory.watch._LAST_SEARCH_SECONDS", 60.0)


@pytest.mark.usefixtures("frozen_heap", "short")
@pytest.mark.parametrize("name", QUICK)
def test_a_leak_is_found_with_its_line_and_its_keeper(name):
    text = str(counted(name, leaks=True, count=1500))
    assert "GROWING" in text
    assert f"planted.py:{leaking_line(name)} +" in text
    assert QUICK[name] in text


@pytest.mark.usefixtures("frozen_heap", "short")
@pytest.mark.parametrize("name", ["closure", "malloc"])
def test_the_same_without_the_leak_is_flat(name):
    assert "FLAT" in str(counted(name, leaks=False, count=1500))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["global_list", "callback"])
def test_a_leak_is_found_in_a_script(name):
    found = answer(name, "script", 6)
    assert found.verdict == "GROWING"
    assert found.named


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closure", "episodes"])
def test_a_script_without_a_leak_does_not_grow(name):
    assert answer(name, "script", 6, "clean").verdict != "GROWING"


@pytest.mark.slow
@pytest.mark.parametrize("count", [101, 571])
def test_worker_processes_without_a_leak_do_not_grow(count):
    assert "GROWING" not in str(counted("asynchronous", leaks=False, count=count))
