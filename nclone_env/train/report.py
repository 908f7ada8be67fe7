"""Human-readable reports of a run: a table of success rates, the learning curve, the pictures of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import fill_file
from nclone_env._optional import optional_module
from nclone_env.train.evaluate import LevelResult
from nclone_env.train.warm_start import WarmStart


def success_table(results: Mapping[Any, Sequence[LevelResult]], known_frames: Mapping[str, int]) -> str:
    """Format success rates as a text table: one row per level and their mean, one column per mode.

    Further columns are the mean frames of an episode in the first mode, the frames of the fastest win, and the frames
    of the shortest known solution.

    Args:
        results: mode to the results of all levels, in the same order for every mode.
        known_frames: frames of the shortest known solution by level name.
    """
    first, *_ = results.values()
    width = max(len("level"), *(len(result.level) for result in first))
    lines = [f"{'level':<{width}}" + "".join(f"{title:>10}" for title in (*results, "frames", "best win", "known"))]
    for same_level in zip(*results.values()):
        rates = "".join(f"{result.success_rate:>10.1%}" for result in same_level)
        wins = [result.best_frames for result in same_level if result.best_frames is not None]
        best = f"{min(wins):>10}" if wins else f"{'-':>10}"
        known = f"{known_frames.get(same_level[0].level, '-'):>10}"
        lines.append(f"{same_level[0].level:<{width}}{rates}{same_level[0].mean_frames:>10.0f}{best}{known}")
    lines.append(f"{'mean':<{width}}" + "".join(f"{mean_success(each):>10.1%}" for each in results.values()))
    lines.append(f"{first[0].episodes} episodes per level; frames: mean of {first[0].mode} episodes")
    return "\n".join(lines)


def mean_success(results: Sequence[LevelResult]) -> float:
    """Return the mean success rate over levels, 0 to 1."""
    return float(np.mean([result.success_rate for result in results]))


def warm_start_text(started: WarmStart) -> str:
    """Return what a warm start used, and what came of it, as lines of text."""
    cloning, (trajectories, _, skipped) = started.cloning, started.demonstrated
    lines = [f"not used: {source}: {reason}" for source, reason in skipped.items()]
    held_out = "" if np.isnan(cloning.held_out_loss) else f", {cloning.held_out_loss:.3f} on held-out steps"
    lines.append(
        f"cloned {len(trajectories)} demonstrations, {cloning.steps:,} steps, in {cloning.epochs} epochs: "
        f"cross-entropy {cloning.loss:.3f} nats{held_out}, {cloning.accuracy:.1%} of the actions most probable"
    )
    return "\n".join(lines)


def write_learning_curve(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """Plot success rate and mean return over timesteps as PNG.

    Args:
        rows: rows of the learning curve.
        path: PNG file to write.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    figure_class = optional_module("matplotlib.figure", "train").Figure  # uses Agg, needs no display
    figure = figure_class(figsize=(8, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    timesteps = [row["timesteps"] for row in rows]
    upper.plot(timesteps, [row["success_rate"] for row in rows], label="mean over levels")
    upper.plot(timesteps, [row["min_success_rate"] for row in rows], label="worst level", linewidth=0.8)
    upper.set(ylabel="success rate of recent episodes", ylim=(-0.02, 1.02))
    upper.legend(loc="lower right")
    lower.plot(timesteps, [row["mean_return"] for row in rows])
    lower.set(xlabel="timesteps", ylabel="mean return of recent episodes")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    fill_file(path, lambda temporary: figure.savefig(temporary, dpi=120, format="png"))


def episode_pictures(environment: Any, level: str, actions: np.ndarray) -> Iterator[np.ndarray]:
    """Replay an episode and yield its pictures (height, width, 3) uint8, starting with the initial state.

    Args:
        environment: a single environment with ``render_mode="rgb_array"``; the caller closes it.
        level: name of the level.
        actions: (k,) actions of the episode.
    """
    environment.reset(options={"level": level})
    yield environment.render()
    for action in actions:
        _, _, terminated, truncated, _ = environment.step(int(action))
        yield environment.render()
        if terminated or truncated:
            return
