"""The world of segments in plain Python, written from the text of physics 01, sections 2 and 3.

Slow on purpose: no early exit, no culling, every candidate looked at. Squares are products (section 0.3).
"""

import math
from dataclasses import dataclass

from nclone_env.level.tiles import CONCAVE_ARCS, CONVEX_ARCS, DIAGONALS, EDGE_SIGNS


def sq(a: float) -> float:
    return a * a


@dataclass(frozen=True)
class Straight:
    """A directed straight segment; the free side is on its left (section 2.3)."""

    x1: float
    y1: float
    x2: float
    y2: float

    def closest(self, px: float, py: float) -> tuple[bool, float, float]:
        """Section 3.3."""
        ex, ey = self.x2 - self.x1, self.y2 - self.y1
        dx, dy = px - self.x1, py - self.y1
        t = (dx * ex + dy * ey) / (sq(ex) + sq(ey))
        t = max(t, 0.0)
        t = min(t, 1.0)
        return dy * ex - dx * ey < 0, self.x1 + t * ex, self.y1 + t * ey

    def sweep(self, px: float, py: float, mx: float, my: float, rho: float) -> float:
        """Section 3.9."""
        start = sweep_point(px, py, mx, my, self.x1, self.y1, rho)
        end = sweep_point(px, py, mx, my, self.x2, self.y2, rho)
        return min(start, end, self.sweep_inner(px, py, mx, my, rho))

    def sweep_inner(self, px: float, py: float, mx: float, my: float, rho: float) -> float:
        """Section 3.7."""
        ex, ey = self.x2 - self.x1, self.y2 - self.y1
        length = math.sqrt(sq(ex) + sq(ey))
        tx, ty = ex / length, ey / length
        n = (px - self.x1) * ty - (py - self.y1) * tx
        along = (px - self.x1) * tx + (py - self.y1) * ty
        if abs(n) >= rho:
            k = mx * ty - my * tx
            if k * n < 0:
                f = min((abs(n) - rho) / abs(k), 1.0)
                reached = along + f * (mx * tx + my * ty)
                if 0 <= reached <= length:
                    return f
        elif 0 <= along <= length:
            return 0.0
        return 1.0


@dataclass(frozen=True)
class Arc:
    """A quarter circle of radius 24 around (cx, cy) in quadrant (h, q)."""

    cx: float
    cy: float
    h: int
    q: int
    convex: bool

    def closest(self, px: float, py: float) -> tuple[bool, float, float]:
        """Section 3.4."""
        dx, dy = px - self.cx, py - self.cy
        if dx * self.h > 0 and dy * self.q > 0:
            d = math.sqrt(sq(dx) + sq(dy))
            point = self.cx + ((24 * dx) / d), self.cy + ((24 * dy) / d)
            return (d < 24 if self.convex else d > 24), *point
        if dx * self.h > dy * self.q:
            return False, self.cx + 24 * self.h, self.cy
        return False, self.cx, self.cy + 24 * self.q

    def sweep(self, px: float, py: float, mx: float, my: float, rho: float) -> float:
        """Section 3.9."""
        horizontal = sweep_point(px, py, mx, my, self.cx + 24 * self.h, self.cy, rho)
        vertical = sweep_point(px, py, mx, my, self.cx, self.cy + 24 * self.q, rho)
        return min(horizontal, vertical, self.sweep_inner(px, py, mx, my, rho))

    def sweep_inner(self, px: float, py: float, mx: float, my: float, rho: float) -> float:
        """Section 3.8."""
        dx, dy = px - self.cx, py - self.cy
        d2, m2, s = sq(dx) + sq(dy), sq(mx) + sq(my), dx * mx + dy * my
        outer, inner = 24 + rho, 24 - rho
        f = 1.0
        if d2 > sq(outer):
            rad = sq(s) - m2 * (d2 - sq(outer))
            if m2 > 0.0001 and s < 0 and rad >= 0:
                f = (-s - math.sqrt(rad)) / m2
        elif d2 < sq(inner):
            rad = sq(s) - m2 * (d2 - sq(inner))
            if m2 > 0.0001:
                f = min((-s + math.sqrt(rad)) / m2, 1.0)
        else:
            f = 0.0
        if (dx + f * mx) * self.h > 0 and (dy + f * my) * self.q > 0:
            return f
        return 1.0


Segment = Straight | Arc


