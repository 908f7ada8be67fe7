"""Scenes for the scripts that draw, and picture files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from nclone_env._files import fill_file
from nclone_env.config import EnvironmentConfig, RenderConfig
from nclone_env.level.level_set import LevelArrays, LevelSet
from nclone_env.render import PictureArrays, picture_arrays
from nclone_env.sim.session import Session
from nclone_env.sim.state import WorldArrays

Ninja = tuple[float, float, int, int]
"""x, y (pixels), state, facing."""


def put_worlds(levels: LevelSet, ninjas: Sequence[Ninja], frames: int = 0) -> WorldArrays:
    """Return a world of the first level for each ninja, which is then put where and how it should be.

    Args:
        levels: the level set.
        ninjas: one for each world.
        frames: frames played before, world k ``frames * (k + 1)`` of them, so that lasers point anywhere.
    """
    session = Session(levels, len(ninjas))
    worlds = session.worlds
    for index, ninja in enumerate(ninjas):
        session.record(bytes(frames * (index + 1)), index, entities=False)
        for name, value in zip(("x", "y", "state", "facing"), ninja, strict=True):
            worlds.ninjas[index][name] = value
    return worlds


def pictures_of(levels: LevelArrays, sizes: RenderConfig | None = None) -> PictureArrays:
    """Return the arrays from which both pictures of levels are composed, by default in the default sizes."""
    observations = ("player_frame", "global_view")
    return picture_arrays(EnvironmentConfig(observations=observations, render=sizes or RenderConfig()), levels)


def write_picture(picture: np.ndarray, path: Path) -> None:
    """Write an RGB or grey picture, (h, w, 3) or (h, w) uint8, as a PNG; make its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    best = [cv2.IMWRITE_PNG_COMPRESSION, 9]
    content = picture[..., ::-1] if picture.ndim == 3 else picture
    fill_file(path, lambda temporary: cv2.imwrite(str(temporary), content, best))
