"""Write ``runs/contact_sheet.png``: all tiles and appearances in grey and colour, sample observations.

Run ``python -m profiling.contact_sheet`` at the top of the repository.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from tests.render.fake import bordered, make_levels, make_worlds

from nclone_env.constants import NINJA
from nclone_env.render import raster
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs, static_layers
from nclone_env.render.picture import world_picture
from nclone_env.render.shapes import ENTITY_LAYERS, PAINTS, POSTURES, Layer, ninja_layers, tile_outline

ZOOM = 3
COLUMNS = 19
Inks = dict[str, tuple[int, ...]]


def zoomed(picture: np.ndarray, zoom: int = ZOOM) -> np.ndarray:
    """Return (h, w, 3) or grey (h, w) enlarged without smoothing, as RGB."""
    colour = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=2)
    return colour.repeat(zoom, axis=0).repeat(zoom, axis=1).astype(np.uint8)


def on_background(layers: tuple[Layer, ...], colours: bool, below: str = "background") -> np.ndarray:
    """Return (24, 24, 3) uint8: layers over a plain paint."""
    inks = raster.COLOURS if colours else raster.GREYS
    alpha, ink = raster.stamp(layers, inks)
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


def appearances() -> list[tuple[Layer, ...]]:
    """Return the layers of every entity state and ninja posture, both facings."""
    result = [ENTITY_LAYERS[kind][state] for kind in sorted(ENTITY_LAYERS)[:4] for state in ENTITY_LAYERS[kind]]
    return result + [ninja_layers(state, facing) for state in POSTURES for facing in (-1, 1)]


def sample_observations() -> list[np.ndarray]:
    """Return a player frame, a global view and a colour picture of one made-up scene."""
    tiles = np.zeros((23, 42), dtype=np.uint8)
    tiles[14:, :] = 1
    tiles[13, 4:9] = (8, 1, 1, 9, 0)
    tiles[12:14, 20:24] = ((12, 1, 1, 13), (1, 1, 1, 1))
    tiles[0:5, 30:] = 1
    tiles[5, 30:34] = (14, 6, 18, 22)
    tiles[8:10, 12:30] = 0
    tiles[9, 26:32] = (2, 4, 10, 11, 16, 17)
    entities = [(24.0 * (4 + 2 * k), 240.0 if k % 2 else 216.0, 2) for k in range(14)]
    entities += [(540.0 + 12 * k, 354.0, 1) for k in range(4)] + [(264.0, 354.0, 1), (288.0, 354.0, 21)]
    entities += [(324.0, 348.0, 3), (96.0, 348.0, 3), (384.0, 300.0, 4), (222.0, 330.0, 4), (240.0, 294.0, 2)]
    levels = make_levels([bordered(tiles)], [entities])
    states = [0] * 18 + [0, 1, 0, 1, 0, 1, 0]
    worlds = make_worlds([(263.6, 318.2, 0, 3, 1)], [states])
    frame, view = np.zeros((128, 128, 1), np.uint8), np.zeros((128, 256, 1), np.uint8)
    write_player_frame(levels, worlds, 0, glyphs(), frame)
    write_global_view(levels, static_layers(levels), worlds, 0, glyphs(), view)
    return [zoomed(frame[..., 0], 4), zoomed(view[..., 0], 4), world_picture(levels, worlds, 0, 1.5)]


def main() -> None:
    """Put everything on one sheet and write it."""
    solid, background = (np.array(PAINTS[name].colour) for name in ("solid", "background"))
    covered = [raster.coverage([tile_outline(tile)])[..., None] for tile in range(38)]
    colour_tiles = [zoomed(background + part * (solid - background)) for part in covered]
    blocks = [grid([zoomed(tile) for tile in glyphs().tiles]), grid(colour_tiles)]
    for colours in (False, True):
        for below in ("background", "solid"):
            blocks.append(grid([zoomed(on_background(item, colours, below)) for item in appearances()]))
    blocks += sample_observations()
    width = max(block.shape[1] for block in blocks)
    padded = [np.pad(block, ((0, 12), (0, width - block.shape[1]), (0, 0)), constant_values=255) for block in blocks]
    path = Path("runs/contact_sheet.png")
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".part.png")
    cv2.imwrite(str(temporary), np.vstack(padded)[..., ::-1])
    temporary.replace(path)
    print(f"{path}: {len(appearances())} appearances, types {sorted(ENTITY_LAYERS)} and the ninja ({NINJA})")


if __name__ == "__main__":
    main()
