"""Planted leaks are found with the user's line, in processes of their own, and nothing is found beside them.

``python -m profiling.memory.planted_leaks`` runs all programs in both forms at several lengths.
"""

import multiprocessing

import pytest

from nclone_env.memory import Watch, profile
from profiling.memory.planted_leaks import Answer, answer

from .planted import PROGRAMS, leaking_line


def counted(name: str, leaks: bool, count: int, **options: str) -> Watch:
    with profile(name) as watch:

        def steps():
            for step in range(count):
                yield step
                watch.step()

        PROGRAMS[name](steps, leaks, **options)
    return watch


def found(form: str, *words: str) -> Answer:
    """Return the first answer that decides and names the line: a busy machine takes longer to see as much."""
    for seconds in (8, 24, 72):
        given = answer("global_list", form, seconds, *words)
        if given.verdict == "GROWING" and given.named:
            break
    return given


@pytest.mark.slow
def test_a_leak_is_found_in_a_script():
    given = found("script")
    assert given.verdict == "GROWING"
    assert given.named


@pytest.mark.slow
def test_a_leak_is_found_beside_millions_of_older_objects():
    """They are made before the profile begins; a script makes them under it, where they count as growth."""
    given = found("steps", "heap")
    assert given.verdict == "GROWING"
    assert given.named
    assert given.keeper.startswith("KEPT") or ".KEPT" in given.keeper, given.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closure"])
def test_a_script_without_a_leak_does_not_grow(name):
    assert answer(name, "script", 6, "clean").verdict != "GROWING"


@pytest.mark.slow
def test_worker_processes_without_a_leak_do_not_grow():
    assert "GROWING" not in str(counted("asynchronous", leaks=False, count=571))


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("leaks", [True, False])
def test_a_leak_of_a_worker_process_grows_with_its_line_however_it_is_started(method, leaks):
    for count in (4_000, 16_000, 64_000):  # until the worker was asked for its lines, and has answered
        text = str(counted("worker", leaks, count, method=method))
        if f"planted.py:{leaking_line('worker')} +" in text or not leaks:
            break
    assert ("GROWING: workers +" in text) is leaks, text
    assert ("in a worker process" in text) is leaks, text
    assert ("kept by _work.kept in " in text) is leaks, text
