"""Draw all tiles and appearances in grey and colour, and sample observations, on one sheet."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import tyro
from tyro.conf import Positional

from nclone_env.game import REGULAR_DOOR, kind_name
from nclone_env.level.build import build_level
from nclone_env.level.level_set import pack
from nclone_env.level.load import load_level
from nclone_env.render import raster
from nclone_env.render.colour import colour_stamp
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.looks import LOOKS, Appearance, appearance, layers_of
from nclone_env.render.picture import level_picture, world_picture
from nclone_env.render.raster import all_glyphs
from nclone_env.render.shapes import PAINTS, tile_outline
from profiling.pictures.scenes import SAMPLE_LEVEL, pictures_of, put_worlds, write_picture

ZOOM = 3
COLUMNS = 19


def zoomed(picture: np.ndarray, zoom: int = ZOOM) -> np.ndarray:
    """Return (h, w, 3) or grey (h, w) enlarged without smoothing, as RGB."""
    colour = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    return colour.repeat(zoom, axis=0).repeat(zoom, axis=1).astype(np.uint8)


def on_background(shown: Appearance, colours: bool, below: str = "background") -> np.ndarray:
    """Return (24, 24, 3) uint8: an appearance over a plain paint."""
    base = np.array((raster.COLOURS if colours else raster.GREYS)[below], dtype=np.float32)
    picture = np.broadcast_to(base, (24, 24, len(base))).copy()
    if not colours:
        alpha, ink = raster.stamp(layers_of(shown), raster.GREYS)
        return (picture * (1 - alpha[..., None]) + ink + 0.5).astype(np.uint8).repeat(3, axis=2)
    keep, ink, left, top = colour_stamp(shown, 1)
    part = picture[12 + top :, 12 + left :][: len(keep), : keep.shape[1]]
    part[:] = part * keep + ink
    return picture.astype(np.uint8)


def grid(pictures: list[np.ndarray]) -> np.ndarray:
    """Return pictures of one size in rows of 19 with white gaps."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // COLUMNS)
    sheet = np.full((rows * (height + 4), COLUMNS * (width + 4), 3), 255, dtype=np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // COLUMNS * (height + 4), number % COLUMNS * (width + 4)
        sheet[top : top + height, left : left + width] = picture
    return sheet


@functools.cache
def appearances() -> list[Appearance]:
    """Return all appearances that are drawn, by type."""
    found = {appearance(*place): None for place in np.ndindex(len(LOOKS) + 1, 8, 256)}
    return [shown for shown in found if shown is not None]


def sample_observations() -> list[np.ndarray]:
    """Return a player frame, a global view and a colour picture of the scene."""
    levels = pack([load_level(SAMPLE_LEVEL)])
    worlds = put_worlds(levels, [(263.6, 318.2, 3, 1)], frames=30)
    worlds.entity_states[0, np.flatnonzero(levels.arrays.entities["type"] == REGULAR_DOOR)] = 3
    arrays = levels.arrays
    frame, view = np.zeros((128, 128, 1), np.uint8), np.zeros((128, 256, 1), np.uint8)
    pictures = pictures_of(arrays)
    write_player_frame(arrays, worlds, 0, pictures, frame)
    write_global_view(arrays, worlds, 0, pictures, view)
    return [zoomed(frame[..., 0], 4), zoomed(view[..., 0], 4), world_picture(arrays, worlds, 0, 1.5)]


def before_play() -> np.ndarray:
    """Return the picture of a level with all types in a row."""
    entities = [f"{kind_name(kind)} {5 * kind + 12} 48 {kind % 8}" for kind in sorted(LOOKS) if kind]
    return level_picture(build_level(*entities, spawn=(6, 36)).raw)[240:336]


def main(path: Positional[Path] = Path("runs/contact_sheet.png")) -> None:
    """Put all pictures on one sheet and write it.

    Args:
        path: the picture to write.
    """
    solid, background = (np.array(PAINTS[name].colour) for name in ("solid", "background"))
    covered = [raster.coverage([tile_outline(tile)])[..., None] for tile in range(38)]
    colour_tiles = [zoomed(background + part * (solid - background)) for part in covered]
    blocks = [grid([zoomed(tile) for tile in all_glyphs().tiles]), grid(colour_tiles)]
    for colours in (False, True):
        for below in ("background", "solid"):
            blocks.append(grid([zoomed(on_background(item, colours, below)) for item in appearances()]))
    blocks += [*sample_observations(), before_play()]
    width = max(block.shape[1] for block in blocks)
    padded = [np.pad(block, ((0, 12), (0, width - block.shape[1]), (0, 0)), constant_values=255) for block in blocks]
    write_picture(np.vstack(padded), path)
    print(f"{path}: {len(appearances())} appearances of {len(LOOKS)} types")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
