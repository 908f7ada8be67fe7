"""Planted leaks are found with the user's line, in processes of their own, and nothing is found beside them.

``python -m profiling.memory.planted_leaks`` runs all programs in both forms at several lengths.
"""

from __future__ import annotations

import pytest

from nclone_env.memory import Watch, profile
from profiling.memory.planted_leaks import answer

from .planted import PROGRAMS


def counted(name: str, leaks: bool, count: int) -> Watch:
    with profile(name) as watch:

        def steps():
            for step in range(count):
                yield step
                watch.step()

        PROGRAMS[name](steps, leaks)
    return watch


@pytest.mark.slow
@pytest.mark.parametrize("name", ["global_list"])
def test_a_leak_is_found_in_a_script(name):
    found = answer(name, "script", 6)
    assert found.verdict == "GROWING"
    assert found.named


@pytest.mark.slow
@pytest.mark.parametrize("form", ["script", "steps"])
def test_a_leak_is_found_beside_millions_of_older_objects(form):
    found = answer("global_list", form, 8, "heap")
    assert found.verdict == "GROWING"
    assert found.named
    assert found.keeper.startswith("KEPT") or ".KEPT" in found.keeper, found.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closure"])
def test_a_script_without_a_leak_does_not_grow(name):
    assert answer(name, "script", 6, "clean").verdict != "GROWING"


@pytest.mark.slow
@pytest.mark.parametrize("count", [101, 571])
def test_worker_processes_without_a_leak_do_not_grow(count):
    assert "GROWING" not in str(counted("asynchronous", leaks=False, count=count))
