"""Is the memory profiler's verdict right? Runs without a leak, and runs with a planted one, at every size.

Each run is a process of its own and makes the two passes that the verdict follows from, at the default number of steps.
Without a leak the verdict must be flat: every number of environments, three sets of observations, all autoreset modes,
some seeds; and Gymnasium's asynchronous environments at twenty lengths. With a leak it must be growing: Python objects
of 5 KB per 1,000 steps, native blocks of 200 KB per 1,000 steps, and 64 bytes a step of either kind.

    python -m profiling.memory.leak_verdicts --sizes 256 1000 4096 --seeds 20 --only "default, next-step"
    python -m profiling.memory.leak_verdicts --sizes 256 --seeds 20 --only leak:
"""

from __future__ import annotations

import ctypes
import itertools
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import tyro

from nclone_env.config import DEFAULT_OBSERVATIONS, EnvironmentConfig
from nclone_env.memory.judge import combined_verdict, growths_of
from nclone_env.memory.measure.measurements import ProfileSettings
from nclone_env.memory.measure.tree import MemoryNode
from nclone_env.memory.passes import Subject, Target, plain_pass, traced_pass
from nclone_env.profiler.environments import EnvironmentTarget, Mode
from profiling.measure import describe, in_fresh_process

SIZES = (1, 16, 100, 256, 1_000, 10_000)
OBSERVATIONS = {
    "state": ("game_state",),
    "default": DEFAULT_OBSERVATIONS,
    "all": (*DEFAULT_OBSERVATIONS, "entity_states", "locals", "reachability"),
}
MODES: tuple[Mode, ...] = ("next-step", "same-step", "disabled")
STEPS = 1000
ASYNC_STEPS = (101, 120, 150, 180, 201, 230, 260, 301, *range(350, 701, 50), 800, 850, 900, 1000)


class Leak(NamedTuple):
    """A planted leak: so many bytes every so many steps."""

    kind: str
    size: int
    every: int

    def __str__(self) -> str:
        """Return what leaks."""
        return f"{self.kind}, {self.size} B every {self.every} steps"


LEAKS = (
    Leak("Python", 67, 20),  # objects of 100 bytes: 5 KB per 1,000 steps
    Leak("native", 200, 1),
    Leak("native", 20_000, 100),
    Leak("Python", 31, 1),  # objects of 64 bytes
    Leak("native", 64, 1),
)


@dataclass(frozen=True)
class LeakingTarget(Target):
    """A vector environment beside which something leaks."""

    target: EnvironmentTarget
    leak: Leak | None
    name = "vector environment with a leak"
    unit = "vector step"
    most_envs = 1

    @property
    def makes_objects(self) -> bool:  # type: ignore[override]
        """Return that of the environment."""
        return self.target.makes_objects

    def make(self, num_envs: int) -> Subject:
        """Make the environment."""
        return LeakingSubject(self.target.make(num_envs), self.leak)


class LeakingSubject:
    """A subject that keeps some bytes for good now and then."""

    def __init__(self, subject: Subject, leak: Leak | None):
        self._subject, self._leak, self._steps = subject, leak, 0
        self._kept: list[bytes] = []
        self._malloc = ctypes.CDLL(None).malloc
        self._malloc.restype = ctypes.c_void_p

    def step(self) -> None:
        """Step, and leak."""
        self._subject.step()
        self._steps += 1
        if self._leak is None or self._steps % self._leak.every:
            return
        if self._leak.kind == "native":
            self._malloc(ctypes.c_size_t(self._leak.size))
        else:
            self._kept.append(bytes(self._leak.size))

    def memory(self) -> MemoryNode:
        """Return the tree of the environment."""
        return self._subject.memory()

    def close(self) -> None:
        """Close the environment."""
        self._subject.close()


def verdict(target: Target, num_envs: int, steps: int) -> tuple[str, str]:
    """Make both passes in this process; return the verdict and what grows by how much per 1,000 steps."""
    growths = growths_of(traced_pass(target, plain_pass(target, ProfileSettings(num_envs, steps))))
    growing = [f"{item.quantity} {item.slope:+,.0f} B" for item in growths if item.verdict == "growing"]
    return combined_verdict(growths), ", ".join(growing)


def runs(sizes: tuple[int, ...], seeds: int, steps: int) -> Iterator[tuple[str, LeakingTarget, int, int]]:
    """Yield (text, target, number of environments, steps): first without leaks, then each leak at every size."""
    state = EnvironmentConfig(observations=OBSERVATIONS["state"])
    for length in ASYNC_STEPS:
        yield (
            f"2 environments, async, {length} steps",
            LeakingTarget(EnvironmentTarget(state, form="async"), None),
            2,
            length,
        )
    for num_envs, (name, observations), mode, seed in itertools.product(
        sizes, OBSERVATIONS.items(), MODES, range(seeds)
    ):
        config = EnvironmentConfig(observations=observations)
        target = EnvironmentTarget(config, seed, autoreset=mode)
        yield f"{num_envs} environments, {name}, {mode}, seed {seed}", LeakingTarget(target, None), num_envs, steps
    for num_envs, leak, seed in itertools.product(sizes, LEAKS, range(seeds)):
        target = EnvironmentTarget(state, seed, autoreset="same-step")
        yield f"{num_envs} environments, leak: {leak}, seed {seed}", LeakingTarget(target, leak), num_envs, steps


def main(
    sizes: tuple[int, ...] = SIZES,
    seeds: int = 2,
    steps: int = STEPS,
    only: str = "",
) -> None:
    """Print a line for each run, and the number of each verdict.

    Args:
        sizes: numbers of environments.
        seeds: number of seeds.
        steps: steps of each pass, besides those of asynchronous environments.
        only: only runs whose text contains this.
    """
    print(describe())
    os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")  # as the command does
    counts = {"without a leak": Counter[str](), "with one": Counter[str]()}
    for text, target, num_envs, length in runs(sizes, seeds, steps):
        if only not in text:
            continue
        kind, started = "without a leak" if target.leak is None else "with one", time.perf_counter()
        found, rates = in_fresh_process(verdict, target, num_envs, length)
        counts[kind][found] += 1
        mark = "" if (found == "growing") == (target.leak is not None) else "   WRONG"
        print(f"  {text:<76} {found:<10}{rates}  ({time.perf_counter() - started:.0f} s){mark}", flush=True)
    for kind, found_ones in counts.items():
        print(f"{kind}: {', '.join(f'{number} {found}' for found, number in found_ones.items()) or 'none'}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
