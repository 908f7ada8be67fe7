"""A vector environment of no game at all, with a leak that can be switched on."""

from __future__ import annotations

import mmap

import numpy as np

from nclone_env.env.compiled.records import PLAYING, TIMED_OUT, WON
from nclone_env.memory_tree import MemoryNode, array_group


class StubVectorEnv:
    """Follows the interface of the vector environment: reset, step, memory, close.

    Args:
        num_envs: environments in the batch.
        leak_bytes: Python bytes kept for good at every step.
        leak_pages: 4 KB pages outside Python's allocators kept for good at every step.
        jump_at: step at which 100,000 bytes are taken once and kept.
        episode: steps of an episode; every second episode is a success.
    """

    def __init__(self, num_envs: int, leak_bytes: int = 0, leak_pages: int = 0, jump_at: int = -1, episode: int = 50):
        self.num_envs = num_envs
        self.closed = False
        self.actions: list[np.ndarray] = []
        self.record_actions = False
        self._leak_bytes, self._jump_at, self._episode = leak_bytes, jump_at, episode
        self._leaked: list[bytes] = []
        self._mapped: list[mmap.mmap] = []
        self._leak_pages = leak_pages
        self._tiles = np.ones((25, 44), np.uint8)
        self._worlds = np.ones((num_envs, 40), np.float64)
        self._observations = np.ones((num_envs, 30), np.float32)
        self._steps = 0
        self.level_names = ("stub",)

    def reset(self, *, seed: int | None = None) -> tuple[dict[str, np.ndarray], dict]:
        self._steps = 0
        return {"game_state": self._observations}, {}

    def step(self, actions: np.ndarray) -> tuple:
        if self.record_actions:
            self.actions.append(np.array(actions))
        self._steps += 1
        if self._leak_bytes:
            self._leaked.append(bytes(self._leak_bytes))
        if self._leak_pages:
            pages = mmap.mmap(-1, 4096 * self._leak_pages)
            pages.write(b"x" * len(pages))
            self._mapped.append(pages)
        if self._steps == self._jump_at:
            self._leaked.append(bytes(100_000))
        done = np.full(self.num_envs, self._steps % self._episode == 0)
        success = done & (np.arange(self.num_envs) % 2 == 0)
        info = {"outcome": np.where(success, WON, np.where(done, TIMED_OUT, PLAYING))}
        return (
            {"game_state": self._observations},
            np.zeros(self.num_envs),
            done,
            np.zeros(self.num_envs, bool),
            info,
        )

    def memory(self) -> MemoryNode:
        levels = array_group("levels", {"tiles": self._tiles}, shared=True)
        state = array_group("state", {"worlds": self._worlds, "observations": self._observations}, shared=False)
        return MemoryNode("environment", children=(levels, state))

    def close(self) -> None:
        self.closed = True
