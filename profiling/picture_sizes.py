"""Write ``runs/picture_sizes.png``: the pictures of two levels in three presets, and three sizes of the whole world.

Run ``python -m profiling.picture_sizes`` at the top of the repository.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from nclone_env import EnvironmentConfig, NPlusPlusEnv, RenderConfig

LEVELS = ("profiling/clips/laser_spinner.toml", "profiling/clips/gauss_turret.toml")
STEPS = (60, 105)
PRESETS = (128, 84, 64)
VIEW_SIZES = ((64, 128), (128, 256), (300, 528))
HEIGHT, GAP = 512, 8


def pictures(level: str, steps: int, sizes: RenderConfig) -> list[np.ndarray]:
    """Return the player frame and the global view after some steps without input."""
    env = NPlusPlusEnv(
        EnvironmentConfig(levels=(level,), observations=("player_frame", "global_view"), render=sizes, frame_skip=1)
    )
    observation, _ = env.reset(seed=0)
    for _ in range(steps):
        observation = env.step(0)[0]
    return [observation[name][..., 0] for name in ("player_frame", "global_view")]


def enlarged(picture: np.ndarray) -> np.ndarray:
    """Return a picture as high as a row of the sheet, its pixels as blocks, with a gap on its right."""
    width = round(picture.shape[1] * HEIGHT / picture.shape[0])
    return np.pad(
        cv2.resize(picture, (width, HEIGHT), interpolation=cv2.INTER_NEAREST), ((0, GAP), (0, GAP)), "constant"
    )


def main() -> None:
    """Put everything on one sheet and write it."""
    rows = []
    for level, steps in zip(LEVELS, STEPS, strict=True):
        rows.append(np.hstack([enlarged(pictures(level, steps, RenderConfig.preset(side))[0]) for side in PRESETS]))
        for size in VIEW_SIZES:
            rows.append(enlarged(pictures(level, steps, RenderConfig(global_view_size=size))[1]))
    width = max(row.shape[1] for row in rows)
    padded = [np.pad(row, ((0, GAP), (0, width - row.shape[1]))) for row in rows]
    path = Path("runs/picture_sizes.png")
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".part.png")
    cv2.imwrite(str(temporary), np.vstack(padded))
    temporary.replace(path)
    print(f"{path}: presets {PRESETS}, global views {VIEW_SIZES}")


if __name__ == "__main__":
    main()
