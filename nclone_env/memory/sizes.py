"""What can be profiled, and its bytes per environment: fresh processes make different numbers of environments.

In the process that profiles, memory freed by earlier passes is used again, so that it would measure too little.

What any number of environments will take is computed from one and two of them. Owners report their arrays; the tree of
one and of two is continued. What no owner reports, objects of Python and worker processes, is measured.
"""

import gc
import multiprocessing
import sys
import tracemalloc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple, Protocol

from nclone_env.memory.measurements import Advice, OwnedNode, ProfileSettings, SizePoint
from nclone_env.memory.process import committed_tree_bytes, heap_bytes, resident_bytes, trim_heap, worker_bytes
from nclone_env.memory.tree import MemoryNode, MemoryOwner

_STEPS, _FEWEST_STEPS = 60, 3  # of an environment, and fewest of the subject
_LARGEST_BYTES = 48 * 1024**2
"""The largest process has at least so much of them, unless that takes more environments than the target allows."""
_BLOCKS, _BALLAST = (*range(48, 513, 16), *range(512 + 128, 4096, 128)), 256 * 1024
"""Sizes of blocks of Python's allocator and of the C library's, and bytes of each size that are used up."""


class Subject(MemoryOwner, Protocol):
    """Something that repeats steps and reports the memory it owns."""

    def step(self) -> object:
        """Do what is repeated, once."""

    def close(self) -> object:
        """Release all resources."""


class Target:
    """Makes subjects of any size. It must be picklable, since fresh processes make subjects of several sizes."""

    name: str
    """What is profiled, for the reports."""
    unit: str
    """What a step is, for example "vector step" or "update"."""
    most_envs: int
    """The largest number of environments that a fresh process should make."""
    makes_objects = False
    """Whether each step makes and destroys objects of all kinds: Python's lists of freed ones fill ever more slowly."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return (name, value) of what a reader must know to compare two reports, such as mode and observations."""
        return ()

    def env_steps(self, num_envs: int) -> int:
        """Return the environment steps of a step, by default one of each environment."""
        return num_envs

    def estimate(self, num_envs: int) -> MemoryNode:
        """Return the tree that a subject will report; by default one and two environments are made."""
        return extrapolated(self, num_envs)

    def advice(self, owners: Sequence[OwnedNode], num_envs: int, unreported: float) -> Iterable[Advice]:
        """Return what would save memory, given the tree and the bytes of Python of each environment beside it."""
        return ()

    def phases(self, num_envs: int, steps: int) -> Mapping[str, float]:
        """Return the seconds of a whole step and then of its parts by name; nothing if they cannot be timed."""
        return {}

    def make(self, num_envs: int) -> Subject:
        """Make a subject that is ready to step."""
        raise NotImplementedError


def play(subject: Subject, steps: int) -> None:
    """Take so many steps."""
    for _ in range(steps):
        subject.step()


class Process(NamedTuple):
    """What a fresh process measures."""

    target: Target
    num_envs: int
    steps: int
    traced: bool


