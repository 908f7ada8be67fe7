"""What profiling costs: the same steps with each kind of profiling and without, in turns.

*Off* is measured twice in each turn, so that its own variation stands next to what profiling costs: there is no
profiling code in the environments, so nothing else can remain of it. Ratios are medians over turns of one process.
"""

from __future__ import annotations

import cProfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import numpy as np
import tyro

from nclone_env import NPlusPlusVectorEnv, memory
from nclone_env._table import table
from profiling.measure import describe

OFF = "off"


class Steps:
    """Steps of a vector environment; ``after`` is called after each."""

    def __init__(self, num_envs: int):
        self._env = NPlusPlusVectorEnv(num_envs=num_envs, num_threads=1)
        self._env.reset(seed=0)
        self._actions = np.random.default_rng(0).integers(0, 6, (64, num_envs))

    def seconds(self, count: int, after: Callable[[], object]) -> float:
        """Return the time of so many steps."""
        start = time.process_time()
        for step in range(count):
            self._env.step(self._actions[step % 64])
            after()
        return time.process_time() - start


def nothing() -> None:
    """Do nothing after a step."""


@contextmanager
def watched(trace: bool) -> Iterator[Callable[[], object]]:
    """Profile the block with ``nclone_env.memory.profile``."""
    with memory.profile(trace=trace) as watch:
        yield watch.step


@contextmanager
def called(context: AbstractContextManager[object]) -> Iterator[Callable[[], object]]:
    """Run the block in a context that needs no call after a step."""
    with context:
        yield nothing


@contextmanager
def traced() -> Iterator[None]:
    """Run the block under tracemalloc alone."""
    tracemalloc.start(1)
    yield
    tracemalloc.stop()


WAYS: dict[str, Callable[[], AbstractContextManager[Callable[[], object]]]] = {
    OFF: lambda: called(ExitStack()),
    "off, again": lambda: called(ExitStack()),
    "memory.profile(trace=False)": lambda: watched(trace=False),
    "memory.profile()": lambda: watched(trace=True),
    "tracemalloc alone": lambda: called(traced()),
    "cProfile": lambda: called(cProfile.Profile()),
}


def main(num_envs: int = 64, steps: int = 500, turns: int = 15) -> None:
    """Print the time of a step relative to that without profiling.

    Args:
        num_envs: number of environments.
        steps: steps of each way in a turn.
        turns: number of turns.
    """
    print(describe())
    runner = Steps(num_envs)
    runner.seconds(steps, nothing)
    seconds = np.zeros((turns, len(WAYS)))
    for turn in range(turns):
        for number, way in enumerate(WAYS.values()):
            with way() as after:
                seconds[turn, number] = runner.seconds(steps, after)
    ratios = seconds / seconds[:, :1]
    low, median, high = np.quantile(ratios, (0.25, 0.5, 0.75), axis=0)
    rows = [
        (name, f"{1e6 * np.median(seconds[:, i]) / steps:.1f}", f"{median[i]:.3f}", f"{low[i]:.3f} to {high[i]:.3f}")
        for i, name in enumerate(WAYS)
    ]
    print("\n".join(table(("profiling", "us a step", "ratio to off", "quartiles"), rows)))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
