from __future__ import annotations

import _thread
import threading
import time

import pytest

from nclone_env.memory.main_thread import call_in_main_thread, call_later


def test_another_thread_calls_in_the_main_thread():
    seen = []
    thread = threading.Thread(target=call_in_main_thread, args=(lambda: seen.append(threading.current_thread()),))
    thread.start()
    while thread.is_alive():  # instructions of the main thread
        time.sleep(0)
    assert seen == [threading.main_thread()]


def test_the_call_is_made_once_where_the_main_thread_waits(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.main_thread._PATIENCE", 0.01)
    seen = []

    def later() -> None:
        time.sleep(0.05)
        call_in_main_thread(lambda: seen.append(threading.current_thread()))

    thread = threading.Thread(target=later)
    thread.start()
    thread.join()  # a lock: no instructions
    for _ in range(1000):
        time.sleep(0)
    assert seen == [thread]


def test_an_interrupt_during_a_call_reaches_the_code():
    def interrupted() -> None:
        _thread.interrupt_main()
        done.append(True)

    done: list[bool] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - which comes later
        call_later(interrupted)
        for _ in range(1000):
            time.sleep(0.001)
    assert done
