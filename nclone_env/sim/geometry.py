"""Closest points and sweeps for one segment (physics 01, sections 3.3 to 3.9).

Plain numbers in, plain numbers out; every formula in the order of the specification, because the last bit counts.
"""

import math

import numpy as np

from nclone_env.game import ARC_RADIUS, CELL_SIZE
from nclone_env.jit import kernel


@kernel
def lesser(a, b):
    """Return the smaller of two floats (spelled out: float ``min`` differs between compilation targets)."""
    return a if a < b else b


@kernel
def greater(a, b):
    """Return the larger of two floats."""
    return a if a > b else b


@kernel
def difference(left, right):
    """Return the bits in which two floats differ."""
    return np.float64(left).view(np.uint64) ^ np.float64(right).view(np.uint64)


@kernel
def clamp_cell(value, last):
    """Return the cell coordinate of a pixel coordinate, clamped to 0..last (section 2.1)."""
    if not value >= 0.0:
        return 0
    if value >= CELL_SIZE * (last + 1):
        return last
    return whole_24ths(int(value))  # int(value / 24.0): the rounded quotient of less than 24 n is less than n


@kernel
def whole_24ths(number):
    """Return ``number // 24`` for whole numbers from 0 to 2**29: the factor is 2**32 / 24, rounded up."""
    return (number * 178956971) >> 32


@kernel
def closest_on_straight(x1, y1, x2, y2, px, py):
    """Return (back-facing, a, b): the point (a, b) of the segment that is closest to (px, py) (section 3.3)."""
    ex, ey = x2 - x1, y2 - y1
    dx, dy = px - x1, py - y1
    t = (dx * ex + dy * ey) / (ex * ex + ey * ey)
    if t < 0.0:
        t = 0.0
    if t > 1.0:
        t = 1.0
    return dy * ex - dx * ey < 0.0, x1 + t * ex, y1 + t * ey


@kernel
def closest_on_arc(cx, cy, h, q, convex, px, py):
    """Return (back-facing, a, b) for a quarter circle around (cx, cy) in quadrant (h, q) (section 3.4)."""
    dx, dy = px - cx, py - cy
    if dx * h > 0.0 and dy * q > 0.0:
        d = math.sqrt(dx * dx + dy * dy)
        back = d < ARC_RADIUS if convex else d > ARC_RADIUS
        return back, cx + ((ARC_RADIUS * dx) / d), cy + ((ARC_RADIUS * dy) / d)
    if dx * h > dy * q:
        return False, cx + ARC_RADIUS * h, cy + 0.0
    return False, cx + 0.0, cy + ARC_RADIUS * q


@kernel
def sweep_point(px, py, mx, my, a, b, radius):
    """Return the fraction of the displacement (mx, my) after which a disc touches the point (a, b) (section 3.6).

    0 if it overlaps already, 1 if it never does; the result may exceed 1.
    """
    dx, dy = px - a, py - b
    d2 = dx * dx + dy * dy
    outside = d2 - radius * radius
    if outside > 0.0:
        m2 = mx * mx + my * my
        s = dx * mx + dy * my
        root = s * s - m2 * outside
        if m2 > 0.0001 and s < 0.0 and root >= 0.0:
            return (-s - math.sqrt(root)) / m2
        return 1.0
    return 0.0


@kernel
def sweep_line(px, py, mx, my, x1, y1, x2, y2, radius):
    """Return the fraction after which a disc touches the inner part of a straight segment, else 1 (section 3.7)."""
    ex, ey = x2 - x1, y2 - y1
    length = math.sqrt(ex * ex + ey * ey)
    tx, ty = ex / length, ey / length
    dx, dy = px - x1, py - y1
    n = dx * ty - dy * tx
    along = dx * tx + dy * ty
    if abs(n) >= radius:
        k = mx * ty - my * tx
        if k * n < 0.0:
            f = (abs(n) - radius) / abs(k)
            if f > 1.0:
                f = 1.0
            at = along + f * (mx * tx + my * ty)
            if 0.0 <= at <= length:
                return f
    elif 0.0 <= along <= length:
        return 0.0
    return 1.0


