"""What a person sees of a run: a table of success rates, the learning curve, a video of an episode."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import fill_file
from nclone_env.errors import MissingExtraError
from nclone_env.train.evaluate import LevelResult


def success_table(results: Mapping[Any, Sequence[LevelResult]], known_frames: Mapping[str, int]) -> str:
    """Return success rates in percent as text: a line for each level and their mean, a column for each mode.

    Three more columns show the mean frames of an episode of the first mode, the fewest frames of any win, and the
    frames of the shortest known solution.

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
    lines.append(f"{first[0].episodes} episodes of each level; frames: mean of {first[0].mode} episodes")
    return "\n".join(lines)


def mean_success(results: Sequence[LevelResult]) -> float:
    """Return the mean success rate over levels, 0 to 1."""
    return float(np.mean([result.success_rate for result in results]))


def write_learning_curve(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """Draw success rate and mean return over steps as PNG.

    Args:
        rows: the learning curve, as the trainer returns it.
        path: the picture to write.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    figure_class = _optional("matplotlib.figure", "train").Figure  # draws with Agg, needs no display
    figure = figure_class(figsize=(8, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    steps = [row["steps"] for row in rows]
    upper.plot(steps, [row["success_rate"] for row in rows], label="mean of levels")
    upper.plot(steps, [row["lowest_success_rate"] for row in rows], label="worst level", linewidth=0.8)
    upper.set(ylabel="success rate of recent episodes", ylim=(-0.02, 1.02))
    upper.legend(loc="lower right")
    lower.plot(steps, [row["mean_return"] for row in rows])
    lower.set(xlabel="steps of all environments", ylabel="mean return of recent episodes")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    fill_file(path, lambda temporary: figure.savefig(temporary, dpi=120, format="png"))


def episode_pictures(environment: Any, level: str, actions: np.ndarray) -> Iterator[np.ndarray]:
    """Play an episode again and yield its pictures (height, width, 3) uint8, the start first.

    Args:
        environment: a single environment with ``render_mode="rgb_array"``; it stays open.
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


def write_video(pictures: Iterable[np.ndarray], path: Path, rate: float) -> int:
    """Write pictures as an MP4 (H.264) that plays everywhere; return how many there were.

    Args:
        pictures: (height, width, 3) uint8, all of one size; an odd last row or column is left out.
        path: the file to write.
        rate: pictures per second.

    Raises:
        MissingExtraError: if imageio-ffmpeg is not installed.
        ValueError: if there are no pictures.
    """
    ffmpeg = _optional("imageio_ffmpeg", "video")
    iterator = iter(pictures)
    first = next(iterator, None)
    if first is None:
        raise ValueError("pictures: expected at least one, got none")
    height, width = first.shape[0] // 2 * 2, first.shape[1] // 2 * 2
    count = 0

    def write(temporary: Path) -> None:
        nonlocal count
        writer = ffmpeg.write_frames(
            str(temporary),
            (width, height),
            fps=rate,
            codec="libx264",
            macro_block_size=2,
            ffmpeg_log_level="error",
        )
        writer.send(None)
        try:
            for picture in itertools.chain((first,), iterator):
                writer.send(np.ascontiguousarray(picture[:height, :width]))
                count += 1
        finally:
            writer.close()

    fill_file(path, write)
    return count


def _optional(module: str, extra: str) -> Any:
    """Import a module that an extra brings."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0].replace("_", "-")
        raise MissingExtraError(
            f'{name} is needed here and not installed; run: pip install "nclone-env[{extra}]"'
        ) from error
