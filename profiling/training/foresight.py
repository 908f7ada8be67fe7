"""How well does ``free_motion`` foretell what the simulator does? Both look ahead from the same states of random play.

A death counts as foretold if both see the ninja die; early ones happen in the first third of the frames. Displacements
are those of motions in which neither sees it die, in shares of the distance at top speed.

    python -m profiling.training.foresight --levels pack.txt
"""

import numpy as np
import tyro

from nclone_env.config import EnvironmentConfig
from nclone_env.env import NPlusPlusVectorEnv
from nclone_env.level import resolve
from nclone_env.obs.spec import ACTION_OUTCOME, FREE_MOTION, columns
from profiling.measure import describe

_FREE, _SIMULATED = columns(FREE_MOTION), columns(ACTION_OUTCOME)
_EARLY = 2 / 3  # share of the frames that are left
_GOES_ON = 0.85  # probability that an action is played once more
_MOVES = ("early_x", "early_y", "late_x", "late_y")


def play(levels: tuple[str, ...], frames: int, steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, 10) and (n, 8): the rows of all actions in both, from an episode at a time of each level."""
    draw, count, free, simulated = np.random.default_rng(seed), sum(len(resolve(name)) for name in levels), [], []
    config = EnvironmentConfig(levels=levels, paths="doors", observations=("free_motion", "action_outcomes"))
    config = config.replace(observation={"outcome_frames": frames})
    envs = NPlusPlusVectorEnv(config, count, autoreset_mode="SameStep", num_threads=1)
    envs.reset(seed=seed, options={"level": list(range(count))})
    actions = draw.integers(0, 6, count)
    for _ in range(steps):
        actions = np.where(draw.random(count) < _GOES_ON, actions, draw.integers(0, 6, count))
        observations = envs.step(actions)[0]
        free.append(observations["free_motion"].copy())
        simulated.append(observations["action_outcomes"].copy())
    envs.close()
    return np.concatenate(free).reshape(-1, len(_FREE)), np.concatenate(simulated).reshape(-1, len(_SIMULATED))


def _share(which: np.ndarray, of: np.ndarray) -> str:
    return f"{which[of].mean():.1%}" if of.any() else "none"


def main(levels: tuple[str, ...], frames: int = 90, steps: int = 120, seed: int = 0) -> None:
    """Print the shares of deaths that are foretold, and of foretold deaths that come, and the errors of displacements.

    Args:
        levels: to play.
        frames: frames to look ahead.
        steps: random steps on each level.
        seed: of the play.
    """
    free, simulated = play(levels, frames, steps, seed)
    said, come = free[:, _FREE.death] > 0, simulated[:, _SIMULATED.death] > 0
    early = simulated[:, _SIMULATED.death] > _EARLY
    print(describe())
    print(f"{come.mean():.1%} of {len(free):,} motions end in a death")
    print(f"{_share(said, come)} of these are foretold, of the early ones {_share(said, early)}")
    print(f"{_share(come, said)} of those foretold come")
    for name in _MOVES:
        errors = free[:, getattr(_FREE, name)] - simulated[:, getattr(_SIMULATED, name)]
        print(f"{name}: off by {abs(errors[~said & ~come]).mean():.1%}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
