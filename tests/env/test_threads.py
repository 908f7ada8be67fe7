"""Threads that wait for work: what goes wrong in one reaches the caller, and nothing of it the next call."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from nclone_env.env.threads import OWN_SEAT, Workers


@pytest.fixture
def workers():
    pool = Workers(10, num_threads=3)
    yield pool
    pool.close()


def played(workers, done) -> list[int]:
    lock, seen = threading.Lock(), []

    def task(seat, first, last):
        with lock:
            seen.extend(range(first, last))

    workers.run(task, 0, 10, done)
    return sorted(seen)


@pytest.mark.parametrize("culprit", [OWN_SEAT, OWN_SEAT + 1, OWN_SEAT + 2])
def test_what_a_task_raises_reaches_the_caller_and_the_next_call_is_right(workers, culprit):
    done: SimpleQueue = SimpleQueue()

    def task(seat, first, last):
        if seat == culprit:
            raise ArithmeticError(f"seat {seat}")

    for _ in range(3):
        with pytest.raises(ArithmeticError, match=f"seat {culprit}"):
            workers.run(task, 0, 10, done)
        assert done.empty()
        assert played(workers, done) == list(range(10))


def test_what_goes_wrong_in_the_background_reaches_who_waits(workers):
    done: SimpleQueue = SimpleQueue()

    def task(seat, first, last):
        raise ArithmeticError("in the background")

    answers = workers.start(task, 0, 10, done)
    with pytest.raises(ArithmeticError, match="in the background"):
        workers.wait(answers, done)
    assert done.empty()
    assert played(workers, done) == list(range(10))
