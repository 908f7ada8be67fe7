"""Programs that leak, each beside one that does the same and keeps nothing: ``python -m tests.memory.planted NAME``.

The names of :mod:`tests.memory.harmless` run as well.

The words behind the name are the seconds to run, then ``clean``, ``heap`` and ``steps`` on request. ``heap`` makes
three million objects first. ``steps`` profiles the program itself by ``nclone_env.memory.profile`` and counts steps,
instead of leaving both to ``profile script``.
A comment ends the line that leaks.
"""

import asyncio
import contextvars
import ctypes
import gc
import inspect
import io
import itertools
import logging
import mmap
import multiprocessing
import socket
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np

from nclone_env.memory import profile

from .harmless import HARMLESS, Steps

MARK = "# leaks"
KEPT: list[Any] = []
OLDER: list[Any] = []
LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


def global_list(steps: Steps, leaks: bool) -> None:
    for step in steps():
        KEPT.append(bytes(200 + step % 2))  # leaks
        if not leaks:
            KEPT.clear()


def wrapper(steps: Steps, leaks: bool) -> None:
    import gymnasium

    import nclone_env

    class Keep(gymnasium.Wrapper):
        def __init__(self, env: Any):
            super().__init__(env)
            self.kept: list[Any] = []

        def step(self, action: Any) -> Any:
            result = self.env.step(action)
            if number % 10 == 0 and leaks:
                self.kept.append(dict(result[4]))  # leaks
            return result

    env = Keep(nclone_env.create_environment(observations="game_state"))
    env.reset(seed=0)
    for number in steps():
        _, _, terminated, truncated, _ = env.step(number % 6)
        if terminated or truncated:
            env.reset()


def callback(steps: Steps, leaks: bool) -> None:
    class Callback:
        def __init__(self) -> None:
            self.history: list[float] = []

        def on_step(self, reward: float) -> None:
            self.history.append(reward + 0.5)  # leaks
            if not leaks:
                self.history.clear()

    own = Callback()
    for step in steps():
        own.on_step(float(step))


def malloc(steps: Steps, leaks: bool) -> None:
    for _ in steps():
        block = LIBC.malloc(64)  # leaks
        if not leaks:
            LIBC.free(block)


def cache_of_observations(steps: Steps, leaks: bool) -> None:
    import nclone_env

    @lru_cache(maxsize=None if leaks else 16)
    def features(data: bytes) -> list[int]:
        return [data[0], data[1]]

    env = nclone_env.create_environment(observations="game_state")
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in steps():
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        features(observation["game_state"].tobytes())  # leaks
        if terminated or truncated:
            env.reset()


def _work(pipe: Any, leaks: bool) -> None:
    kept: list[bytes] = []
    while pipe.recv() is not None:
        kept.append(bytes(4000))  # leaks
        if not leaks:
            kept.clear()
        pipe.send(None)


def worker(steps: Steps, leaks: bool, method: str = "fork") -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context(method).Process(target=_work, args=(theirs, leaks), daemon=True)
    process.start()
    for _ in steps():
        ours.send(1)
        ours.recv()
    ours.send(None)
    process.join()


def spawned(steps: Steps, leaks: bool) -> None:
    """Leak in a worker process that shares nothing with this one."""
    worker(steps, leaks, "spawn")


def instances(steps: Steps, leaks: bool) -> None:
    """Register objects of a class by their bound methods."""

    class View:
        def __init__(self, number: int):
            self.number = number

        def changed(self) -> None:
            self.number += 1

    listeners: list[Any] = []
    for step in steps():
        listeners.append(View(step).changed)  # leaks
        if not leaks:
            listeners.clear()


def hook(steps: Steps, leaks: bool) -> None:
    from nclone_env.train import Hooks, TrainConfig, train

    counted, rows = steps(), []

    def on_update(row: Any) -> None:
        rows.append(np.full(2000, 1.0))  # leaks
        if not leaks:
            rows.clear()

    def stop() -> bool:
        return next(counted, None) is None

    with tempfile.TemporaryDirectory() as folder:
        settings = {"num_envs": 16, "num_steps": 16, "num_minibatches": 2, "total_timesteps": 10**9, "output": folder}
        train(TrainConfig.of(**settings), Hooks(on_update=on_update, stop=stop))


def graph(steps: Steps, leaks: bool) -> None:
    import torch

    weight = torch.ones(64, requires_grad=True)
    total = torch.zeros(1)
    for _ in steps():
        total = total + (weight * 2).sum()  # leaks
        if not leaks:
            total = total.detach()


def episodes(steps: Steps, leaks: bool) -> None:
    by_number = {}
    for step in steps():
        by_number[step if leaks else step % 100] = (step, [step + 1000])  # leaks


def closure(steps: Steps, leaks: bool) -> None:
    def make() -> Callable[[int], None]:
        seen: list[str] = []

        def note(step: int) -> None:
            seen.append(str(step + 1000))  # leaks
            if not leaks:
                seen.clear()

        return note

    note = make()
    for step in steps():
        note(step)


