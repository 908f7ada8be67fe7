"""The arrays that kernels compose the grey pictures from, and their dimensions."""

from typing import NamedTuple

import numpy as np

from nclone_env.memory import MemoryNode, array_group

CELL = 24  # side of a tile and of a full-size stamp, pixels
PHASES = 4  # sub-pixel positions of a reduced stamp, per axis
ORIENTATIONS = 8
STATES = 256
FACES_RIGHT, FACES_LEFT = 0, 4  # orientations of the ninja


class Glyphs(NamedTuple):
    """Read-only arrays for the kernels: the tiles, and the numbers of the K appearances of everything else.

    Attributes:
        tiles: (38, 24, 24) uint8; the grey pixels of each tile.
        appearances: (29, 8, 256) int16; appearance by kind, orientation and state, -1 if nothing is drawn. Row 0 is
            the ninja facing right (orientation 0) or left (4). The row of a door is that of its switch, if it has one.
        door_appearances: (9, 2, 256) int16; appearance of a door by kind, whether it is upright, and state of its
            entity.
    """

    tiles: np.ndarray
    appearances: np.ndarray
    door_appearances: np.ndarray


class Resolution(NamedTuple):
    """Read-only arrays for the kernels: the world at one scale.

    Attributes:
        scale: (2,) float64; width and height of a pixel of the picture, world pixels.
        stamps: (K, P, 2, h, w) uint8; alpha and ink of each appearance. Full size has one phase, P = 1; a smaller one
            has 16, phase 4 * y + x is moved by x and y quarters of a pixel.
        centre: (2,) int64; column and row of a stamp whose upper left corner is the centre at phase 0.
        boxes: (K, 4) int64; first row, end row, first column, end column covered by a stamp in any phase.
        layers: (L, H, W) uint8; the tiles of each level, over the whole world. Empty (L = 0) for a frame at
            full size, where tiles are drawn from their glyphs.
    """

    scale: np.ndarray
    stamps: np.ndarray
    centre: np.ndarray
    boxes: np.ndarray
    layers: np.ndarray

    def memory(self, name: str) -> MemoryNode:
        """Return the bytes of all arrays; every environment shares them."""
        parts = self._asdict()
        parts["static layers"] = parts.pop("layers")
        return array_group(name, parts, shared=True)


class PictureArrays(NamedTuple):
    """The sources of the picture observations of a level set, shared by all environments.

    Attributes:
        glyphs: tiles and appearances, shared by all level sets too.
        player_frame: the world at the scale of that observation.
        global_view: the world at the scale of that observation.
    """

    glyphs: Glyphs
    player_frame: Resolution
    global_view: Resolution

    def memory(self) -> MemoryNode:
        """Return the bytes of all arrays."""
        parts = (
            array_group("glyphs", self.glyphs._asdict(), shared=True),
            self.player_frame.memory("player_frame"),
            self.global_view.memory("global_view"),
        )
        return MemoryNode("pictures", children=tuple(part for part in parts if part.total_bytes))


def _blank(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    array: np.ndarray = np.zeros(shape, dtype=dtype)
    array.flags.writeable = False
    return array


NO_LAYERS = _blank(0, 0, 0)
NO_RESOLUTION = Resolution(
    scale=_blank(0, dtype=np.float64),
    stamps=_blank(0, 0, 2, 0, 0),
    centre=_blank(0, dtype=np.int64),
    boxes=_blank(0, 4, dtype=np.int64),
    layers=NO_LAYERS,
)
NO_PICTURES = PictureArrays(
    Glyphs(
        tiles=_blank(0, CELL, CELL),
        appearances=_blank(0, ORIENTATIONS, STATES, dtype=np.int16),
        door_appearances=_blank(0, 2, STATES, dtype=np.int16),
    ),
    NO_RESOLUTION,
    NO_RESOLUTION,
)
"""Placeholder without pictures, so that kernels are compiled once."""
