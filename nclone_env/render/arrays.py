"""Sizes of the grey pictures, and the arrays that kernels compose them from. Nothing here needs OpenCV."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import WORLD_HEIGHT, WORLD_WIDTH
from nclone_env.memory_tree import MemoryNode, array_group, array_node

CELL = 24  # side of a tile and of a stamp, pixels
GLOBAL_WIDTH, GLOBAL_HEIGHT = 256, 128
SCALE_X, SCALE_Y = WORLD_WIDTH / GLOBAL_WIDTH, WORLD_HEIGHT / GLOBAL_HEIGHT  # 4.125 and 4.6875 world pixels
PHASES = 4  # sub-pixel positions of a global stamp, per axis
GLOBAL_SIDE = 7  # pixels of a global stamp, per axis; the centre lies in pixel GLOBAL_CENTRE
GLOBAL_CENTRE = 3
ORIENTATIONS = 8
STATES = 256
FACES_RIGHT, FACES_LEFT = 0, 4  # orientations of the ninja
ROCKET_FLIES = 16  # first state of a rocket turret whose rocket is under way


class Glyphs(NamedTuple):
    """Read-only arrays for the kernels; K kinds.

    Attributes:
        tiles: (38, 24, 24) uint8; the grey pixels of each tile.
        stamps: (K, 1, 2, 24, 24) uint8; alpha and ink, centred on the corner between pixels 11 and 12.
        global_stamps: (K, 16, 2, 7, 7) uint8; alpha and ink for phase 4 * y + x, centred in pixel 3.
        boxes: (2, K, 4) int64; first row, end row, first column, end column of what a stamp (0) and a global
            stamp (1, over all phases) covers.
        kinds: (29, 8, 256) int16; kind by type, orientation and state, -1 if nothing is drawn. Row 0 is the ninja
            facing right (orientation 0) or left (4). Of doors it is their switch, if they have one.
        door_kinds: (9, 2, 256) int16; kind of a door by type, whether it is upright, and state of its entity.
    """

    tiles: np.ndarray
    stamps: np.ndarray
    global_stamps: np.ndarray
    boxes: np.ndarray
    kinds: np.ndarray
    door_kinds: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of all arrays; every environment shares them."""
        return array_group("glyphs", self._asdict(), shared=True)


class PictureArrays(NamedTuple):
    """What the picture observations of a level set are composed from.

    Attributes:
        glyphs: the glyphs, shared by everything.
        layers: (L, 128, 256) uint8, read-only; the tiles of each level as ``global_view`` shows them.
    """

    glyphs: Glyphs
    layers: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of glyphs and layers."""
        layers = array_node("static layers", self.layers, shared=True)
        return MemoryNode("pictures", children=(self.glyphs.memory(), layers))


def _blank(*shape: int, dtype: type = np.uint8) -> np.ndarray:
    array: np.ndarray = np.zeros(shape, dtype=dtype)
    array.flags.writeable = False
    return array


NO_LAYERS = _blank(0, GLOBAL_HEIGHT, GLOBAL_WIDTH)
NO_PICTURES = PictureArrays(
    Glyphs(
        tiles=_blank(0, CELL, CELL),
        stamps=_blank(0, 1, 2, CELL, CELL),
        global_stamps=_blank(0, PHASES * PHASES, 2, GLOBAL_SIDE, GLOBAL_SIDE),
        boxes=_blank(2, 0, 4, dtype=np.int64),
        kinds=_blank(0, ORIENTATIONS, STATES, dtype=np.int16),
        door_kinds=_blank(0, 2, STATES, dtype=np.int16),
    ),
    NO_LAYERS,
)
"""Stands in where no picture is asked for, so that kernels are compiled once."""
