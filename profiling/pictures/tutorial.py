"""Draw the pictures of the tutorial: levels, paths of a trained policy, a learning curve, what the agent is shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np
import tyro
from matplotlib.figure import Figure
from tyro.conf import Positional

import nclone_env
from nclone_env.game import INPUT_OF_ACTION
from nclone_env.level.solutions import known_solutions
from nclone_env.train import LevelResult, TrainConfig, TrainResult, evaluate, train
from profiling.pictures.scenes import write_picture

SET, ALONE, OWN = "first-steps", "first-steps/06-hop", "flight.toml"
RED = (200, 40, 40)


def cropped(picture: np.ndarray, margin: int = 24) -> np.ndarray:
    """Return the part of a picture of a level that is not one solid grey, and a margin."""
    busy = (picture != picture[0, 0]).any(axis=2)
    rows, columns = np.flatnonzero(busy.any(axis=1)), np.flatnonzero(busy.any(axis=0))
    top, left = max(rows[0] - margin, 0), max(columns[0] - margin, 0)
    return picture[top : rows[-1] + margin, left : columns[-1] + margin]


def path_picture(config: nclone_env.EnvironmentConfig, level: str, actions: Sequence[int]) -> np.ndarray:
    """Return the picture of a level with the way of the ninja as a line, (h, w, 3) uint8."""
    env = nclone_env.create_environment(config.replace(levels=level), render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture is not None
    points = [_place(env)]
    for action in actions:
        env.step(int(action))
        points.append(_place(env))
    cv2.polylines(picture := picture.copy(), [np.array(points)], False, RED, 2, cv2.LINE_AA)
    return cropped(picture)


def _place(env: nclone_env.NPlusPlusEnv) -> tuple[int, int]:
    """Return the pixel of the ninja."""
    ninja = env.worlds.ninjas[0]
    return round(ninja["x"]), round(ninja["y"])


def write_paths(results: Sequence[LevelResult], config: nclone_env.EnvironmentConfig, path: Path) -> None:
    """Write the fastest wins on several levels as one picture."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, result in zip(figure.subplots(3, 2).flat, results, strict=True):
        axes.imshow(path_picture(config, result.level, result.actions))
        axes.set_title(f"{result.level}, {result.best_frames} frames", fontsize=8)
        axes.axis("off")
    figure.savefig(path, dpi=110)


def write_curve(result: TrainResult, path: Path) -> None:
    """Write success rate and mean return over the timesteps of a run."""
    steps = [row["timesteps"] / 1000 for row in result.curve]
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    for axes, name, label in zip(
        figure.subplots(1, 2), ("success_rate", "mean_return"), ("success rate of recent episodes", "mean return")
    ):
        axes.plot(steps, [row[name] for row in result.curve])
        axes.set(xlabel="thousand timesteps", ylabel=label, xlim=(0, None), ylim=(0, None))
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def write_observations(path: Path) -> None:
    """Write one moment of a level as three observations."""
    env = nclone_env.create_environment(
        levels="hazards/05-slalom",
        observations=("player_frame", "global_view", "locals"),
        observation={"locals_planes": 3},
        frame_skip=1,
    )
    observation, _ = env.reset(seed=0)
    actions = {int(code): action for action, code in enumerate(INPUT_OF_ACTION)}
    for code in known_solutions()["hazards/05-slalom"][:150]:
        observation, *_ = env.step(actions[code])
    pictures = {
        "player_frame": observation["player_frame"][..., 0],
        "global_view": observation["global_view"][..., 0],
        "locals: solid": observation["locals"][0],
        "deadly": observation["locals"][1],
        "nearer to the objective": observation["locals"][2],
    }
    figure = Figure(figsize=(11, 2.5), layout="constrained")
    for axes, (name, picture) in zip(
        figure.subplots(1, 5, width_ratios=(1, 2, 1, 1, 1)), pictures.items(), strict=True
    ):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
        axes.set_title(name, fontsize=9)
        axes.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=110)


def main(folder: Positional[Path] = Path("docs/tutorial")) -> None:
    """Train for some seconds, then write the pictures.

    Args:
        folder: where they are written; ``flight.toml`` lies there.
    """
    for level, name in ((ALONE, "hop.png"), (str(folder / OWN), "flight.png")):
        env = nclone_env.create_environment(levels=level, render_mode="rgb_array", render={"crop": True})
        env.reset(seed=0)
        picture = env.render()
        assert picture is not None
        write_picture(picture, folder / name)
    with TemporaryDirectory() as runs:
        config = TrainConfig.of(levels=(SET,), total_timesteps=500_000, output=Path(runs))
        result = train(config)
    results = evaluate(result.policy, config.evaluated_environment, "sampled", 50)
    write_paths(results, config.evaluated_environment, folder / "paths.png")
    write_curve(result, folder / "curve.png")
    alone = next(each for each in results if each.level == ALONE)
    write_picture(path_picture(config.evaluated_environment, ALONE, alone.actions), folder / "path.png")
    write_observations(folder / "observations.png")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
