"""``nclone-env train``: train a policy, then evaluate it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import tyro

from nclone_env.cli.progress import TrainingProgress
from nclone_env.train import require_training_extra
from nclone_env.train.config import TrainConfig


def train(
    config: Annotated[TrainConfig, tyro.conf.arg(name="")],
    resume: Path | None = None,
    episodes: int = 100,
    video: bool = True,
) -> int:
    """Train a policy with PPO, evaluate it against a random baseline, and save the results.

    The run folder contains ``checkpoint.pt``, ``learning_curve.csv``, ``learning_curve.png``,
    ``evaluation.txt``, ``episode.mp4`` and TensorBoard files.

    Args:
        config: configuration of the run.
        resume: checkpoint to continue from.
        episodes: number of evaluation episodes per level.
        video: write a video of one evaluation episode.

    Returns:
        The exit status, 0.
    """
    require_training_extra()
    from nclone_env.cli.evaluate import evaluate_and_report  # requires torch, an optional dependency
    from nclone_env.train import loop, report

    folder = config.run_folder
    print(f"training on {', '.join(config.levels)} with {config.num_envs} environments; writing to {folder}")
    progress = TrainingProgress(config.total_timesteps)
    started = time.monotonic()
    result = loop.train(
        config,
        resume=resume,
        on_update=progress,
        on_warm_start=lambda started: print(report.warm_start_text(started), flush=True),
    )
    progress.finish()
    reason = "every level solved" if result.solved else "total_timesteps reached"
    print(f"{reason} after {result.counters.timesteps:,} timesteps, {time.monotonic() - started:.0f} s")
    report.write_learning_curve(result.curve, folder / "learning_curve.png")
    evaluate_and_report(result.policy, config.environment(), folder, episodes, config.seed, video)
    return 0
