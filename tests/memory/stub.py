"""A subject of no game at all, with leaks that can be switched on, and the target that makes it."""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass

import numpy as np

from nclone_env.memory.measure.tree import MemoryNode, array_group
from nclone_env.memory.passes import Target

_malloc = ctypes.CDLL(None).malloc
_malloc.restype = ctypes.c_void_p
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


@dataclass(frozen=True)
class StubTarget(Target):
    """Makes stub subjects; picklable."""

    name = "stub"
    unit = "vector step"
    most_envs = 2000

    leak_bytes: int = 0
    """Python bytes kept for good at every step."""
    leak_native: int = 0
    """Bytes of the C library's allocator kept for good at every step."""
    leak_pages: int = 0
    """4 KB pages outside of all allocators kept for good at every step."""
    leak_every: int = 1
    """Steps between two leaks."""
    touch_late: bool = False
    """Write a part of an owned array at every step, so that its pages are committed one by one."""

    def facts(self) -> tuple[tuple[str, str], ...]:
        return (("levels", "none"),)

    def phases(self, num_envs: int, steps: int) -> dict[str, float]:
        return {"whole step": 1e-3, "work": 1e-3}

    def make(self, num_envs: int) -> StubSubject:
        return StubSubject(self, num_envs)


class StubSubject:
    def __init__(self, target: StubTarget, num_envs: int):
        self.target, self.closed, self.steps = target, False, 0
        self._leaked: list[bytes] = []
        self._mapped: list[mmap.mmap] = []
        self._tiles = np.ones((25, 44), np.uint8)
        self._state = np.ones((num_envs, 3000), np.float64)
        self._late = np.frombuffer(mmap.mmap(-1, 2000 * 4096, _PRIVATE), np.uint8).reshape(2000, 4096)  # fresh pages

    def step(self) -> None:
        self.steps += 1
        target = self.target
        if self.steps % target.leak_every == 0:
            if target.leak_bytes:
                self._leaked.append(bytes(target.leak_bytes))
            if target.leak_native:
                _malloc(ctypes.c_size_t(target.leak_native))
            if target.leak_pages:
                pages = mmap.mmap(-1, 4096 * target.leak_pages, _PRIVATE)
                pages.write(b"x" * len(pages))
                self._mapped.append(pages)
        if target.touch_late:
            self._late[self.steps % 2000] = 1

    def memory(self) -> MemoryNode:
        levels = array_group("levels", {"tiles": self._tiles}, shared=True)
        late = MemoryNode("late", self._late.nbytes, shared=True, blocks=((self._late.ctypes.data, self._late.nbytes),))
        state = array_group("state", {"worlds": self._state}, shared=False)
        return MemoryNode("environment", children=(levels, late, state))

    def close(self) -> None:
        self.closed = True