def generator(steps: Steps, leaks: bool) -> None:
    def running() -> Iterator[None]:
        past: list[Any] = []
        while True:
            yield
            past.append([past, 1])  # leaks
            if not leaks:
                past.clear()

    counting = running()
    for _ in steps():
        next(counting)


def thread_local(steps: Steps, leaks: bool) -> None:
    local = threading.local()
    local.log = []
    for step in steps():
        local.log.append(bytes(40 + step % 2))  # leaks
        if not leaks:
            local.log.clear()


def files(steps: Steps, leaks: bool) -> None:
    handles: list[Any] = []
    for step in steps():
        if step % 20 == 0:
            handles.append(open("/dev/null"))  # noqa: SIM115  # leaks
            if not leaks:
                handles.clear()


def queue(steps: Steps, leaks: bool) -> None:
    waiting: deque[Any] = deque(maxlen=None if leaks else 100)
    for step in steps():
        waiting.append((step, str(step)))  # leaks


class Registry:
    entries: dict[int, Any] = {}  # noqa: RUF012


def class_attribute(steps: Steps, leaks: bool) -> None:
    for step in steps():
        Registry.entries[step if leaks else 0] = object(), float(step)  # leaks


class Key:
    pass


def weak_keys(steps: Steps, leaks: bool) -> None:
    by_key: weakref.WeakKeyDictionary[Key, list[int]] = weakref.WeakKeyDictionary()
    alive = []
    for step in steps():
        key = Key()
        by_key[key] = [step] * 20  # leaks
        if leaks:
            alive.append(key)


def arrays(steps: Steps, leaks: bool) -> None:
    kept: list[Any] = []
    for step in steps():
        kept.append(np.full((8, 8), step, np.float32))  # leaks
        if not leaks:
            kept.clear()


def views(steps: Steps, leaks: bool) -> None:
    """Keep a small view of a large array, and with it the whole array."""
    kept: list[Any] = []
    for step in steps():
        large = np.full((64, 64), step, np.float32)  # leaks
        kept.append(large[:1])
        if not leaks:
            kept.clear()


def tensors(steps: Steps, leaks: bool) -> None:
    import torch

    kept: list[Any] = []
    for _ in steps():
        kept.append(torch.ones(64))  # leaks
        if not leaks:
            kept.clear()


def log_records(steps: Steps, leaks: bool) -> None:
    class Handler(logging.Handler):
        def __init__(self) -> None:
            super().__init__()
            self.records: list[logging.LogRecord] = []

        def emit(self, record: logging.LogRecord) -> None:
            self.records.append(record)
            if not leaks:
                self.records.clear()

    logger = logging.getLogger("planted")
    logger.propagate = False
    logger.addHandler(Handler())
    for step in steps():
        logger.warning("step %d", step)  # leaks


