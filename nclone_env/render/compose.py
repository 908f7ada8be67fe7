"""Kernels that compose the picture observations from glyphs.

``levels`` and ``worlds`` are the packed arrays of the level set and of the simulator. A kernel draws one
world into the caller's array and allocates nothing.
"""

from __future__ import annotations

import math

from nclone_env._jit import copy_bytes, kernel
from nclone_env.constants import COLUMNS, ENTITY_NAMES, MAX_TILE, NINJA, ROWS
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
    SCALE_X,
    SCALE_Y,
    STATES,
)

_HALF = CELL // 2
_SOLID_TILE = 1
_TYPES = len(ENTITY_NAMES)
_MOVES = tuple(kind in MOVER_TYPES for kind in range(_TYPES))
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
    level = head["level"]
    stamps, boxes, kinds = glyphs.stamps, glyphs.boxes, glyphs.kinds
    size = out.shape[0]
    left = _floor(head["x"]) - size // 2
    top = _floor(head["y"]) - size // 2
    _write_tiles(levels.tiles, level, glyphs.tiles, left, top, out)
    header = levels.header[level]
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        x, y = door["x"] - left, door["y"] - top
        if -_HALF < x < size + _HALF and -_HALF < y < size + _HALF:
            kind = door_kind(glyphs.door_kinds, door, worlds.entity_states[index, door["owner"]])
            _stamp(stamps, 0, boxes, _FULL, kind, x - _HALF, y - _HALF, out)
    first = header["first_entity"]
    for number in range(header["entity_count"]):
        entity = levels.entities[first + number]
        world_x, world_y = place_of(worlds, index, entity)
        x, y = _floor(world_x) - left, _floor(world_y) - top
        if -_HALF < x < size + _HALF and -_HALF < y < size + _HALF:
            kind = kind_of(kinds, entity, worlds.entity_states[index, number])
            if kind >= 0:
                _stamp(stamps, 0, boxes, _FULL, kind, x - _HALF, y - _HALF, out)
    corner = size // 2 - _HALF
    _stamp(stamps, 0, boxes, _FULL, ninja_kind(kinds, head), corner, corner, out)


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
    level = head["level"]
    stamps, boxes, kinds = glyphs.global_stamps, glyphs.boxes, glyphs.kinds
    copy_bytes(out, 0, layers, level * (GLOBAL_HEIGHT * GLOBAL_WIDTH), GLOBAL_HEIGHT * GLOBAL_WIDTH)
    header = levels.header[level]
    for number in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[number]
        kind = door_kind(glyphs.door_kinds, door, worlds.entity_states[index, door["owner"]])
        left, top, phase = _coarse_place(door["x"], door["y"])
        _stamp(stamps, phase, boxes, _COARSE, kind, left, top, out)
    first = header["first_entity"]
    for number in range(header["entity_count"]):
        entity = levels.entities[first + number]
        kind = kind_of(kinds, entity, worlds.entity_states[index, number])
        if kind >= 0:
            world_x, world_y = place_of(worlds, index, entity)
            left, top, phase = _coarse_place(world_x, world_y)
            _stamp(stamps, phase, boxes, _COARSE, kind, left, top, out)
    left, top, phase = _coarse_place(head["x"], head["y"])
    _stamp(stamps, phase, boxes, _COARSE, ninja_kind(kinds, head), left, top, out)


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
def kind_of(kinds, entity, state):
    """Return the kind an entity is drawn as, -1 if it is not drawn."""
    kind, entity_type = -1, entity["type"]
    if NINJA < entity_type < _TYPES:
        kind = int(kinds[entity_type, min(entity["orientation"], ORIENTATIONS - 1), state & (STATES - 1)])
    return kind


@kernel
def door_kind(door_kinds, door, state):
    """Return the kind a door is drawn as."""
    return int(door_kinds[door["type"], door["vertical"], state & (STATES - 1)])


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
def _coarse_place(x, y):
    """Return left, top and phase of the global stamp at a world position, to the nearest quarter pixel."""
    quarter_x = _floor(x * (PHASES / SCALE_X) + 0.5)
    quarter_y = _floor(y * (PHASES / SCALE_Y) + 0.5)
    phase = (quarter_y % PHASES) * PHASES + quarter_x % PHASES
    return quarter_x // PHASES - GLOBAL_CENTRE, quarter_y // PHASES - GLOBAL_CENTRE, phase
