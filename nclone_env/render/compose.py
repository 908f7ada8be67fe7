"""Kernels that compose the picture observations from glyphs.

``levels`` and ``worlds`` are the packed arrays of the level set and of the simulator. A kernel draws one
world into the caller's array and allocates nothing.
"""

from __future__ import annotations

import math

from nclone_env._jit import copy_bytes, kernel
from nclone_env.constants import COLUMNS, ENTITY_NAMES, LASER_TURRET, MAX_TILE, NINJA, ROCKET_TURRET, ROWS
from nclone_env.level.entities import MOVER_TYPES
from nclone_env.render.arrays import (
    CELL,
    FACES_LEFT,
    FACES_RIGHT,
    GLOBAL_CENTRE,
    GLOBAL_HEIGHT,
    GLOBAL_WIDTH,
    ORIENTATIONS,
    PHASES,
    ROCKET_FLIES,
    SCALE_X,
    SCALE_Y,
)
from nclone_env.render.beams import BEAM_GREYS, draw_beams

_HALF = CELL // 2
_SOLID_TILE = 1
_TYPES = len(ENTITY_NAMES)
_MOVES = tuple(kind in MOVER_TYPES for kind in range(_TYPES))
_EIGHTHS_PER_RADIAN = 4.0 / math.pi
_WHOLE_WORLD = (0.0, 0.0, 1.0 / SCALE_X, 1.0 / SCALE_Y)  # what the global view shows, as ``draw_beams`` has it
_FULL, _COARSE = 0, 1  # first index of ``Glyphs.boxes``


@kernel
def _floor(value):
    """Return the largest whole number not above a float."""
    return int(math.floor(value))


@kernel
def write_player_frame(levels, worlds, index, glyphs, out):
    """Draw the surroundings of the ninja, one world pixel a pixel.

    Args:
        levels: packed level arrays.
        worlds: packed world arrays.
        index: which world.
        glyphs: the ``Glyphs``.
        out: (S, S, 1) uint8, C-contiguous; pixel (S // 2, S // 2) is the floor of the ninja's position.
            Outside the world is solid.
    """
    head = worlds.heads[index]
    header = levels.header[head["level"]]
    size = out.shape[0]
    left, top = _floor(head["x"]) - size // 2, _floor(head["y"]) - size // 2
    _write_tiles(levels.tiles, head["level"], glyphs.tiles, left, top, out)
    draw_beams(levels, worlds, index, BEAM_GREYS, (float(left), float(top), 1.0, 1.0), out)
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        kind = door_kind(glyphs.door_kinds, door, worlds.entity_states[index, door["owner"]])
        _draw(glyphs, kind, door["x"], door["y"], left, top, out)
    for number in range(header["entity_count"]):
        entity, state = levels.entities[header["first_entity"] + number], worlds.entity_states[index, number]
        if leaves_turret(entity, state):
            _draw(glyphs, glyphs.kinds[ROCKET_TURRET, 0, 0], entity["x"], entity["y"], left, top, out)
        x, y = place_of(worlds, index, entity)
        if -_HALF < x - left < size + _HALF and -_HALF < y - top < size + _HALF:
            _draw(glyphs, kind_of(glyphs.kinds, worlds, index, entity, state), x, y, left, top, out)
    _draw(glyphs, ninja_kind(glyphs.kinds, head), head["x"], head["y"], left, top, out)


@kernel
def write_global_view(levels, layers, worlds, index, glyphs, out):
    """Draw the whole world, averaged over areas of 4.125 x 4.6875 world pixels.

    Args:
        levels: packed level arrays.
        layers: (L, 128, 256) uint8, the ``static_layers`` of the levels.
        worlds: packed world arrays.
        index: which world.
        glyphs: the ``Glyphs``.
        out: (128, 256, 1) uint8, C-contiguous.
    """
    head = worlds.heads[index]
    header = levels.header[head["level"]]
    copy_bytes(out, 0, layers, head["level"] * (GLOBAL_HEIGHT * GLOBAL_WIDTH), GLOBAL_HEIGHT * GLOBAL_WIDTH)
    draw_beams(levels, worlds, index, BEAM_GREYS, _WHOLE_WORLD, out)
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        kind = door_kind(glyphs.door_kinds, door, worlds.entity_states[index, door["owner"]])
        _draw_coarse(glyphs, kind, door["x"], door["y"], out)
    for number in range(header["entity_count"]):
        entity, state = levels.entities[header["first_entity"] + number], worlds.entity_states[index, number]
        if leaves_turret(entity, state):
            _draw_coarse(glyphs, glyphs.kinds[ROCKET_TURRET, 0, 0], entity["x"], entity["y"], out)
        x, y = place_of(worlds, index, entity)
        _draw_coarse(glyphs, kind_of(glyphs.kinds, worlds, index, entity, state), x, y, out)
    _draw_coarse(glyphs, ninja_kind(glyphs.kinds, head), head["x"], head["y"], out)


