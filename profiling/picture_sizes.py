"""Write ``runs/picture_sizes.png``: the pictures of two levels in three presets, and three sizes of the whole world.

Run ``python -m profiling.picture_sizes`` at the top of the repository.
"""

from __future__ import annotations

import math
from pathlib import Path

import cv2
import numpy as np

from nclone_env.config import RenderConfig
from nclone_env.kinds import LASER_TURRET
from nclone_env.level.level_set import LevelArrays, pack
from nclone_env.level.load import load_level
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.sim.entities.laser.record import BEAM_ANGLE
from nclone_env.sim.state import WorldArrays
from profiling.contact_sheet import sample_level
from tests.render.scenes import make_levels, pictures_of, put_worlds

Scene = tuple[LevelArrays, WorldArrays]
BUILT_IN = "levels/hazards/05-slalom.toml"
PRESETS = (128, 84, 64)
VIEW_SIZES = ((64, 128), (128, 256), (300, 528))
FRAME_HEIGHT, VIEW_HEIGHT, GAP = 504, 600, 8


def lasers() -> Scene:
    """Return the made-up level of the contact sheet with four lasers that point anywhere."""
    tiles, entities = sample_level()
    entities += [f"laser_turret {x} {y}" for x, y in ((26, 20), (60, 46), (100, 36), (150, 50))]
    levels = make_levels((tiles, entities))
    worlds = put_worlds(levels, [(263.6, 318.2, 0, 3, 1)])
    entities = levels.arrays.entities
    for number, entity in enumerate(entities[entities["type"] == LASER_TURRET]):
        worlds.movers[0, entity["mover"]][BEAM_ANGLE] = (0.3, -2.6, 2.2, math.pi)[number]
    return levels.arrays, worlds


def built_in() -> Scene:
    """Return a built-in level at its start."""
    level = load_level(BUILT_IN)
    levels = pack([level])
    return levels.arrays, put_worlds(levels, [(*level.spawn, 0, 0, 1)])


def player_frame(scene: Scene, side: int) -> np.ndarray:
    """Return the player frame of a preset."""
    frame = np.zeros((side, side, 1), np.uint8)
    write_player_frame(*scene, 0, pictures_of(scene[0], RenderConfig.preset(side)), frame)
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


def main() -> None:
    """Put everything on one sheet and write it."""
    rows = []
    for scene in (lasers(), built_in()):
        rows.append(np.hstack([enlarged(player_frame(scene, side), FRAME_HEIGHT) for side in PRESETS]))
        rows.append(np.hstack([enlarged(global_view(scene, size), VIEW_HEIGHT) for size in VIEW_SIZES]))
    width = max(row.shape[1] for row in rows)
    path = Path("runs/picture_sizes.png")
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".part.png")
    cv2.imwrite(str(temporary), np.vstack([np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]))
    temporary.replace(path)
    print(f"{path}: presets {PRESETS}, global views {VIEW_SIZES}")


if __name__ == "__main__":
    main()
