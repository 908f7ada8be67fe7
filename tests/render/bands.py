"""Beams drawn slowly: a whole picture at a time, without the loops of the kernels."""

import math

import numpy as np

from nclone_env.render.shapes import PAINTS
from nclone_env.sim import NO_BEAM, beam_of, world_at

LOOKS = (("beam", 3.0), ("shot", 3.0), ("aim", 1.0), ("trail", 3.0))


def put_beams(canvas, levels, worlds, index, left=0.0, top=0.0, scale_x=1.0, scale_y=1.0):
    """Draw the beams of a world into a grey (h, w) canvas, in place."""
    header = levels.header[worlds.ninjas[index]["level"]]
    for slot in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + slot]
        what, x, y, dx, dy, length = beam_of(levels, worlds, index, entity, world_at(worlds, index).entity_states[slot])
        if what != NO_BEAM and length > 0:
            paint, width = LOOKS[what]
            start = ((x - left) * scale_x, (y - top) * scale_y)
            end = (start[0] + length * dx * scale_x, start[1] + length * dy * scale_y)
            alpha = band(canvas.shape, start, end, width, (abs(dx), abs(dy)), (scale_x, scale_y))
            below, grey = canvas.astype(np.int64), PAINTS[paint].grey
            canvas[:] = (2 * (below * (255 - alpha) + grey * alpha) + 255) // 510


def band(shape, start, end, width, direction, scale):
    """Return (h, w) opacity 0..255 of a band between two places of the picture."""
    (ax, ay), (bx, by) = start, end
    if abs(bx - ax) < abs(by - ay):
        return band(shape[::-1], start[::-1], end[::-1], width, direction[::-1], scale[::-1]).T
    half = 0.5 * width * scale[1] / direction[0]
    u, v = np.arange(shape[1], dtype=np.float64), np.arange(shape[0], dtype=np.float64)[:, None]
    share = np.maximum(np.minimum(max(ax, bx), u + 1) - np.maximum(min(ax, bx), u), 0)
    middle = ay + (u + 0.5 - ax) * ((by - ay) / (bx - ax))
    cover = np.maximum(np.minimum(middle + half, v + 1) - np.maximum(middle - half, v), 0)
    return np.floor(255.0 * share * cover + 0.5).astype(np.int64)


def exact_band(shape, start, direction, length, width):
    """Return (h, w) the share of each pixel within a rectangle, from 16 x 16 samples."""
    x = (np.arange(shape[1] * 16) + 0.5) / 16 - start[0]
    y = (np.arange(shape[0] * 16)[:, None] + 0.5) / 16 - start[1]
    dx, dy = direction
    along, across = x * dx + y * dy, y * dx - x * dy
    inside = (along >= 0) & (along <= length) & (abs(across) <= width / 2)
    assert math.isclose(math.hypot(dx, dy), 1.0)
    return inside.reshape(shape[0], 16, shape[1], 16).mean((1, 3))