def tasks(steps: Steps, leaks: bool) -> None:
    async def wait(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        never, started = asyncio.Event(), set()
        for step in steps():
            task = asyncio.create_task(wait(never))  # leaks
            if leaks:
                started.add(task)
            else:
                task.cancel()
            if step % 10 == 0:
                await asyncio.sleep(0)
        for task in started:
            task.cancel()

    asyncio.run(main())


def thread(steps: Steps, leaks: bool) -> None:
    """Keep in a thread of its own, while the main thread waits."""
    kept: list[Any] = []

    def work() -> None:
        for step in steps():
            kept.append({"step": step + 1000})  # leaks
            if not leaks:
                kept.clear()

    working = threading.Thread(target=work)
    working.start()
    working.join()


def sockets(steps: Steps, leaks: bool) -> None:
    kept: list[Any] = []
    for step in steps():
        if step % 20 == 0:
            kept.append(socket.socketpair())  # leaks
            if not leaks:
                for one in kept.pop():
                    one.close()


def maps(steps: Steps, leaks: bool) -> None:
    kept: list[Any] = []
    for step in steps():
        if step % 20 == 0:
            kept.append(mmap.mmap(-1, 16384))  # leaks
            kept[-1].write(bytes(16384))
            if not leaks:
                kept.pop().close()


def buffers(steps: Steps, leaks: bool) -> None:
    kept: list[Any] = []
    for _ in steps():
        kept.append(ctypes.create_string_buffer(256))  # leaks
        if not leaks:
            kept.clear()


def tracebacks(steps: Steps, leaks: bool) -> None:
    def fail(step: int) -> None:
        about = bytes(100 + step % 2)  # leaks
        raise ValueError(len(about))

    errors: list[Exception] = []
    for step in steps():
        try:
            fail(step)
        except ValueError as error:
            errors.append(error)
            if not leaks:
                errors.clear()


def default_argument(steps: Steps, leaks: bool) -> None:
    def note(step: int, seen: list[Any] = []) -> None:  # noqa: B006
        seen.append((step, step + 1000))  # leaks
        if not leaks:
            seen.clear()

    for step in steps():
        note(step)


def cycles(steps: Steps, leaks: bool) -> None:
    """Make cycles while garbage is not collected."""
    if leaks:
        gc.disable()
    for _ in steps():
        one: list[Any] = [1, 2, 3]  # leaks
        one.append(one)
    gc.enable()


def partials(steps: Steps, leaks: bool) -> None:
    """Register callbacks for good."""
    callbacks: list[Any] = []
    for step in steps():
        callbacks.append(partial(print, step + 1000))  # leaks
        if not leaks:
            callbacks.clear()


def text(steps: Steps, leaks: bool) -> None:
    """Grow one object."""
    log = bytearray()
    for _ in steps():
        log.extend(b"a line of a log that is never read" * 8)  # leaks
        if not leaks:
            log.clear()


def context_variable(steps: Steps, leaks: bool) -> None:
    history = contextvars.ContextVar("history", default=())
    for step in steps():
        history.set((step, history.get() if leaks else ()))  # leaks


def asynchronous(steps: Steps, leaks: bool) -> None:
    """Keep what worker processes send."""
    import gymnasium

    import nclone_env  # noqa: F401 - registers the environments

    envs = gymnasium.make_vec("nclone/NPlusPlus-v0", 2, vectorization_mode="async", observations=("game_state",))
    envs.reset(seed=0)
    envs.action_space.seed(0)
    kept: list[Any] = []
    for _ in steps():
        observation, *_ = envs.step(envs.action_space.sample())
        kept.append(observation["game_state"].copy())  # leaks
        if not leaks:
            kept.clear()
    envs.close()


def log_handlers(steps: Steps, leaks: bool) -> None:
    """Add a handler at each turn, as functions do that set up logging when they are called."""
    logger = logging.getLogger("planted.handlers")
    for _ in steps():
        handler = logging.NullHandler()  # leaks
        logger.addHandler(handler)
        if not leaks:
            logger.removeHandler(handler)


def figures(steps: Steps, leaks: bool) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    for step in steps():
        figure = pyplot.figure(figsize=(1, 1))  # leaks
        figure.text(0, 0, str(step))
        if not leaks:
            pyplot.close(figure)


def finalizers(steps: Steps, leaks: bool) -> None:
    """Register a finalizer that refers to what it waits for."""

    class Stage:
        def __init__(self) -> None:
            self.data = np.full(64, 1.0)  # leaks

        def close(self) -> None:
            pass

    for _ in steps():
        stage = Stage()
        finalizer = weakref.finalize(stage, stage.close)
        if not leaks:
            finalizer.detach()


def lagging_iterator(steps: Steps, leaks: bool) -> None:
    """Go on with one of two iterators."""
    history, now = itertools.tee([number, str(number)] for number in steps())  # leaks
    for _ in now:
        if not leaks:
            next(history)


def warning_registry(steps: Steps, leaks: bool) -> None:
    """Warn with another text each time, which the module notes."""
    warnings.simplefilter("default")
    warnings.showwarning = lambda *about: None
    for step in steps():
        warnings.warn(f"value {step if leaks else 0} is out of range", stacklevel=1)  # leaks


def text_buffer(steps: Steps, leaks: bool) -> None:
    output = io.StringIO()
    for step in steps():
        output.write(f"line {step} of a log that is never read{chr(10)}")  # leaks
        if not leaks:
            output.seek(0)


LISTED = (
    *(wrapper, callback, malloc, cache_of_observations, worker, hook, graph, episodes, closure, generator),
    *(thread_local, files),
)
MORE = (
    *(global_list, queue, class_attribute, spawned, instances, weak_keys, arrays, views, tensors, log_records, tasks),
    *(thread, sockets, maps, buffers, asynchronous, tracebacks, default_argument, cycles, partials, text),
    *(context_variable, log_handlers, figures, finalizers, lagging_iterator, warning_registry, text_buffer),
)
PROGRAMS = {program.__name__: program for program in (*LISTED, *MORE)}


def leaking_line(name: str) -> int:
    """Return the number of the line that leaks; 0 if none does."""
    if name in HARMLESS:
        return 0
    lines, first = inspect.getsourcelines(_work if name in ("worker", "spawned") else PROGRAMS[name])
    return first + next(number for number, line in enumerate(lines) if line.rstrip().endswith(MARK))


def main(name: str, seconds: str, *words: str) -> None:
    if "heap" in words:
        gc.disable()  # it would take seconds
        OLDER.extend([number] for number in range(3_000_000))
        gc.enable()
    with profile(name) if "steps" in words else nullcontext() as watch:

        def steps() -> Iterator[int]:
            number, end = 0, time.monotonic() + float(seconds)
            while time.monotonic() < end:
                yield number
                number += 1
                if watch is not None:
                    watch.step()
                time.sleep(0.0002)

        if name in HARMLESS:
            HARMLESS[name](steps)
        else:
            PROGRAMS[name](steps, "clean" not in words)
    if watch is not None:
        sys.stdout.write(f"{watch}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