@kernel
def sweep_curve(px, py, mx, my, cx, cy, h, q, radius):
    """Return the fraction after which a disc touches the inner part of a quarter circle, else 1 (section 3.8)."""
    dx, dy = px - cx, py - cy
    d2 = dx * dx + dy * dy
    m2 = mx * mx + my * my
    s = dx * mx + dy * my
    outer, inner = ARC_RADIUS + radius, ARC_RADIUS - radius
    f = 1.0
    if d2 > outer * outer:
        root = s * s - m2 * (d2 - outer * outer)
        if m2 > 0.0001 and s < 0.0 and root >= 0.0:
            f = (-s - math.sqrt(root)) / m2
    elif d2 < inner * inner:
        root = s * s - m2 * (d2 - inner * inner)
        if m2 > 0.0001:
            f = (-s + math.sqrt(root)) / m2
            if f > 1.0:
                f = 1.0
    else:
        f = 0.0
    if (dx + f * mx) * h > 0.0 and (dy + f * my) * q > 0.0:
        return f
    return 1.0


@kernel
def sweep_straight(px, py, mx, my, x1, y1, x2, y2, radius):
    """Return the sweep against a straight segment with its end points (section 3.9)."""
    ends = lesser(sweep_point(px, py, mx, my, x1, y1, radius), sweep_point(px, py, mx, my, x2, y2, radius))
    return lesser(ends, sweep_line(px, py, mx, my, x1, y1, x2, y2, radius))


@kernel
def sweep_arc(px, py, mx, my, cx, cy, h, q, radius):
    """Return the sweep against a quarter circle with its end points (section 3.9)."""
    horizontal_end = sweep_point(px, py, mx, my, cx + ARC_RADIUS * h, cy, radius)
    vertical_end = sweep_point(px, py, mx, my, cx, cy + ARC_RADIUS * q, radius)
    ends = lesser(horizontal_end, vertical_end)
    return lesser(ends, sweep_curve(px, py, mx, my, cx, cy, h, q, radius))


@kernel
def discs_overlap(xa, ya, xb, yb, reach):
    """Return whether two points are closer than ``reach`` (section 3.11), by the rounded square root.

    The rounded root is never below either coordinate difference, so one of these alone can rule an overlap out.
    """
    dx, dy = xa - xb, ya - yb
    if abs(dx) >= reach or abs(dy) >= reach:
        return False
    return math.sqrt(dx * dx + dy * dy) < reach


@kernel
def disc_meets_segment(cx, cy, radius, ax, ay, bx, by):
    """Return whether a straight segment is closer to (cx, cy) than ``radius`` (section 3.11)."""
    _, a, b = closest_on_straight(ax, ay, bx, by, cx, cy)
    dx, dy = cx - a, cy - b
    return dx * dx + dy * dy < radius * radius


@kernel
def square_penetration(sx, sy, px, py, half):
    """Return (inside, nx, ny, depth, other depth) of a point in a square around (sx, sy) (section 3.12).

    The normal points from the square's centre to the side that is nearer; the other depth is along the other axis.
    """
    dx, dy = px - sx, py - sy
    qx, qy = half - abs(dx), half - abs(dy)
    if not (qx > 0.0 and qy > 0.0):
        return False, 0.0, 0.0, 0.0, 0.0
    if qy <= qx:
        return True, 0.0, -1.0 if dy < 0.0 else 1.0, qy, qx
    return True, -1.0 if dx < 0.0 else 1.0, 0.0, qx, qy


@kernel
def unit(x, y, default_x, default_y):
    """Return a vector divided by its length, or a default for the zero vector (physics 03, section 3.5)."""
    length = math.sqrt(x * x + y * y)
    if length == 0.0:
        return default_x, default_y
    return x / length, y / length
