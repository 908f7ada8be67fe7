"""How often ``action_mask`` masks in random play: share of the observations, by level set and frame_skip.

64 environments for each row; an action is held for 4 steps. Ended episodes, where only action 0 is left, do not count.
"""

from __future__ import annotations

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode

from nclone_env import Action, NPlusPlusVectorEnv
from profiling.contracts import LEVELS
from profiling.measure import describe

NUM_ENVS, HOLD = 64, 4


def masked_share(level: str, frame_skip: int, steps: int) -> np.ndarray:
    """Return (A + 1,): the share of observations that mask each of the A actions, and that mask any."""
    envs = NPlusPlusVectorEnv(
        None,
        NUM_ENVS,
        levels=level,
        observations="action_mask",
        frame_skip=frame_skip,
        max_frames=1200,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    draw, total = np.random.default_rng(0), np.zeros(len(Action) + 1)
    observations, _ = envs.reset(seed=0)
    for _ in range(steps // HOLD):
        actions = draw.integers(0, len(Action), NUM_ENVS)
        for _ in range(HOLD):
            masked = observations["action_mask"] == 0
            total[:-1] += masked.mean(axis=0)
            total[-1] += masked.any(axis=1).mean()
            observations = envs.step(actions)[0]
    envs.close()
    return total / (steps // HOLD * HOLD)


def main(levels: tuple[str, ...] = LEVELS, steps: int = 500) -> None:
    """Print a row for each level set and frame_skip.

    Args:
        levels: level sets, one or more rows each.
        steps: steps of each environment.
    """
    print(describe())
    print(f"share of observations that mask, % of {NUM_ENVS} x {steps}")
    print(f"{'levels':<28}{'frame_skip':>10}{'any':>8}" + "".join(f"{action.name:>12}" for action in Action))
    for level in levels:
        for frame_skip in (1, 4):
            share = masked_share(level, frame_skip, steps) * 100
            name = level.rsplit("/", 1)[-1]
            print(f"{name:<28}{frame_skip:>10}{share[-1]:>8.2f}" + "".join(f"{value:>12.2f}" for value in share[:-1]))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
