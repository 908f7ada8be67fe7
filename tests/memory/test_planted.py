"""Planted leaks are found, with the user's line and the keeper, and nothing is found beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nclone_env.memory import Watch, profile

from ..processes import REPOSITORY
from .planted import LISTED, MORE, PROGRAMS, leaking_line

QUICK = {
    "malloc": "",
    "closure": "note.seen",
    "thread_local": "thread-local log",
    "weak_keys": "weak_keys.by_key",
    "cycles": "",
}
"""What the keeper is called; empty: nothing keeps it."""
UNSEEN = ("sockets",)  # the memory is that of the system


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
    """Take few snapshots, and search from the beginning on."""
    monkeypatch.setattr("nclone_env.memory.watch._CAPACITY", 24)
    monkeypatch.setattr("nclone_env.memory.watch._SEARCH_AFTER", 0.0)


@pytest.mark.usefixtures("frozen_heap", "short")
@pytest.mark.parametrize("name", QUICK)
def test_a_leak_is_found_with_its_line_and_its_keeper(name):
    text = str(counted(name, leaks=True, count=1500))
    assert "GROWING" in text
    assert f"planted.py:{leaking_line(name)} +" in text
    assert QUICK[name] in text


@pytest.mark.usefixtures("frozen_heap", "short")
@pytest.mark.parametrize("name", ["closure", "malloc", "weak_keys"])
def test_the_same_without_the_leak_is_flat(name):
    assert "FLAT" in str(counted(name, leaks=False, count=1500))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, 10, 20])
@pytest.mark.parametrize("form", ["script", "steps"])
@pytest.mark.parametrize("name", [program.__name__ for program in (*LISTED, *MORE) if program.__name__ not in UNSEEN])
def test_every_leak_is_found_in_every_form(name, form, seconds, tmp_path):
    """For a leak that is slower than the floor: more time. What takes seconds to import is judged for the rest."""
    text = answer(name, form, seconds, tmp_path)
    assert "GROWING" in text
    assert f"planted.py:{leaking_line(name)} +" in text


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5, 10, 20])
@pytest.mark.parametrize("form", ["script", "steps"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_program_without_a_leak_grows(name, form, seconds, tmp_path):
    assert "GROWING" not in answer(name, form, seconds, tmp_path, "clean")


@pytest.mark.slow
@pytest.mark.parametrize("count", range(101, 1001, 47))
def test_worker_processes_without_a_leak_do_not_grow(count):
    assert "GROWING" not in str(counted("asynchronous", leaks=False, count=count))


def answer(name, form, seconds, folder, *words):
    module = ["tests.memory.planted", name, str(seconds), *words]
    script = ["nclone_env", "profile", "script", "--output", str(folder), module[0], "--", *module[1:]]
    command = [sys.executable, "-m", *(script if form == "script" else [*module, "steps"])]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True).stdout
