"""``nclone-env evaluate``: evaluate the policy of a checkpoint."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from nclone_env._files import write_file
from nclone_env.config import EnvironmentConfig
from nclone_env.env.create import create_environment
from nclone_env.level.solutions import known_solutions
from nclone_env.replay.video import write_video
from nclone_env.train import require_training_extra

if TYPE_CHECKING:
    from nclone_env.train.evaluate import LevelResult
    from nclone_env.train.policy import ActorCritic


def evaluate(
    checkpoint: tyro.conf.Positional[Path],
    levels: tuple[str, ...] = (),
    episodes: int = 100,
    seed: int = 0,
    video: bool = True,
    output: Path | None = None,
) -> int:
    """Print the success rate of a checkpoint's policy on each level next to a random baseline.

    Args:
        checkpoint: file written by ``train``, or the folder of a run: its latest checkpoint.
        levels: levels to evaluate on; the training levels by default.
        episodes: number of episodes per level.
        seed: seed of the environments and of sampled and random actions.
        video: write a video of one episode.
        output: output folder; the folder of the checkpoint by default.

    Returns:
        The exit status, 0.
    """
    require_training_extra()
    from nclone_env.train.checkpoint import load_checkpoint, restore_configs, restore_policy
    from nclone_env.train.folder import checkpoint_file

    checkpoint = checkpoint_file(checkpoint)
    content = load_checkpoint(checkpoint)
    policy = restore_policy(content, checkpoint)
    _, environment = restore_configs(content, checkpoint)
    if levels:
        environment = environment.replace(levels=levels)
    evaluate_and_report(policy, environment, output or checkpoint.parent, episodes, seed, video)
    return 0


def evaluate_and_report(
    policy: ActorCritic, environment: EnvironmentConfig, folder: Path, episodes: int, seed: int, video: bool
) -> None:
    """Evaluate a policy, print the table of success rates, and save the table and a video to ``folder``."""
    from nclone_env.train import report
    from nclone_env.train.evaluate import best_episode, compare

    results = compare(policy, environment, episodes, seed)
    known = {name: len(inputs) for name, inputs in known_solutions().items()}
    table = report.success_table(results, known)
    print(table)
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "evaluation.txt", f"{table}\n".encode())
    if video:
        write_episode(best_episode(results), environment, folder / "episode.mp4")
    print(f"saved to {folder}")


def write_episode(episode: LevelResult, environment: EnvironmentConfig, path: Path) -> None:
    """Replay an evaluated episode and save it as a video."""
    from nclone_env.train.report import episode_pictures

    shown = environment.replace(render_mode="rgb_array")
    with closing(create_environment(shown)) as player:
        pictures = episode_pictures(player, episode.level, episode.actions)
        write_video(pictures, path, environment.frames_per_second)
