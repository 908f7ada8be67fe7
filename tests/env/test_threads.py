"""Threads that wait for work: what goes wrong in one reaches the caller, and nothing of it the next call."""

from __future__ import annotations

import threading
from queue import SimpleQueue

import pytest

from nclone_env.env.threads import Workers


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


@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_what_a_task_raises_reaches_the_caller_and_the_next_call_is_right(workers, culprit):
    done: SimpleQueue = SimpleQueue()

    def task(seat, first, last):
        if first <= culprit < last:
            raise ArithmeticError(f"environment {culprit}")

    for _ in range(3):
        with pytest.raises(ArithmeticError, match=f"environment {culprit}"):
            workers.run(task, 0, 10, done)
        assert done.empty()
        assert played(workers, done) == list(range(10))


def test_a_thread_that_is_held_up_keeps_nobody_waiting():
    """All parts but the one that it is at are done by the other."""
    workers, done = Workers(4096, num_threads=2), SimpleQueue()
    seats, release, lock = {}, threading.Event(), threading.Lock()

    def task(seat, first, last):
        with lock:
            seats[first] = seat
            if len(seats) == parts:
                release.set()
        if first == 0:
            assert release.wait(10.0)

    parts = workers.start(lambda *_: None, 0, 4096, done)
    workers.wait(parts, done)
    workers.run(task, 0, 4096, done)
    workers.close()
    assert len(seats) == parts > 2
    assert sorted(list(seats.values()).count(seat) for seat in set(seats.values())) == [1, parts - 1]


def test_what_goes_wrong_in_the_background_reaches_who_waits(workers):
    done: SimpleQueue = SimpleQueue()

    def task(seat, first, last):
        raise ArithmeticError("in the background")

    answers = workers.start(task, 0, 10, done)
    with pytest.raises(ArithmeticError, match="in the background"):
        workers.wait(answers, done)
    assert done.empty()
    assert played(workers, done) == list(range(10))