def measure_one_and_two(target: Target) -> list[tuple[SizePoint, SizePoint]]:
    """Measure one and two environments in fresh processes, both at a time; each without tracing and then with it."""
    processes = [Process(target, count, steps_to_measure(target), traced=False) for count in (1, 2)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as executor:
        return list(executor.map(_measure_twice, processes))


def _measure_twice(process: Process) -> tuple[SizePoint, SizePoint]:
    return measure(process), measure(process._replace(traced=True))


def steps_to_measure(target: Target) -> int:
    """Return the steps after which most buffers were used."""
    return max(_FEWEST_STEPS, _STEPS // max(1, target.env_steps(1)))


def measure_sizes(target: Target, settings: ProfileSettings, reported: float) -> tuple[SizePoint, ...]:
    """Measure three numbers of environments, one after another; the first and the last once more with tracemalloc.

    That of the run is among them unless it is too small to measure, by the bytes ``reported`` of each environment.
    """
    counts = environment_counts(settings.num_envs, reported, target.most_envs)
    steps = min(settings.steps, steps_to_measure(target))
    plain = [Process(target, count, steps, traced=False) for count in counts]
    traced = [Process(target, count, steps, traced=True) for count in (counts[0], counts[-1])]
    return tuple(in_fresh_process(process) for process in (*plain, *traced))


def environment_counts(num_envs: int, reported: float, most_envs: int) -> tuple[int, int, int]:
    """Return three numbers of environments, the largest large enough for its memory to stand out from the noise."""
    needed = int(_LARGEST_BYTES / max(reported, 1.0))
    largest = max(4, num_envs, min(needed, most_envs))
    return largest // 4, largest // 2, largest


def in_fresh_process(process: Process) -> SizePoint:
    """Measure in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(measure, process).result()


def measure(process: Process) -> SizePoint:
    """Measure in this process, beside one that stays: it has what all share, and frees nothing."""
    with closing(process.target.make(1)) as one:
        play(one, process.steps)
        ballast = _ballast()
        shared = {block for _, node in one.memory().walk() for block in node.blocks}
        if process.traced:
            tracemalloc.start()
        before, workers = _data_bytes(), worker_bytes()
        with closing(process.target.make(process.num_envs)) as subject:
            play(subject, process.steps)
            data, traced = _data_bytes() - before, tracemalloc.get_traced_memory()[0]
            tree = subject.memory()  # last: it takes memory itself, a few KB for each single environment
            made = _without(tree, shared)
            del ballast
            return SizePoint(
                num_envs=process.num_envs,
                data_bytes=data,
                worker_bytes=worker_bytes() - workers,
                owned_bytes=tree.bytes_where(shared=False),
                committed_bytes=committed_tree_bytes(made),
                python_bytes=traced - made.bytes_where(mapped=False) if process.traced else None,
            )


def _without(tree: MemoryNode, blocks: set[tuple[int, int]]) -> MemoryNode:
    children = tuple(_without(child, blocks) for child in tree.children)
    is_there = bool(tree.blocks) and blocks.issuperset(tree.blocks)
    return replace(tree, children=children, own_bytes=0 if is_there else tree.own_bytes)


def _ballast() -> list[bytes]:
    """Return objects in the small blocks that imports have left free: what is made next takes memory of its own."""
    return [bytes(size - sys.getsizeof(b"")) for size in _BLOCKS for _ in range(_BALLAST // size)]


def _data_bytes() -> int:
    """Return the memory in use: resident, without the heap that was freed and is still there to be used again."""
    gc.collect()
    heap = None if trim_heap() else heap_bytes()
    return resident_bytes().data + worker_bytes() - (heap.free if heap else 0)


def estimated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree that a target will report, and what it will take besides."""
    tree, others = target.estimate(num_envs), _unreported(target, num_envs)
    return replace(tree, children=(*tree.children, *(node for node in others if node.own_bytes)))


def _unreported(target: Target, num_envs: int) -> Iterator[MemoryNode]:
    """Yield the memory of Python and of worker processes that no owner reports, by its growth from one to two."""
    sizes = measure_one_and_two(target)
    python = [traced.python_bytes or 0 for _, traced in sizes]
    yield from _grown("other Python memory", num_envs, *python)
    rest = [plain.data_bytes - plain.committed_bytes - known for (plain, _), known in zip(sizes, python)]
    if sizes[1][0].worker_bytes:
        yield from _grown("worker processes", num_envs, *rest)
    else:
        yield MemoryNode("stacks of threads, spare heap", max(0, rest[0]), shared=True)


def _grown(name: str, num_envs: int, one: int, two: int) -> Iterator[MemoryNode]:
    each = max(0, two - one)
    yield MemoryNode(name, each * num_envs)
    yield MemoryNode(f"{name}, once", max(0, one - each), shared=True)


def extrapolated(target: Target, num_envs: int) -> MemoryNode:
    """Return the tree of a number of environments, of which only one and two are made."""
    return scaled(_tree(target, 1), _tree(target, 2), num_envs)


def scaled(one: MemoryNode, two: MemoryNode, num_envs: int) -> MemoryNode:
    """Continue the growth of a tree from one environment to two; parts that ``two`` lacks are kept as they are."""
    more = {child.name: child for child in two.children}
    own = one.own_bytes if one.shared else one.own_bytes + (two.own_bytes - one.own_bytes) * (num_envs - 1)
    children = tuple(scaled(child, more.get(child.name, child), num_envs) for child in one.children)
    return replace(one, own_bytes=own, children=children, blocks=())


def _tree(target: Target, num_envs: int) -> MemoryNode:
    with closing(target.make(num_envs)) as subject:
        play(subject, _FEWEST_STEPS)
        return subject.memory()
