"""Executors of independent tasks."""

import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import nullcontext
from functools import partial
from multiprocessing import current_process

import pytest

from nclone_env._processes import check_wanted, in_order, is_unwanted, processes, threads


def test_results_come_in_the_order_of_the_tasks():
    begun = threading.Barrier(3)

    def task(number):
        if number < 3:
            begun.wait(timeout=600)  # three threads at once
        return number, threading.get_ident()

    with threads(3) as executor:
        found = list(in_order((partial(task, number) for number in range(20)), executor))
    assert [number for number, _ in found] == list(range(20))
    assert threading.get_ident() not in {thread for _, thread in found}


def test_one_thread_is_the_calling_one():
    with threads(1) as executor:
        assert executor is None
        assert list(in_order([threading.get_ident], executor)) == [threading.get_ident()]


@pytest.mark.parametrize("daemon", [True, False])
def test_workers_of_a_pool_start_no_processes(daemon, monkeypatch):
    monkeypatch.setitem(current_process()._config, "daemon", daemon)
    with processes(2) as executor:
        assert (executor is None) == daemon
    with processes(1) as executor:
        assert executor is None


def test_only_so_many_results_are_kept():
    begun = []

    def tasks():
        for number in range(30):
            begun.append(number)
            yield partial(int, number)

    with threads(2) as executor:
        results = in_order(tasks(), executor, ahead=4)
        assert next(results) == 0
        assert len(begun) <= 5
        assert list(results) == list(range(1, 30))


def test_tasks_end_when_an_exception_leaves_the_context():
    working, ended = threading.Event(), []

    def task():
        working.set()
        try:
            while True:
                check_wanted()
                time.sleep(0.001)
        except CancelledError:
            ended.append(is_unwanted())
            raise

    def interrupted():
        with threads(2) as executor:
            executor.submit(task)
            assert working.wait(timeout=600)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended == [True]
    assert not is_unwanted(), "of other threads nothing is known"


@pytest.mark.parametrize("asked", [True, False])
def test_workers_that_the_same_signal_has_ended_are_no_error(asked):
    """As that of ``timeout``, which all processes of the group get."""
    working, broken = Future(), Future()
    working.set_result(1)
    broken.set_exception(BrokenExecutor())

    class Ended:
        def submit(self, task):
            return task

    found = []
    results = in_order([working, broken], Ended(), lambda: bool(asked and found))
    found.append(next(results))
    with nullcontext() if asked else pytest.raises(BrokenExecutor):
        found += results
    assert found == [1]