def sweep_point(px: float, py: float, mx: float, my: float, a: float, b: float, rho: float) -> float:
    """Section 3.6."""
    dx, dy = px - a, py - b
    d2, m2, s = sq(dx) + sq(dy), sq(mx) + sq(my), dx * mx + dy * my
    if d2 - sq(rho) > 0:
        rad = sq(s) - m2 * (d2 - sq(rho))
        if m2 > 0.0001 and s < 0 and rad >= 0:
            return (-s - math.sqrt(rad)) / m2
        return 1.0
    return 0.0


def cell_of(x: float, y: float) -> tuple[int, int]:
    """The clamped cell of a point (section 2.1)."""
    return min(max(math.floor(x / 24), 0), 43), min(max(math.floor(y / 24), 0), 24)


class TileWorld:
    """The segments of a map by cell, built one half-edge after the other (sections 2.5 to 2.9)."""

    def __init__(self, tiles) -> None:
        """Build from (23, 42) tile numbers."""
        self.cells: dict[tuple[int, int], list[Segment]] = {(c, r): [] for c in range(44) for r in range(25)}
        horizontal = {(i, j): {0: 1, 50: -1}.get(j, 0) for i in range(88) for j in range(51)}
        vertical = {(i, j): {0: 1, 88: -1}.get(i, 0) for i in range(89) for j in range(50)}
        for c in range(44):
            for r in range(25):
                inside = 1 <= c <= 42 and 1 <= r <= 23
                tile = int(tiles[r - 1][c - 1]) if inside else 1
                self._add_edges(tile, c, r, horizontal, vertical)
                self._add_curve(tile, c, r)
        self._add_straight(horizontal, vertical)

    def _add_edges(self, tile, c, r, horizontal, vertical) -> None:
        signs = [int(sign) for sign in EDGE_SIGNS[tile]]
        for line in range(3):
            for half in range(2):
                horizontal[2 * c + half, 2 * r + line] += signs[2 * line + half]
                vertical[2 * c + line, 2 * r + half] += signs[6 + 2 * line + half]

    def _add_curve(self, tile, c, r) -> None:
        x, y = 24 * c, 24 * r
        if tile in DIAGONALS:
            x1, y1, x2, y2 = DIAGONALS[tile]
            self.cells[c, r].append(Straight(x + x1, y + y1, x + x2, y + y2))
        for table, convex in ((CONVEX_ARCS, True), (CONCAVE_ARCS, False)):
            if tile in table:
                cx, cy, h, q = table[tile]
                self.cells[c, r].append(Arc(x + cx, y + cy, h, q, convex))

    def _add_straight(self, horizontal, vertical) -> None:
        for (i, j), sign in sorted(horizontal.items()):
            if sign:
                left, right = (12 * i, 12 * j), (12 * i + 12, 12 * j)
                cell = math.floor(i / 2), math.floor((j - 0.1 * sign) / 2)
                self.cells[cell].append(Straight(*left, *right) if sign > 0 else Straight(*right, *left))
        for (i, j), sign in sorted(vertical.items()):
            if sign:
                upper, lower = (12 * i, 12 * j), (12 * i, 12 * j + 12)
                cell = math.floor((i - 0.1 * sign) / 2), math.floor(j / 2)
                self.cells[cell].append(Straight(*lower, *upper) if sign > 0 else Straight(*upper, *lower))

    def gather(self, xa: float, ya: float, xb: float, yb: float) -> list[Segment]:
        """Section 3.1."""
        (ca, ra), (cb, rb) = cell_of(xa, ya), cell_of(xb, yb)
        return [segment for c in range(ca, cb + 1) for r in range(ra, rb + 1) for segment in self.cells[c, r]]

    def closest_point(self, px: float, py: float, rho: float = 10.0) -> tuple[int, float, float]:
        """Section 3.5."""
        best, result = 9999999.0, (0, 0.0, 0.0)
        for segment in self.gather(px - rho, py - rho, px + rho, py + rho):
            back, a, b = segment.closest(px, py)
            delta = sq(px - a) + sq(py - b)
            if not back:
                delta -= 0.1
            if delta < best:
                best, result = delta, (-1 if back else 1, a, b)
        return result

    def sweep(self, xs: float, ys: float, mx: float, my: float, rho: float = 5.0) -> float:
        """Section 3.9, against all tiles around."""
        xe, ye, margin = xs + mx, ys + my, rho + 1
        box = (min(xs, xe) - margin, min(ys, ye) - margin, max(xs, xe) + margin, max(ys, ye) + margin)
        return min([1.0] + [segment.sweep(xs, ys, mx, my, rho) for segment in self.gather(*box)])
