"""The picture kernels done slowly; only layers and stamps, which have tests of their own, are shared with them."""

import math
from functools import cache, lru_cache

import numpy as np

from nclone_env.game import KINDS
from nclone_env.render.looks import appearance, layers_of
from nclone_env.render.raster import GREYS, all_glyphs, stamp
from nclone_env.render.shapes import PAINTS
from nclone_env.sim.entities.laser.motion import BEAM_ANGLE
from nclone_env.sim.state import world_at

from .bands import put_beams
from .scenes import make_levels, pictures_of

SOLID = PAINTS["solid"].grey
MOVING = [kind.number for kind in KINDS if kind.has_mover]
SWITCH_OF = {6: 7, 8: 9}


@lru_cache(maxsize=1)
def full_size():
    """Return the resolution of a frame whose pixel is a world pixel; it has no layers."""
    return pictures_of(make_levels((np.zeros((23, 42), np.uint8), [])).arrays).player_frame


def full_grey(tiles):
    return np.block([[all_glyphs().tiles[tile] for tile in row] for row in tiles])


def kind_number(entity_type, orientation, state):
    """Return the kind by its layers, not by the table that the kernels use; None if it is not drawn."""
    shown = appearance(entity_type, orientation, state)
    return None if shown is None else number_of(shown)


@cache
def number_of(shown):
    grey = stamp(layers_of(shown), GREYS)
    pixels = np.floor(np.stack([255 * grey[0], grey[1][..., 0]]) + 0.5).astype(np.uint8)
    return int(np.flatnonzero((full_size().stamps[:, 0] == pixels).all((1, 2, 3)))[0])


def drawn(levels, worlds, index):
    """Return (kind, x, y) of everything drawn, in order: doors, entities, the ninja."""
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    states = world_at(worlds, index).entity_states
    found = []
    for number in range(header["door_count"]):
        door = levels.doors[header["first_door"] + number]
        found.append((door["type"], 0 if door["vertical"] else 6, states[door["owner"]], door))
    for number in range(header["entity_count"]):
        entity = levels.entities[header["first_entity"] + number]
        where = world_at(worlds, index).movers[entity["mover"]] if entity["type"] in MOVING else entity
        kind, orientation = int(entity["type"]), entity["orientation"]
        if kind == 18 and states[number] >= 16:
            found.append((18, 0, 0, entity))
        if kind == 23 and entity["mover"] >= 0:
            orientation = round(float(world_at(worlds, index).movers[entity["mover"]][BEAM_ANGLE]) / (math.pi / 4)) % 8
        if kind != 5:
            found.append((SWITCH_OF.get(kind, kind), orientation, states[number], where))
    found.append((0, 0 if ninja["facing"] > 0 else 4, ninja["state"], ninja))
    result = [(kind_number(int(a), int(b), int(c)), float(at["x"]), float(at["y"])) for a, b, c, at in found]
    return [item for item in result if item[0] is not None]


def blended(below, stamp):
    """Return below (h, w) under a stamp (2, h, w), rounded half up in exact arithmetic."""
    alpha, ink = stamp.astype(np.int64)
    return ((2 * below.astype(np.int64) * (255 - alpha) + 255) // 510 + ink).astype(np.uint8)


def put_things(canvas, levels, worlds, index, resolution, left, top):
    """Draw everything into a grey (h, w) canvas whose upper left pixel is (left, top) of the world's, in place."""
    phases = math.isqrt(resolution.stamps.shape[1])
    (scale_x, scale_y), (centre_x, centre_y) = resolution.scale, resolution.centre
    height, width = resolution.stamps.shape[3:]
    nearest = 0.0 if phases == 1 else 0.5
    for kind, x, y in drawn(levels, worlds, index):
        step_x, step_y = math.floor(x * (phases / scale_x) + nearest), math.floor(y * (phases / scale_y) + nearest)
        column, row = step_x // phases - centre_x - left, step_y // phases - centre_y - top
        if -height < row < canvas.shape[0] and -width < column < canvas.shape[1]:
            inside = slice(max(row, 0), max(row + height, 0)), slice(max(column, 0), max(column + width, 0))
            part = canvas[inside]
            of_stamp = resolution.stamps[kind, step_y % phases * phases + step_x % phases]
            rows, columns = max(-row, 0), max(-column, 0)
            part[:] = blended(part, of_stamp[:, rows : rows + part.shape[0], columns : columns + part.shape[1]])


def oracle_player_frame(levels, worlds, index, size, pictures):
    ninja, frame = worlds.ninjas[index], pictures.player_frame
    scale = float(frame.scale[0])
    layer = frame.layers[ninja["level"]] if len(frame.layers) else full_grey(levels.tiles[ninja["level"]])
    left, top = math.floor(ninja["x"] * (1 / scale)) - size // 2, math.floor(ninja["y"] * (1 / scale)) - size // 2
    canvas, (height, width) = np.full((size, size), SOLID, np.uint8), layer.shape
    rows, columns = (np.arange(max(-first, 0), min(end - first, size)) for first, end in ((top, height), (left, width)))
    canvas[np.ix_(rows, columns)] = layer[np.ix_(rows + top, columns + left)]
    put_beams(canvas, levels, worlds, index, left * scale, top * scale, 1.0 / scale, 1.0 / scale)
    put_things(canvas, levels, worlds, index, frame, left, top)
    return canvas


def oracle_global_view(levels, worlds, index, pictures):
    view = pictures.global_view
    canvas = view.layers[worlds.ninjas[index]["level"]].copy()
    put_beams(canvas, levels, worlds, index, 0.0, 0.0, 1.0 / view.scale[0], 1.0 / view.scale[1])
    put_things(canvas, levels, worlds, index, view, 0, 0)
    return canvas
