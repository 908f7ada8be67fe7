"""Geometry of the 38 tiles: the table from which everything about tiles is derived (physics 01, sections 2.2 to 2.8).

A tile owns up to twelve half-edges of 12 pixels, in the column order
``T-L T-R M-L M-R B-L B-R`` (horizontal: top, middle, bottom; left and right half) and
``L-U L-D C-U C-D R-U R-D`` (vertical: left, centre, right; upper and lower half).
"""

from __future__ import annotations

import numpy as np

from nclone_env.constants import MAX_TILE

# Free side of each half-edge: "-" up or left, "+" down or right, "." no edge (section 2.4).
_EDGE_SIGNS = (
    "............",  # 0 empty
    "--..++--..++",  # 1 full block
    "--++..-...+.",  # 2 half blocks
    ".-...+..--++",  # 3
    "..--++.-...+",  # 4
    "-...+.--++..",  # 5
    "--....--....",  # 6 45 degree slopes
    "--........++",  # 7
    "....++....++",  # 8
    "....++--....",  # 9
    "--....--....",  # 10 quarter moons
    "--........++",  # 11
    "....++....++",  # 12
    "....++--....",  # 13
    "--....--....",  # 14 quarter pipes
    "--........++",  # 15
    "....++....++",  # 16
    "....++--....",  # 17
    "--....-.....",  # 18 short mild slopes
    "--........+.",  # 19
    "....++.....+",  # 20
    "....++.-....",  # 21
    "--....--..+.",  # 22 raised mild slopes
    "--....-...++",  # 23
    "....++.-..++",  # 24
    "....++--...+",  # 25
    "-.....--....",  # 26 short steep slopes
    ".-........++",  # 27
    ".....+....++",  # 28
    "....+.--....",  # 29
    "--..+.--....",  # 30 raised steep slopes
    "--...+....++",  # 31
    ".-..++....++",  # 32
    "-...++--....",  # 33
    "--..........",  # 34 glitched: one edge only
    "..........++",  # 35
    "....++......",  # 36
    "......--....",  # 37
)

# Half-edges for moving entities: 0 open, 1 half-solid, 2 solid (section 2.8).
_GRID_EDGES = (
    "000000000000",  # 0
    "220022220022",  # 1
    "222200200020",  # 2
    "020002002222",  # 3
    "002222020002",  # 4
    "200020222200",  # 5
    "220110220110",  # 6
    "221001100122",  # 7
    "011022011022",  # 8
    "100122221001",  # 9
    "220011220011",  # 10
    "220011110022",  # 11
    "110022110022",  # 12
    "110022220011",  # 13
    "220110220110",  # 14
    "221001100122",  # 15
    "011022011022",  # 16
    "100122221001",  # 17
    "221100200010",  # 18
    "221100100020",  # 19
    "001122010002",  # 20
    "001122020001",  # 21
    "220011220021",  # 22
    "220011210022",  # 23
    "110022120022",  # 24
    "110022220012",  # 25
    "200010221100",  # 26
    "020001001122",  # 27
    "010002001122",  # 28
    "100020221100",  # 29
    "220021220011",  # 30
    "220012110022",  # 31
    "120022110022",  # 32
    "210022220011",  # 33
    "220000000000",  # 34
    "000000000022",  # 35
    "000022000000",  # 36
    "000000220000",  # 37
)

# Straight diagonals: start and end, directed so that the free side is on the left in a y-down world.
DIAGONALS = {
    6: (0, 24, 24, 0),
    7: (0, 0, 24, 24),
    8: (24, 0, 0, 24),
    9: (24, 24, 0, 0),
    18: (0, 12, 24, 0),
    19: (0, 0, 24, 12),
    20: (24, 12, 0, 24),
    21: (24, 24, 0, 12),
    22: (0, 24, 24, 12),
    23: (0, 12, 24, 24),
    24: (24, 0, 0, 12),
    25: (24, 12, 0, 0),
    26: (0, 24, 12, 0),
    27: (12, 0, 24, 24),
    28: (24, 0, 12, 24),
    29: (12, 24, 0, 0),
    30: (12, 24, 24, 0),
    31: (0, 0, 12, 24),
    32: (12, 0, 0, 24),
    33: (24, 24, 12, 0),
}

# Quarter circles of radius 24: centre, and the quadrant (h, q) in which the circle lies as seen from the centre.
CONVEX_ARCS = {10: (0, 0, 1, 1), 11: (24, 0, -1, 1), 12: (24, 24, -1, -1), 13: (0, 24, 1, -1)}
CONCAVE_ARCS = {14: (24, 24, -1, -1), 15: (0, 24, 1, -1), 16: (0, 0, 1, 1), 17: (24, 0, -1, 1)}

# Kinds of segment records.
STRAIGHT, CONVEX, CONCAVE = 0, 1, 2


def _digits(rows: tuple[str, ...], values: dict[str, int]) -> np.ndarray:
    table = np.array([[values[character] for character in row] for row in rows], dtype=np.int8)
    table.flags.writeable = False
    return table


EDGE_SIGNS = _digits(_EDGE_SIGNS, {".": 0, "-": -1, "+": 1})
"""(38, 12) int8: sign of each half-edge."""

GRID_EDGES = _digits(_GRID_EDGES, {"0": 0, "1": 1, "2": 2})
"""(38, 12) int8: contribution to the lattice of moving entities."""


def _curves() -> tuple[np.ndarray, np.ndarray]:
    """Return (38,) kind, -1 if the tile has none, and (38, 4) coordinates of the tile's diagonal or arc."""
    kind = np.full(MAX_TILE + 1, -1, dtype=np.int16)
    shape = np.zeros((MAX_TILE + 1, 4), dtype=np.int16)
    for code, table in ((STRAIGHT, DIAGONALS), (CONVEX, CONVEX_ARCS), (CONCAVE, CONCAVE_ARCS)):
        for tile, numbers in table.items():
            kind[tile], shape[tile] = code, numbers
    return kind, shape


CURVE_KIND, CURVE_SHAPE = _curves()


def _solid_samples() -> np.ndarray:
    """Return (38, 12, 12) bool: whether the middle of each 2 x 2 pixel square of the tile is solid; [tile, y, x]."""
    v, u = np.meshgrid(np.arange(1, 24, 2), np.arange(1, 24, 2), indexing="ij")
    solid = np.zeros((MAX_TILE + 1, 12, 12), dtype=bool)
    solid[1] = True
    solid[2], solid[3], solid[4], solid[5] = v < 12, u > 12, v > 12, u < 12
    for tile, (x1, y1, x2, y2) in DIAGONALS.items():
        solid[tile] = (v - y1) * (x2 - x1) - (u - x1) * (y2 - y1) < 0
    for table, inside in ((CONVEX_ARCS, True), (CONCAVE_ARCS, False)):
        for tile, (x, y, _, _) in table.items():
            solid[tile] = ((u - x) ** 2 + (v - y) ** 2 < 24 * 24) == inside
    solid.flags.writeable = False
    return solid


SOLID_SAMPLES = _solid_samples()
