"""Bytes of the worlds of environments, part by part, after random play in same-step mode.

Each argument is a level set or a file of levels. A world takes what its level and the next one need, so the figure
depends on the mix of the levels.
"""

from __future__ import annotations

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env import NPlusPlusVectorEnv
from nclone_env.game import NUM_ACTIONS
from profiling.measure import basic_sets, describe


def bytes_of_worlds(levels: str | tuple[str, ...], num_envs: int, frames: int) -> dict[str, float]:
    """Return the bytes of an environment for each array of the worlds, after so many frames."""
    envs = NPlusPlusVectorEnv(levels=levels, num_envs=num_envs, observations="game_state", autoreset_mode="SameStep")
    random = np.random.default_rng(0)
    envs.reset(seed=0)
    for _ in range(frames // envs.config.frame_skip):
        envs.step(random.integers(NUM_ACTIONS, size=num_envs))
    sizes = {name: array.nbytes / num_envs for name, array in envs.worlds._asdict().items()}
    envs.close()
    return sizes


def main(levels: Positional[tuple[str, ...]] = (), num_envs: int = 1024, frames: int = 4000) -> None:
    """Print a row for each argument."""
    print(describe())
    for source in levels or basic_sets():
        sizes = bytes_of_worlds(source, num_envs, frames)
        parts = "  ".join(f"{name} {size:,.0f}" for name, size in sizes.items())
        print(f"{source[-40:]:40}{sum(sizes.values()):>9,.0f}  {parts}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
