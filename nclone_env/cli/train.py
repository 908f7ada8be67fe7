"""The subcommand ``train``: learn, then show how well."""

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
    """Train a policy with PPO, evaluate it beside random actions, and save what came of it.

    The run's folder gets ``checkpoint.pt``, ``learning_curve.csv``, ``learning_curve.png``,
    ``evaluation.txt``, ``episode.mp4`` and TensorBoard files.

    Args:
        config: what to train, and how.
        resume: Checkpoint to continue from.
        episodes: Episodes of each level in the evaluation.
        video: Whether to write a video of an evaluated episode.

    Returns:
        The exit status, 0.
    """
    require_training_extra()
    from nclone_env.cli.evaluate import evaluate_and_report  # these need torch, an optional package
    from nclone_env.train import loop, report

    folder = config.run_folder
    print(f"training on {', '.join(config.levels)} with {config.num_envs} environments; writing to {folder}")
    progress = TrainingProgress(config.total_steps)
    started = time.monotonic()
    result = loop.train(config, resume=resume, on_update=progress)
    progress.finish()
    reason = "every level is solved" if result.solved else "all steps are done"
    print(f"{reason} after {result.counters.steps:,} steps, {time.monotonic() - started:.0f} s")
    report.write_learning_curve(result.curve, folder / "learning_curve.png")
    evaluate_and_report(result.policy, config.environment(), folder, episodes, config.seed, video)
    return 0
