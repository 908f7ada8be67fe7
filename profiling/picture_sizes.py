"""Draw player frames of two levels in three presets, and global views in three sizes, on one sheet."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.config import RenderConfig
from nclone_env.level.level_set import LevelArrays, pack
from nclone_env.level.load import load_level
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.sim.state import WorldArrays
from profiling.pictures import SAMPLE_LEVEL, pictures_of, put_worlds, write_picture

Scene = tuple[LevelArrays, WorldArrays]
BUILT_IN = "hazards/05-slalom"
PRESETS = (128, 84, 64)
VIEW_SIZES = ((64, 128), (128, 256), (300, 528))
FRAME_HEIGHT, VIEW_HEIGHT, GAP = 504, 600, 8


def sample() -> Scene:
    """Return the level of the contact sheet after half a second, in which its lasers have turned."""
    levels = pack([load_level(SAMPLE_LEVEL)])
    return levels.arrays, put_worlds(levels, [(263.6, 318.2, 3, 1)], frames=30)


def built_in() -> Scene:
    """Return a built-in level at its start."""
    levels = pack([load_level(BUILT_IN)])
    return levels.arrays, put_worlds(levels, [(*levels.levels[0].spawn, 0, 1)])


def player_frame(scene: Scene, side: int) -> np.ndarray:
    """Return the player frame of a preset."""
    frame = np.zeros((side, side, 1), np.uint8)
    write_player_frame(*scene, 0, pictures_of(scene[0], RenderConfig(side)), frame)
    return frame[..., 0]


def global_view(scene: Scene, size: tuple[int, int]) -> np.ndarray:
    """Return the global view in a size."""
    view = np.zeros((*size, 1), np.uint8)
    write_global_view(*scene, 0, pictures_of(scene[0], RenderConfig(global_view_size=size)), view)
    return view[..., 0]


def enlarged(picture: np.ndarray, height: int) -> np.ndarray:
    """Return a picture of some height, its pixels as blocks, with a gap on its right and below."""
    width = round(picture.shape[1] * height / picture.shape[0])
    return np.pad(cv2.resize(picture, (width, height), interpolation=cv2.INTER_NEAREST), ((0, GAP), (0, GAP)))


def main(path: Positional[Path] = Path("runs/picture_sizes.png")) -> None:
    """Put all pictures on one sheet and write it.

    Args:
        path: the picture to write.
    """
    rows = []
    for scene in (sample(), built_in()):
        rows.append(np.hstack([enlarged(player_frame(scene, side), FRAME_HEIGHT) for side in PRESETS]))
        rows.append(np.hstack([enlarged(global_view(scene, size), VIEW_HEIGHT) for size in VIEW_SIZES]))
    width = max(row.shape[1] for row in rows)
    write_picture(np.vstack([np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]), path)
    print(f"{path}: presets {PRESETS}, global views {VIEW_SIZES}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
