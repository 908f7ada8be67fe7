"""Programs that keep nothing and look as if they did: caches that fill, buffers that are emptied, pools, garbage.

They are run as those of ``planted``.
"""

import asyncio
import gc
import logging.handlers
import multiprocessing
import random
import re
import sqlite3
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

Steps = Callable[[], Iterator[int]]
_RANDOM = random.Random(0)


def cache_that_fills(steps: Steps) -> None:
    @lru_cache(maxsize=1000)
    def squares(step: int) -> list[int]:
        return [number * number for number in range(step % 50)]

    for step in steps():
        squares(step)


def queue_that_fills(steps: Steps) -> None:
    newest: deque[bytes] = deque(maxlen=1500)
    for step in steps():
        newest.append(bytes(300 + step % 3))


def sawtooth(steps: Steps) -> None:
    table: dict[int, str] = {}
    for step in steps():
        table[step] = str(step) * 10
        if step % 1000 == 999:
            table.clear()


def garbage_in_cycles(steps: Steps) -> None:
    for step in steps():
        node: dict[str, Any] = {"data": bytes(200 + step % 2)}
        node["self"] = node


def peaks_that_rise(steps: Steps) -> None:
    for step in steps():
        np.ones(1000 + 10 * step).sum()


def pages_of_a_file(steps: Steps) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(64 * 1024**2)
        pages = np.memmap(file.name, np.uint8, "r").reshape(-1, 4096)
        for step in steps():
            pages[step % len(pages)].sum()


def threads(steps: Steps) -> None:
    for step in steps():
        thread = threading.Thread(target=bytes, args=(1000 + step % 5,))
        thread.start()
        thread.join()


def pool_of_threads(steps: Steps) -> None:
    with ThreadPoolExecutor(4) as pool:
        for step in steps():
            pool.submit(bytes, 1000 + step % 7).result()


def pool_of_processes(steps: Steps) -> None:
    """Begin a new process after 50 tasks."""
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=50) as pool:
        for step in steps():
            pool.apply(bytes, (1000 + step % 7,))


def interned_texts(steps: Steps) -> None:
    for step in steps():
        sys.intern(f"text {step}")


def regular_expressions(steps: Steps) -> None:
    """Fill the module's cache of compiled expressions, which holds 512."""
    for step in steps():
        re.match(f"{step % 2000}[a-z]+", "text")


def exceptions(steps: Steps) -> None:
    def fail(depth: int) -> None:
        if not depth:
            raise ValueError(bytes(300))
        fail(depth - 1)

    for step in steps():
        try:
            fail(step % 20)
        except ValueError as error:
            last = error  # noqa: F841 - kept until the next one


def tasks_that_end(steps: Steps) -> None:
    async def work(step: int) -> bytes:
        await asyncio.sleep(0)
        return bytes(step % 500)

    async def run() -> None:
        for step in steps():
            await asyncio.gather(*(asyncio.create_task(work(step + number)) for number in range(3)))

    asyncio.run(run())


def arrays_of_random_size(steps: Steps) -> None:
    """Replace arrays of a ring, which fragments the heap."""
    ring: list[Any] = [None] * 200
    for step in steps():
        ring[step % len(ring)] = np.zeros(_RANDOM.randrange(1, 4000))


def weak_values(steps: Steps) -> None:
    class Entry:
        data = b""

    table: weakref.WeakValueDictionary[int, Entry] = weakref.WeakValueDictionary()
    for step in steps():
        entry = table[step] = Entry()
        entry.data = bytes(200 + step % 2)


def records_that_are_written(steps: Steps) -> None:
    logger, sink = logging.Logger("harmless"), logging.NullHandler()
    logger.addHandler(logging.handlers.MemoryHandler(400, logging.CRITICAL, sink))
    for step in steps():
        logger.warning("step %d", step)


def rows_that_are_deleted(steps: Steps) -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("create table rows (number integer, data blob)")
        for step in steps():
            database.execute("insert into rows values (?, ?)", (step, bytes(500)))
            database.execute("delete from rows where number < ?", (step - 500,))


def collector_switched_off(steps: Steps) -> None:
    """Collect by hand now and then, as training loops do."""
    gc.disable()
    for step in steps():
        node: list[Any] = [bytes(200 + step % 2)]
        node.append(node)
        if step % 200 == 199:
            gc.collect()
    gc.enable()


HARMLESS = {
    program.__name__: program
    for program in (
        *(cache_that_fills, queue_that_fills, sawtooth, garbage_in_cycles, peaks_that_rise, pages_of_a_file, threads),
        *(pool_of_threads, pool_of_processes, interned_texts, regular_expressions, exceptions, tasks_that_end),
        *(arrays_of_random_size, weak_values, records_that_are_written, rows_that_are_deleted, collector_switched_off),
    )
}
