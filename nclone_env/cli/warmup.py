"""``nclone-env warmup``: compile kernels ahead of time, all or those of a part."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

from tyro.conf import Positional

from nclone_env._processes import in_order, processes
from nclone_env.cli.progress import say
from nclone_env.config import OBSERVATION_NAMES
from nclone_env.errors import MissingExtraError
from nclone_env.jit import cache_folder
from nclone_env.machine import available_cores

Part = Literal["sim", "env", "observations", "plan", "generate", "replay", "benchmark", "profile", "train", "cuda"]
"""What can be compiled: the simulator, environments with the default and with all observations, rooms by name, and
environments on a GPU, which need none for it."""


def warmup(parts: Positional[tuple[Part, ...]] = ()) -> int:
    """Compile kernels into the cache and report progress; a few seconds if they are cached.

    Args:
        parts: what to compile, for example train; everything but cuda by default.
    """
    os.environ["NCLONE_ENV_QUIET"] = "1"  # in processes started here too: tasks have lines of their own
    say(f"kernels in {cache_folder() or 'memory only'}")
    sys.stdout.flush()
    chosen = tasks(parts)
    lanes = [[task for task in chosen if task.lane == lane] for lane in range(3)]
    beside = [lane for lane in lanes[:2] if lane]
    with processes(1 if available_cores() == 1 else len(beside) or 1) as executor:
        for _ in in_order([partial(_compile, lane) for lane in beside], executor):
            pass
    _compile(lanes[2])
    return 0


class Compilation(NamedTuple):
    """Something that compiles kernels."""

    part: Part
    name: str
    lane: int
    """Two lanes run beside each other, each in a process; a third after them."""
    run: Callable[[], None]


def tasks(parts: Sequence[Part] = ()) -> list[Compilation]:
    """Return the tasks of some parts, by default of all but ``cuda``, in an order that they can be run in."""
    return [task for task in _TASKS if task.part in (parts or _DEFAULT)]


def _compile(tasks: Sequence[Compilation]) -> None:
    """Do tasks one after the other, with a line for each; some need the optional dependencies of the trainer."""
    for task in tasks:
        started = time.perf_counter()
        with suppress(MissingExtraError):
            task.run()
        say(f"  {task.name} ... {time.perf_counter() - started:.1f} s")
        sys.stdout.flush()


def _room(name: str, function: str = "compile_kernels", **arguments: Any) -> None:
    getattr(import_module(f"nclone_env.{name}"), function)(**arguments)


_TASKS = (
    Compilation("env", "distances", 0, partial(_room, "level")),
    Compilation("env", "environment", 0, partial(_room, "env")),
    Compilation("train", "environment of the trainer", 0, partial(_room, "env")),
    Compilation("sim", "simulator", 0, partial(_room, "sim")),
    Compilation("observations", "more observations", 0, partial(_room, "env", observations=OBSERVATION_NAMES)),
    Compilation("benchmark", "benchmark", 0, partial(_room, "benchmark")),
    Compilation("profile", "profiler", 0, partial(_room, "profiler")),
    Compilation("train", "video of an episode", 1, partial(_room, "replay")),
    Compilation("train", "network and update", 1, partial(_room, "train", "compile_learner")),
    Compilation("plan", "planner", 1, partial(_room, "plan")),
    Compilation("generate", "generator", 1, partial(_room, "generate")),
    Compilation("replay", "replay", 1, partial(_room, "replay")),
    Compilation("train", "trainer", 2, partial(_room, "train")),
    Compilation("cuda", "environment on a GPU", 2, partial(_room, "env.cuda", "compile_programs")),
)
"""What to compile. Both lanes take about as long; what one has compiled as a part of others, the other one uses."""
_DEFAULT = {task.part for task in _TASKS} - {"cuda"}
