"""Geometry of the 38 tiles: the table from which everything about tiles is derived (physics 01, sections 2.2 to 2.8).

A tile owns up to twelve half-edges of 12 pixels, in the column order
``T-L T-R M-L M-R B-L B-R`` (horizontal: top, middle, bottom; left and right half) and
``L-U L-D C-U C-D R-U R-D`` (vertical: left, centre, right; upper and lower half).
"""

import numpy as np

# Free side of each half-edge: "-" up or left, "+" down or right, "." no edge (section 2.4).
_EDGE_SIGNS = (
    "............ --..++--..++",  # 0 to 1: empty, full block
    "--++..-...+. .-...+..--++ ..--++.-...+ -...+.--++..",  # 2 to 5: half blocks
    "--....--.... --........++ ....++....++ ....++--....",  # 6 to 9: 45 degree slopes
    "--....--.... --........++ ....++....++ ....++--....",  # 10 to 13: quarter moons
    "--....--.... --........++ ....++....++ ....++--....",  # 14 to 17: quarter pipes
    "--....-..... --........+. ....++.....+ ....++.-....",  # 18 to 21: short mild slopes
    "--....--..+. --....-...++ ....++.-..++ ....++--...+",  # 22 to 25: raised mild slopes
    "-.....--.... .-........++ .....+....++ ....+.--....",  # 26 to 29: short steep slopes
    "--..+.--.... --...+....++ .-..++....++ -...++--....",  # 30 to 33: raised steep slopes
    "--.......... ..........++ ....++...... ......--....",  # 34 to 37: glitched: one edge only
)

# Half-edges for moving entities: 0 open, 1 half-solid, 2 solid (section 2.8).
_GRID_EDGES = (
    "000000000000 220022220022",  # 0 to 1: empty, full block
    "222200200020 020002002222 002222020002 200020222200",  # 2 to 5: half blocks
    "220110220110 221001100122 011022011022 100122221001",  # 6 to 9: 45 degree slopes
    "220011220011 220011110022 110022110022 110022220011",  # 10 to 13: quarter moons
    "220110220110 221001100122 011022011022 100122221001",  # 14 to 17: quarter pipes
    "221100200010 221100100020 001122010002 001122020001",  # 18 to 21: short mild slopes
    "220011220021 220011210022 110022120022 110022220012",  # 22 to 25: raised mild slopes
    "200010221100 020001001122 010002001122 100020221100",  # 26 to 29: short steep slopes
    "220021220011 220012110022 120022110022 210022220011",  # 30 to 33: raised steep slopes
    "220000000000 000000000022 000022000000 000000220000",  # 34 to 37: glitched: one edge only
)

# Straight diagonals: start and end, directed so that the free side is on the left in a y-down world.
_DIAGONALS = {  # by the first tile of each group of four
    6: ((0, 24, 24, 0), (0, 0, 24, 24), (24, 0, 0, 24), (24, 24, 0, 0)),
    18: ((0, 12, 24, 0), (0, 0, 24, 12), (24, 12, 0, 24), (24, 24, 0, 12)),
    22: ((0, 24, 24, 12), (0, 12, 24, 24), (24, 0, 0, 12), (24, 12, 0, 0)),
    26: ((0, 24, 12, 0), (12, 0, 24, 24), (24, 0, 12, 24), (12, 24, 0, 0)),
    30: ((12, 24, 24, 0), (0, 0, 12, 24), (12, 0, 0, 24), (24, 24, 12, 0)),
}
DIAGONALS = {first + n: ends for first, group in _DIAGONALS.items() for n, ends in enumerate(group)}

# Quarter circles of radius 24: centre, and the quadrant (h, q) in which the circle lies as seen from the centre.
CONVEX_ARCS = {10: (0, 0, 1, 1), 11: (24, 0, -1, 1), 12: (24, 24, -1, -1), 13: (0, 24, 1, -1)}
CONCAVE_ARCS = {14: (24, 24, -1, -1), 15: (0, 24, 1, -1), 16: (0, 0, 1, 1), 17: (24, 0, -1, 1)}

# Kinds of segment records.
STRAIGHT, CONVEX, CONCAVE = 0, 1, 2


def _digits(rows: tuple[str, ...], values: dict[str, int]) -> np.ndarray:
    table = np.array([[values[character] for character in tile] for row in rows for tile in row.split()], dtype=np.int8)
    table.flags.writeable = False
    return table


EDGE_SIGNS = _digits(_EDGE_SIGNS, {".": 0, "-": -1, "+": 1})
"""(38, 12) int8: sign of each half-edge."""

GRID_EDGES = _digits(_GRID_EDGES, {"0": 0, "1": 1, "2": 2})
"""(38, 12) int8: contribution to the lattice of moving entities."""


def _curves() -> tuple[np.ndarray, np.ndarray]:
    """Return (38,) kind, -1 if the tile has none, and (38, 4) coordinates of the tile's diagonal or arc."""
    kind = np.full(len(EDGE_SIGNS), -1, dtype=np.int16)
    shape = np.zeros((len(EDGE_SIGNS), 4), dtype=np.int16)
    for code, table in ((STRAIGHT, DIAGONALS), (CONVEX, CONVEX_ARCS), (CONCAVE, CONCAVE_ARCS)):
        for tile, numbers in table.items():
            kind[tile], shape[tile] = code, numbers
    return kind, shape


CURVE_KIND, CURVE_SHAPE = _curves()


def _solid_samples() -> np.ndarray:
    """Return (38, 12, 12) bool: whether the middle of each 2 x 2 pixel square of the tile is solid; [tile, y, x]."""
    v, u = np.meshgrid(np.arange(1, 24, 2), np.arange(1, 24, 2), indexing="ij")
    solid = np.zeros((len(EDGE_SIGNS), 12, 12), dtype=bool)
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
