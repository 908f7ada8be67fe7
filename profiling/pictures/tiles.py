"""Write ``docs/physics/tiles.png``: the 38 tiles, above as the ninja meets them, below as moving entities do.

Run ``python -m profiling.pictures.tiles`` at the top of the repository.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from nclone_env.game import MAX_TILE
from nclone_env.level.tiles import CONCAVE_ARCS, CONVEX_ARCS, DIAGONALS, EDGE_SIGNS, GRID_EDGES

ZOOM, MARGIN, TITLE = 3, 14, 22  # pixels per pixel of the level, around a tile, above a tile
COLUMNS = 10
WHITE, GREY, BLACK, RED, BLUE, PALE_BLUE = (
    (255, 255, 255), (225, 225, 225), (0, 0, 0), (40, 40, 220), (200, 80, 0), (255, 190, 120)
)  # fmt: skip
# Half-edges in the column order of the tables: T-L T-R M-L M-R B-L B-R, then L-U L-D C-U C-D R-U R-D.
HALF_EDGES = [(12 * i, 12 * j, 12 * i + 12, 12 * j) for j in range(3) for i in range(2)]
HALF_EDGES += [(12 * i, 12 * j, 12 * i, 12 * j + 12) for i in range(3) for j in range(2)]


def solid(tile: int) -> np.ndarray:
    """Return (24 * ZOOM, 24 * ZOOM) bool: the solid region (physics 01, section 2.3)."""
    v, u = (np.indices((24 * ZOOM, 24 * ZOOM)) + 0.5) / ZOOM
    halves = {1: v >= 0, 2: v < 12, 3: u > 12, 4: v > 12, 5: u < 12}
    if tile in halves:
        return halves[tile]
    if tile in DIAGONALS:
        x1, y1, x2, y2 = DIAGONALS[tile]
        return (v - y1) * (x2 - x1) - (u - x1) * (y2 - y1) < 0
    if tile in CONVEX_ARCS or tile in CONCAVE_ARCS:
        x, y, _, _ = CONVEX_ARCS.get(tile) or CONCAVE_ARCS[tile]
        return ((u - x) ** 2 + (v - y) ** 2 < 24 * 24) == (tile in CONVEX_ARCS)
    return np.zeros(v.shape, dtype=bool)


def corner(x: float, y: float) -> tuple[int, int]:
    """Return where a point of a tile lies in its picture."""
    return round(MARGIN + ZOOM * x), round(TITLE + ZOOM * y)


def drawn(tile: int, lattice: bool) -> np.ndarray:
    """Return a tile with its number: its segments, or what it contributes to the lattice."""
    side = 24 * ZOOM
    picture = np.full((side + TITLE + MARGIN, side + 2 * MARGIN, 3), WHITE, dtype=np.uint8)
    picture[TITLE : TITLE + side, MARGIN : MARGIN + side][solid(tile)] = GREY
    cv2.putText(picture, str(tile), (MARGIN, TITLE - 6), cv2.FONT_HERSHEY_SIMPLEX, 0.45, BLACK, 1, cv2.LINE_AA)
    for (x1, y1, x2, y2), sign, value in zip(HALF_EDGES, EDGE_SIGNS[tile], GRID_EDGES[tile], strict=True):
        if lattice and value:
            cv2.line(picture, corner(x1, y1), corner(x2, y2), BLUE if value == 2 else PALE_BLUE, 3)
        elif not lattice and sign:
            cv2.line(picture, corner(x1, y1), corner(x2, y2), BLACK, 2)
            x, y = (x1 + x2) / 2, (y1 + y2) / 2
            free = (x, y + 2.5 * sign) if y1 == y2 else (x + 2.5 * sign, y)
            cv2.line(picture, corner(x, y), corner(*free), BLACK, 1)
    if not lattice and tile in DIAGONALS:
        x1, y1, x2, y2 = DIAGONALS[tile]
        cv2.line(picture, corner(x1, y1), corner(x2, y2), RED, 2, cv2.LINE_AA)
    if not lattice and (tile in CONVEX_ARCS or tile in CONCAVE_ARCS):
        x, y, h, q = CONVEX_ARCS.get(tile) or CONCAVE_ARCS[tile]
        angle = np.linspace(0.0, np.pi / 2, 40)
        points = [corner(x + h * 24 * np.cos(a), y + q * 24 * np.sin(a)) for a in angle]
        cv2.polylines(picture, [np.array(points, dtype=np.int32)], False, RED, 2, cv2.LINE_AA)
    return picture


def sheet(lattice: bool) -> np.ndarray:
    """Return all tiles in rows."""
    pictures = [drawn(tile, lattice) for tile in range(MAX_TILE + 1)]
    pictures += [np.full_like(pictures[0], 255)] * (-len(pictures) % COLUMNS)
    rows = [np.hstack(pictures[i : i + COLUMNS]) for i in range(0, len(pictures), COLUMNS)]
    return np.vstack(rows)


def main() -> None:
    """Write the picture."""
    sheets = [sheet(False), sheet(True)]
    gap = np.full((16, sheets[0].shape[1], 3), GREY, dtype=np.uint8)
    path = Path("docs/physics/tiles.png")
    cv2.imwrite(str(path), np.vstack([sheets[0], gap, sheets[1]]), [cv2.IMWRITE_PNG_COMPRESSION, 9])
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
