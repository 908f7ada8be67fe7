"""Does a warm start help? Success of PPO alone and after cloning, with and without the penalty, same timesteps.

Each level is trained on its own, from one demonstration: its known solution, or a recording. Without the shaping reward
there is nothing to learn from until the exit is found by chance, so PPO alone fails on long levels. A row is the mean
over the seeds; then come the figures of each seed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tyro

from nclone_env.config import RewardConfig
from nclone_env.train import CloneConfig, Hooks, TrainConfig, evaluate, train
from nclone_env.train.runs.warm_start import WarmStart
from profiling.measure import describe, timed

VARIANTS = {"PPO alone": None, "warm start, no penalty": 0.0, "warm start": CloneConfig().kl_coef}
"""Name to the coefficient of the KL divergence from the clone; None: no warm start."""


class Outcome(NamedTuple):
    """Result of a run."""

    sampled: float
    """Success rate of 100 episodes with sampled actions."""
    argmax: float
    """Whether the most probable actions win, 0 or 1."""
    clone: float
    """Success rate of 100 episodes of the clone itself before PPO, nan without one."""
    seconds: float
    """Seconds of the whole run, cloning included."""


def play(config: TrainConfig) -> Outcome:
    """Train and evaluate."""
    clones: list[float] = []

    def remember(started: WarmStart) -> None:
        clones.append(success(started.cloning.policy, config, "sampled"))

    result, seconds = timed(lambda: train(config, Hooks(on_warm_start=remember)))
    rates = [success(result.policy, config, mode) for mode in ("sampled", "argmax")]
    return Outcome(*rates, clones[0] if clones else float("nan"), seconds)


def success(policy, config: TrainConfig, mode) -> float:
    """Return the success rate of a policy on the level of a run."""
    (result,) = evaluate(policy, config.evaluated_environment, mode, 100 if mode == "sampled" else 1, seed=1)
    return result.success_rate


def main(
    levels: tuple[str, ...] = ("hazards/05-slalom", "jumps/05-tower"),
    demonstrations: tuple[str, ...] = (),
    seeds: int = 3,
    timesteps: int = 300_000,
    max_frames: int = 1200,
    shaping: float = 0.0,
    num_threads: int | None = None,
) -> None:
    """Run all variants and print a table.

    Args:
        levels: levels to train on, one run each.
        demonstrations: for each level a recording, or "planned" for one by the planner; by default known solutions.
        seeds: runs of each variant.
        timesteps: environment steps of a run.
        max_frames: time limit of an episode in frames.
        shaping: weight of the shaping reward.
        num_threads: threads of a run; by default one per core.
    """
    print(describe())
    print(f"{timesteps:,} timesteps, shaping {shaping:g}, {seeds} seeds")
    print(f"{'level':<30}{'variant':<26}{'clone':>7}{'sampled':>9}{'argmax':>8}{'seconds':>9}  sampled, each seed")
    for level, demonstration in zip(levels, demonstrations or levels, strict=True):
        for name, coefficient in VARIANTS.items():
            outcomes = []
            for seed in range(seeds):
                with tempfile.TemporaryDirectory() as folder:
                    config = TrainConfig.of(
                        levels=(level,),
                        warm_start=() if coefficient is None else (demonstration,),
                        clone_kl_coef=coefficient or 0.0,
                        total_timesteps=timesteps,
                        max_frames=max_frames,
                        reward=RewardConfig(shaping=shaping),
                        seed=seed,
                        num_threads=num_threads,
                        output=Path(folder),
                    )
                    outcomes.append(play(config))
            means = Outcome(*np.mean(outcomes, axis=0))
            each = " ".join(f"{outcome.sampled:.0%}" for outcome in outcomes)
            shown = f"{means.clone:>7.0%}" if coefficient is not None else f"{'-':>7}"
            print(
                f"{Path(level).name:<30}{name:<26}{shown}{means.sampled:>9.0%}{means.argmax:>8.0%}"
                f"{means.seconds:>9.0f}  {each}",
                flush=True,
            )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
