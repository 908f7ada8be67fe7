"""Streaming pictures past the caches against drawing them in place, for several numbers of environments.

Both environments play in turns in one process, with ``out=`` and the default pictures, 48 KB per environment. The last
column reads every picture after each step, as a network would. *used* is what an environment of this size does.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tyro

from nclone_env import NPlusPlusVectorEnv
from nclone_env._table import table
from nclone_env.env.compiled import step_arrays
from profiling.measure import describe

_STEPS = 4096  # of environments, in a turn
_ACTIONS = np.random.default_rng(0).integers(0, 6, (64, 8192))
_USED = step_arrays.STREAMED_BYTES


class Player:
    """A vector environment that streams or does not."""

    def __init__(self, num_envs: int, num_threads: int, streamed: bool):
        step_arrays.STREAMED_BYTES = 0 if streamed else 1 << 62
        self._env: Any = NPlusPlusVectorEnv(num_envs=num_envs, num_threads=num_threads)
        spaces = self._env.observation_space.spaces
        self._out = {name: np.ones(space.shape, space.dtype) for name, space in spaces.items()}
        self._env.reset(seed=0, out=self._out)

    def speed(self, reads: bool) -> float:
        """Return environment steps/s over a turn."""
        num_envs = self._env.num_envs
        count = max(4, _STEPS // num_envs)
        start = time.perf_counter()
        for step in range(count):
            self._env.step(_ACTIONS[step % 64, :num_envs], out=self._out)
            if reads:
                for array in self._out.values():
                    array.reshape(-1).view(np.uint64).max()
        return count * num_envs / (time.perf_counter() - start)


def row(num_envs: int, num_threads: int, turns: int) -> tuple[str, ...]:
    """Measure one number of environments."""
    players = [Player(num_envs, num_threads, streamed) for streamed in (False, True)]
    plain, reading = (
        np.array([[player.speed(reads) for player in players] for _ in range(turns)]) for reads in (False, True)
    )
    in_place, streamed = np.median(plain, axis=0)
    ratios = (f"{np.median(found[:, 1] / found[:, 0]):.2f}" for found in (plain, reading))
    used = "streamed" if num_envs * 48 * 1024 >= _USED else "in place"
    return f"{num_envs:,}", f"{in_place:,.0f}", f"{streamed:,.0f}", *ratios, used


def main(sizes: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048), num_threads: int = 2, turns: int = 9) -> None:
    """Print the table.

    Args:
        sizes: numbers of environments.
        num_threads: threads of each environment.
        turns: turns of each environment; medians are shown.
    """
    print(describe())
    rows = [row(num_envs, num_threads, turns) for num_envs in sizes]
    titles = ("environments", "in place, steps/s", "streamed, steps/s", "ratio", "ratio if read", "used")
    print("\n".join(table(titles, rows)))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
