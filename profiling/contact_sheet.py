"""Write ``runs/contact_sheet.png``: all tiles and appearances in grey and colour, sample observations.

Run ``python -m profiling.contact_sheet`` at the top of the repository.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from nclone_env.kinds import REGULAR_DOOR
from nclone_env.level.formats.entity_lines import format_entity
from nclone_env.level.raw import RawLevel, Record
from nclone_env.render import raster
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs
from nclone_env.render.looks import LOOKS, Appearance, appearance, layers_of
from nclone_env.render.picture import level_picture, world_picture
from nclone_env.render.shapes import PAINTS, tile_outline
from tests.render.scenes import make_levels, pictures_of, put_worlds

ZOOM = 3
COLUMNS = 19
Inks = dict[str, tuple[int, ...]]


def zoomed(picture: np.ndarray, zoom: int = ZOOM) -> np.ndarray:
    """Return (h, w, 3) or grey (h, w) enlarged without smoothing, as RGB."""
    colour = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    return colour.repeat(zoom, axis=0).repeat(zoom, axis=1).astype(np.uint8)


def on_background(shown: Appearance, colours: bool, below: str = "background") -> np.ndarray:
    """Return (24, 24, 3) uint8: an appearance over a plain paint."""
    inks = raster.COLOURS if colours else raster.GREYS
    alpha, ink = raster.stamp(layers_of(shown), inks)
    base = np.array(inks[below], dtype=np.float32)
    return np.broadcast_to(base * (1 - alpha[..., None]) + ink + 0.5, (24, 24, 3)).astype(np.uint8)


def grid(pictures: list[np.ndarray]) -> np.ndarray:
    """Return pictures of one size in rows of 19 with white gaps."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // COLUMNS)
    sheet = np.full((rows * (height + 4), COLUMNS * (width + 4), 3), 255, dtype=np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // COLUMNS * (height + 4), number % COLUMNS * (width + 4)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def appearances() -> list[Appearance]:
    """Return everything that is drawn, by type."""
    found = {appearance(*place): None for place in np.ndindex(len(LOOKS) + 1, 8, 256)}
    return [shown for shown in found if shown is not None]


def sample_level() -> tuple[np.ndarray, list[str]]:
    """Return the (23, 42) tiles and the entity lines of one made-up scene with every type that is simulated."""
    tiles = np.zeros((23, 42), dtype=np.uint8)
    tiles[14:, :] = 1
    tiles[13, 4:9] = (8, 1, 1, 9, 0)
    tiles[12:14, 20:24] = ((12, 1, 1, 13), (1, 1, 1, 1))
    tiles[0:5, 30:] = 1
    tiles[5, 30:34] = (14, 6, 18, 22)
    tiles[9, 26:32] = (2, 4, 10, 11, 16, 17)
    records = [(3, 54, 58, 0, 0), (3, 16, 58, 0, 0), (4, 64, 50, 0, 0), (4, 37, 55, 0, 0)]
    records += [(2, 4 * (4 + 2 * k), 40 if k % 2 else 36, 0, 0) for k in range(14)]
    records += [(1, 88 + 2 * k, 59, 0, 0) for k in range(4)] + [(1, 44, 59, 0, 0), (21, 48, 59, 0, 0)]
    records += [(5, 56, 34, 0, 0), (6, 60, 34, 0, 0), (7, 72, 50, 0, 0), (8, 66, 32, 2, 0), (9, 76, 50, 0, 0)]
    records += [(10, 36, 46 + 4 * k, 6 + k, 0) for k in range(2)] + [(11, 34 + 5 * k, 30, k, 0) for k in range(8)]
    records += [(14, 50, 54, 0, 0), (26, 58, 42, 4, 0), (16, 76, 59, 0, 0), (17, 44, 44, 0, 0), (24, 42, 38, 0, 0)]
    records += [(20, 30, 50, 2, 0), (20, 100, 50, 0, 0), (25, 66, 40, 0, 0), (28, 50, 46, 0, 0)]
    return tiles, [format_entity(Record(*record)) for record in records]


def sample_observations() -> list[np.ndarray]:
    """Return a player frame, a global view and a colour picture of the scene."""
    levels = make_levels(sample_level())
    worlds = put_worlds(levels, [(263.6, 318.2, 0, 3, 1)])
    worlds.entity_states[0, np.flatnonzero(levels.arrays.entities["type"] == REGULAR_DOOR)] = 3
    arrays = levels.arrays
    frame, view = np.zeros((128, 128, 1), np.uint8), np.zeros((128, 256, 1), np.uint8)
    pictures = pictures_of(arrays)
    write_player_frame(arrays, worlds, 0, pictures, frame)
    write_global_view(arrays, worlds, 0, pictures, view)
    return [zoomed(frame[..., 0], 4), zoomed(view[..., 0], 4), world_picture(arrays, worlds, 0, 1.5)]


def before_play() -> np.ndarray:
    """Return the picture of a level with all types in a row."""
    records = [(0, 6, 36, 0, 0)] + [(kind, 5 * kind + 12, 48, kind % 8, 0) for kind in sorted(LOOKS) if kind]
    return level_picture(RawLevel(np.zeros((23, 42), np.uint8), np.array(records)))[240:336]


def main() -> None:
    """Put everything on one sheet and write it."""
    solid, background = (np.array(PAINTS[name].colour) for name in ("solid", "background"))
    covered = [raster.coverage([tile_outline(tile)])[..., None] for tile in range(38)]
    colour_tiles = [zoomed(background + part * (solid - background)) for part in covered]
    blocks = [grid([zoomed(tile) for tile in glyphs().tiles]), grid(colour_tiles)]
    for colours in (False, True):
        for below in ("background", "solid"):
            blocks.append(grid([zoomed(on_background(item, colours, below)) for item in appearances()]))
    blocks += [*sample_observations(), before_play()]
    width = max(block.shape[1] for block in blocks)
    padded = [np.pad(block, ((0, 12), (0, width - block.shape[1]), (0, 0)), constant_values=255) for block in blocks]
    path = Path("runs/contact_sheet.png")
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".part.png")
    cv2.imwrite(str(temporary), np.vstack(padded)[..., ::-1])
    temporary.replace(path)
    print(f"{path}: {len(appearances())} appearances of {len(LOOKS)} types")


if __name__ == "__main__":
    main()
