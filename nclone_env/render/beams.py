"""Kernels that draw the beams of a world into any picture: a frame, the whole world, a picture for people.

A beam is a straight band. Each pixel is blended by the share of it that the band covers, measured across its middle at
right angles to the major axis: smooth edges and ends from a few additions.
"""

import math

from nclone_env.jit import kernel
from nclone_env.kinds import KINDS, bits
from nclone_env.render.shapes import PAINTS
from nclone_env.sim import NO_BEAM, beam_of, greater, lesser

_PAINTS = ("beam", "shot", "aim", "trail")  # in the order of ``sim.query.BEAM`` and the others
BEAM_WIDTHS = (3.0, 3.0, 1.0, 3.0)  # world pixels
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)
BEAM_GREYS = tuple((PAINTS[name].grey,) for name in _PAINTS)
BEAM_COLOURS = tuple(PAINTS[name].colour for name in _PAINTS)


@kernel
def draw_beams(levels, worlds, index, inks, view, out):
    """Draw the beams, shots and aiming lines of the entities of a world.

    Args:
        inks: ``BEAM_GREYS`` or ``BEAM_COLOURS``.
        view: x and y of the picture's upper left corner (world pixels), pixels of the picture per world pixel across
            and down; four floats.
        out: (height, width, channels of the inks) uint8.
    """
    header = levels.header[worlds.ninjas[index]["level"]]
    for r in range(header["first_run"], header["first_run"] + header["run_count"]):
        run = levels.runs[r]
        if _SHOOTS >> int(run["type"]) & 1:
            for slot in range(run["first"], run["stop"]):
                entity = levels.entities[header["first_entity"] + slot]
                emission, x, y, dx, dy, length = beam_of(
                    levels, worlds, index, entity, worlds.entity_states[index, slot]
                )
                if emission != NO_BEAM and length > 0.0:
                    draw_band(x, y, dx, dy, length, BEAM_WIDTHS[emission], inks[emission], view, out)


@kernel
def draw_band(x, y, dx, dy, length, width, ink, view, out):
    """Draw a band that begins at (x, y) in the direction of the unit vector (dx, dy); world pixels."""
    left, top, scale_x, scale_y = view
    ax, ay = (x - left) * scale_x, (y - top) * scale_y
    bx, by = ax + length * dx * scale_x, ay + length * dy * scale_y
    if abs(bx - ax) >= abs(by - ay):
        _scan(ax, ay, bx, by, 0.5 * width * scale_y / abs(dx), False, ink, out)
    else:
        _scan(ay, ax, by, bx, 0.5 * width * scale_x / abs(dy), True, ink, out)


@kernel
def _scan(u0, v0, u1, v1, half, upright, ink, out):
    """Blend a band from (u0, v0) to (u1, v1), ``half`` to each side on the v axis; u is the row if it is upright."""
    size_u, size_v = (out.shape[0], out.shape[1]) if upright else (out.shape[1], out.shape[0])
    begin, end, slope = lesser(u0, u1), greater(u0, u1), (v1 - v0) / (u1 - u0)
    for u in range(max(int(math.floor(begin)), 0), min(int(math.floor(end)) + 1, size_u)):
        share = lesser(end, u + 1.0) - greater(begin, float(u))
        middle = v0 + (u + 0.5 - u0) * slope
        low, high = middle - half, middle + half
        for v in range(max(int(math.floor(low)), 0), min(int(math.floor(high)) + 1, size_v)):
            alpha = int(255.0 * share * (lesser(high, v + 1.0) - greater(low, float(v))) + 0.5)
            row, column = (u, v) if upright else (v, u)
            for channel in range(out.shape[2]):
                out[row, column, channel] = _mixed(int(out[row, column, channel]), alpha, ink[channel])


@kernel
def _mixed(below, alpha, colour):
    """Return ``below`` blended with a colour of opacity ``alpha``, 0..255, rounded."""
    scaled = below * (255 - alpha) + colour * alpha + 128
    return (scaled + (scaled >> 8)) >> 8