@kernel
def place_of(worlds, index, entity):
    """Return where an entity is now: x, y in pixels. A switch has the number of its exit's mover, but does not move."""
    x, y = float(entity["x"]), float(entity["y"])
    kind, number = entity["type"], entity["mover"]
    if number >= 0 and kind < _TYPES and _MOVES[kind]:
        mover = worlds.movers[index, number]
        x, y = mover["x"], mover["y"]
    return x, y


@kernel
def leaves_turret(entity, state):
    """Return whether an entity is the rocket under way: its turret stays where it is."""
    return entity["type"] == ROCKET_TURRET and state >= ROCKET_FLIES


@kernel
def kind_of(kinds, worlds, index, entity, state):
    """Return the kind an entity is drawn as, -1 if it is not drawn. A laser points where its beam does."""
    kind, entity_type = -1, entity["type"]
    if NINJA < entity_type < _TYPES:
        orientation = min(int(entity["orientation"]), ORIENTATIONS - 1)
        if entity_type == LASER_TURRET and entity["mover"] >= 0:
            angle = worlds.movers[index, entity["mover"]]["uy"]
            orientation = _floor(angle * _EIGHTHS_PER_RADIAN + 0.5) & (ORIENTATIONS - 1)
        kind = int(kinds[entity_type, orientation, state])
    return kind


@kernel
def door_kind(door_kinds, door, state):
    """Return the kind a door is drawn as."""
    return int(door_kinds[door["type"], door["vertical"], state])


@kernel
def ninja_kind(kinds, head):
    """Return the kind the ninja is drawn as."""
    orientation = FACES_RIGHT if head["facing"] >= 0 else FACES_LEFT
    return int(kinds[NINJA, orientation, head["state"]])


@kernel
def _write_tiles(tiles, level, glyph_tiles, left, top, out):
    """Write the tiles of the square of the world whose upper left pixel is (left, top).

    Tile by tile: the lines of a tile that are inside the picture are copied from its glyph.
    """
    size = out.shape[0]
    row = 0
    while row < size:
        cell_row = (top + row) // CELL
        line = top + row - cell_row * CELL
        lines = min(CELL - line, size - row)
        column = 0
        while column < size:
            cell_column = (left + column) // CELL
            skipped = left + column - cell_column * CELL
            width = min(CELL - skipped, size - column)
            tile = _SOLID_TILE
            if 0 <= cell_row < ROWS and 0 <= cell_column < COLUMNS:
                tile = int(tiles[level, cell_row, cell_column])
                if tile > MAX_TILE:
                    tile = 0
            source = (tile * CELL + line) * CELL + skipped
            target = row * size + column
            for _ in range(lines):
                if width == CELL:  # a literal length: three moves instead of a call
                    copy_bytes(out, target, glyph_tiles, source, 24)
                else:
                    copy_bytes(out, target, glyph_tiles, source, width)
                source += CELL
                target += size
            column += width
        row += lines


@kernel
def _blend(below, alpha, ink):
    """Return ``round(below * (255 - alpha) / 255) + ink`` in whole numbers."""
    scaled = below * (255 - alpha) + 128
    return ((scaled + (scaled >> 8)) >> 8) + ink


@kernel
def _stamp(stamps, phase, boxes, size_class, kind, left, top, out):
    """Blend a stamp whose upper left corner lies at (left, top) of the picture, as far as it is inside."""
    first_row = max(top + boxes[size_class, kind, 0], 0)
    end_row = min(top + boxes[size_class, kind, 1], out.shape[0])
    first_column = max(left + boxes[size_class, kind, 2], 0)
    end_column = min(left + boxes[size_class, kind, 3], out.shape[1])
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            alpha = int(stamps[kind, phase, 0, row - top, column - left])
            ink = int(stamps[kind, phase, 1, row - top, column - left])
            out[row, column, 0] = _blend(int(out[row, column, 0]), alpha, ink)


@kernel
def _draw(glyphs, kind, x, y, left, top, out):
    """Draw a kind (-1 for nothing) at a place of the world into a picture whose upper left is the pixel (left, top)."""
    if kind >= 0:
        column, row = _floor(x) - left - _HALF, _floor(y) - top - _HALF
        _stamp(glyphs.stamps, 0, glyphs.boxes, _FULL, kind, column, row, out)


@kernel
def _draw_coarse(glyphs, kind, x, y, out):
    """Draw a kind (-1 for nothing) at a place of the world, to the nearest quarter of a coarse pixel."""
    if kind >= 0:
        quarter_x, quarter_y = _floor(x * (PHASES / SCALE_X) + 0.5), _floor(y * (PHASES / SCALE_Y) + 0.5)
        phase = (quarter_y % PHASES) * PHASES + quarter_x % PHASES
        left, top = quarter_x // PHASES - GLOBAL_CENTRE, quarter_y // PHASES - GLOBAL_CENTRE
        _stamp(glyphs.global_stamps, phase, glyphs.boxes, _COARSE, kind, left, top, out)
