"""Threads that wait for work: what goes wrong in one reaches the caller, and nothing of it the next call."""

from __future__ import annotations

import threading
import time
import weakref

import pytest

from nclone_env.env.threads import Job, Workers


@pytest.fixture
def workers():
    pool = Workers(10, num_threads=3)
    yield pool
    pool.close()


def played(workers, job) -> list[int]:
    lock, seen = threading.Lock(), []

    def task(seat, first, last):
        with lock:
            seen.extend(range(first, last))

    workers.run(job, task, 0, 10)
    return sorted(seen)


@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_what_a_task_raises_reaches_the_caller_and_the_next_call_is_right(workers, culprit):
    job = Job()

    def task(seat, first, last):
        if first <= culprit < last:
            raise ArithmeticError(f"environment {culprit}")

    for _ in range(3):
        with pytest.raises(ArithmeticError, match=f"environment {culprit}"):
            workers.run(job, task, 0, 10)
        assert played(workers, job) == list(range(10))


def test_a_thread_that_is_held_up_keeps_nobody_waiting():
    """All parts but the one that it is at are done by the other."""
    workers, job, seats, lock = Workers(4096, num_threads=2), Job(), {}, threading.Lock()
    rest_done = threading.Event()

    def task(seat, first, last):
        with lock:
            seats[first, last] = seat
            if max(last for _, last in seats) == 4096:
                rest_done.set()
        if first == 0:
            assert rest_done.wait(10.0)

    workers.run(job, task, 0, 4096)
    workers.close()
    assert len(seats) > 2
    assert sorted(list(seats.values()).count(seat) for seat in {*seats.values()}) == [1, len(seats) - 1]


@pytest.mark.parametrize("background", [False, True])
def test_nothing_of_a_task_is_kept(workers, background):
    """Memory for what calls return is used again once nobody refers to it, and a late thread must not."""

    class Memory:
        pass

    for _ in range(200):
        job, memory = Job(), Memory()
        reference = weakref.ref(memory)

        def task(seat, first, last, memory=memory):
            pass

        if background:
            workers.start(job, task, 0, 10)
            job.finish()
        else:
            workers.run(job, task, 0, 10)
        del task, memory
        assert reference() is None


def test_what_goes_wrong_in_the_background_reaches_who_waits(workers):
    job = Job()

    def task(seat, first, last):
        raise ArithmeticError("in the background")

    workers.start(job, task, 0, 10)
    with pytest.raises(ArithmeticError, match="in the background"):
        job.finish()
    assert played(workers, job) == list(range(10))


def test_after_an_interrupted_wait_nothing_of_the_old_work_is_left(workers):
    """As when a key interrupts the wait: the answers to the old work do not count for the new."""
    job, lock, running, most = Job(), threading.Lock(), set(), []

    def slow(seat, first, last):
        with lock:
            running.add(first)
        time.sleep(0.05)
        with lock:
            running.remove(first)

    def quick(seat, first, last):
        with lock:
            most.append(len(running))

    workers.start(job, slow, 0, 10)
    workers.run(job, quick, 0, 10)
    assert not any(most)
    assert played(workers, job) == list(range(10))
