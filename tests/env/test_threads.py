"""The thread pool: exceptions reach the caller, leave the next call intact, and no task outlives its call."""

import threading
import time
import weakref

import numpy as np
import pytest

from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.env.threads import Workers
from nclone_env.sim.pace import Pace


@pytest.fixture
def workers():
    pool = Workers(10, num_threads=3)
    yield pool
    pool.close()


def played(workers) -> list[int]:
    lock, seen = threading.Lock(), []

    def task(worker, first, last):
        with lock:
            seen.extend(range(first, last))

    workers.run(task, 0, 10)
    return sorted(seen)


@pytest.mark.parametrize("culprit", [0, 4, 9])
def test_an_exception_of_a_task_reaches_the_caller_and_the_next_call_is_right(workers, culprit):
    def task(worker, first, last):
        if first <= culprit < last:
            raise ArithmeticError(f"environment {culprit}")

    for _ in range(3):
        with pytest.raises(ArithmeticError, match=f"environment {culprit}"):
            workers.run(task, 0, 10)
        assert played(workers) == list(range(10))


def test_a_stalled_thread_does_not_delay_the_others():
    """The other thread processes all chunks but the one in which the first is stalled."""
    workers, slots, lock = Workers(4096, num_threads=2), {}, threading.Lock()
    rest_done = threading.Event()

    def task(worker, first, last):
        with lock:
            slots[first, last] = worker
            if max(last for _, last in slots) == 4096:
                rest_done.set()
        if first == 0:
            assert rest_done.wait(timeout=600)

    workers.run(task, 0, 4096)
    workers.close()
    assert len(slots) > 2
    assert sorted(list(slots.values()).count(slot) for slot in {*slots.values()}) == [1, len(slots) - 1]


def test_no_reference_to_a_finished_task_is_kept(workers):
    """Output arrays are recycled once all references to them are gone, so a late thread must hold none."""

    class Memory:
        pass

    for _ in range(200):
        memory = Memory()
        reference = weakref.ref(memory)

        def task(worker, first, last, memory=memory):
            pass

        workers.run(task, 0, 10)
        del task, memory
        assert reference() is None


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_key_that_interrupts_a_task_ends_the_range(num_threads):
    """The rest of the range is not processed, and the next one is processed in full."""
    pool, seen, caller = Workers(1000, num_threads, min_chunk=10), [], threading.get_ident()
    interrupted = threading.Event()

    def task(worker, first, last):
        seen.append(first)
        if threading.get_ident() == caller:
            interrupted.set()
            raise KeyboardInterrupt
        interrupted.wait(60)
        time.sleep(0.05)  # time to end the range: a third of a second for the chunks that are left

    with pytest.raises(KeyboardInterrupt):
        pool.run(task, 0, 1000)
    count = len(seen)
    assert count < 50
    time.sleep(0.01)
    assert len(seen) == count
    assert played(pool) == list(range(10))
    pool.close()


def test_slow_work_is_cut_into_short_pieces():
    """Between two pieces the interpreter can answer Ctrl-C."""
    pool, sizes = Workers(10**6, num_threads=1), []

    def slow(worker, first, last):
        sizes.append(last - first)
        time.sleep((last - first) * 1e-4)

    pool.run(slow, 0, 3000)
    assert sum(sizes) == 3000
    assert max(sizes) < 1000
    sizes.clear()
    while 10**6 not in sizes:  # a busy machine slows single runs down
        pool.run(lambda worker, first, last: sizes.append(last - first), 0, 10**6)


@pytest.mark.parametrize(("own_pace", "longest"), [(True, 1), (False, 3000)])
def test_fast_work_with_a_pace_of_its_own_does_not_lengthen_the_pieces_of_slow_work(own_pace, longest):
    """A reset takes a hundredth of a long step, which may take half a second: Ctrl-C would wait for minutes."""
    pool, sizes = Workers(10**6, num_threads=1), []
    for _ in range(20):
        pool.run(lambda worker, first, last: None, 0, 10**6, Pace() if own_pace else None)
    pool.run(lambda worker, first, last: sizes.append(last - first), 0, 3000)
    assert sizes[0] == longest


def test_pieces_are_short_again_on_levels_that_were_asked_for():
    envs = NPlusPlusVectorEnv(num_envs=512, num_threads=1)
    envs.reset(seed=0)
    for _ in range(20):
        envs.step(np.zeros(512, np.int64))
    assert envs._batch.workers._pace.size > 1
    envs.reset(options={"level": 0})
    assert envs._batch.workers._pace.size == 1
    envs.close()


def test_resets_have_a_pace_of_their_own():
    envs = NPlusPlusVectorEnv(num_envs=512, num_threads=1)
    for _ in range(20):
        envs.reset(seed=0)
    pieces = list(envs._batch.workers._pace.pieces(0, 512))
    assert pieces[0] == (0, 1)
    envs.close()
