"""Kernels that compose the picture observations from layers, tiles and stamps.

``levels`` and ``worlds`` are the packed arrays of the level set and of the simulator. A kernel draws one
world into the caller's array and allocates nothing.

A beam is a straight band, drawn into any picture: a frame, the whole world, a picture for people. Each pixel is blended
by the share of it that the band covers, measured across its middle at right angles to the major axis: smooth edges and
ends from a few additions.
"""

import math

from nclone_env.game import COLUMNS, KINDS, LASER_TURRET, MAX_TILE, NINJA, ROCKET_TURRET, ROWS, bits
from nclone_env.jit import BLENDED, blend_bytes, copy_bytes, kernel
from nclone_env.render.arrays import CELL, FACES_LEFT, FACES_RIGHT, ORIENTATIONS
from nclone_env.render.shapes import PAINTS
from nclone_env.sim import NO_BEAM, beam_of, beam_orientation, greater, is_flying, lesser, mover_of, place_of, state_of

_SOLID_TILE = 1
_SOLID = PAINTS["solid"].grey
_PHASE_BITS = 2  # 4 phases an axis
_PAINTS = ("beam", "shot", "aim", "trail")  # in the order of ``sim.sight.BEAM`` and the others
BEAM_WIDTHS = (3.0, 3.0, 1.0, 3.0)  # world pixels
_SHOOTS = bits(kind for kind in KINDS if kind.shoots)
BEAM_GREYS = tuple((PAINTS[name].grey,) for name in _PAINTS)
BEAM_COLOURS = tuple(PAINTS[name].colour for name in _PAINTS)


@kernel
def _floor(value):
    """Return the largest whole number not above a float."""
    return int(math.floor(value))


@kernel
def write_player_frame(levels, worlds, index, pictures, out):
    """Draw the surroundings of the ninja at the scale of ``pictures.player_frame``; outside the world is solid.

    ``out`` is (S, S, 1) uint8, C-contiguous; pixel (S // 2, S // 2) contains the ninja's position.
    """
    ninja, frame = worlds.ninjas[index], pictures.player_frame
    scale_x, scale_y, size = frame.scale[0], frame.scale[1], out.shape[0]
    per_x, per_y = 1.0 / scale_x, 1.0 / scale_y
    left, top = _floor(ninja["x"] * per_x) - size // 2, _floor(ninja["y"] * per_y) - size // 2
    if frame.layers.shape[0] == 0:
        _write_tiles(levels.tiles, ninja["level"], pictures.glyphs.tiles, left, top, out)
    else:
        _write_window(frame.layers, ninja["level"], left, top, out)
    draw_beams(levels, worlds, index, BEAM_GREYS, (left * scale_x, top * scale_y, per_x, per_y), out)
    _draw_things(levels, worlds, index, pictures.glyphs, frame, per_x, per_y, left, top, out)


@kernel
def write_global_view(levels, worlds, index, pictures, out):
    """Draw the whole world into ``out``, (H, W, 1) uint8, C-contiguous, of the size of the layers of the view."""
    view = pictures.global_view
    per_x, per_y, size = 1.0 / view.scale[0], 1.0 / view.scale[1], view.layers.shape[1] * view.layers.shape[2]
    copy_bytes(out, 0, view.layers, worlds.ninjas[index]["level"] * size, size)
    draw_beams(levels, worlds, index, BEAM_GREYS, (0.0, 0.0, per_x, per_y), out)
    _draw_things(levels, worlds, index, pictures.glyphs, view, per_x, per_y, 0, 0, out)


@kernel
def _draw_things(levels, worlds, index, glyphs, resolution, per_x, per_y, left, top, out):
    """Draw doors, entities and the ninja into a picture whose upper left pixel is (left, top) of the world's.

    ``per_x`` and ``per_y`` are pixels of the picture per world pixel.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    grid = _grid(resolution, per_x, per_y, left, top)
    low_x, high_x, low_y, high_y = _bounds(resolution, left, top, out)
    for row in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[row]
        number = door_appearance(glyphs.door_appearances, door, state_of(worlds, index, door["owner"]))
        _draw(resolution, grid, number, door["x"], door["y"], out)
    for slot in range(header["entity_count"]):
        entity, state = levels.entities[header["first_entity"] + slot], state_of(worlds, index, slot)
        if leaves_turret(entity, state):
            _draw(resolution, grid, glyphs.appearances[ROCKET_TURRET, 0, 0], entity["x"], entity["y"], out)
        x, y = place_of(worlds, index, entity)
        if low_x < x < high_x and low_y < y < high_y:
            _draw(resolution, grid, appearance_of(glyphs.appearances, worlds, index, entity, state), x, y, out)
    _draw(resolution, grid, ninja_appearance(glyphs.appearances, ninja), ninja["x"], ninja["y"], out)


@kernel
def list_sprites(levels, worlds, index, glyphs, out):
    """List what a world shows, in drawing order: doors, entities and the ninja; return how many rows were written.

    A rocket turret has two rows: the turret that a rocket has left, and the rocket or turret itself.

    Args:
        out: (S, 3) float64; number of the appearance (-1: it is not shown), x and y (world pixels). S is at least the
            number of doors, twice that of entities, and one.
    """
    ninja = worlds.ninjas[index]
    header = levels.header[ninja["level"]]
    count = 0
    for row in range(header["first_door"], header["first_door"] + header["door_count"]):
        door = levels.doors[row]
        number = door_appearance(glyphs.door_appearances, door, state_of(worlds, index, door["owner"]))
        count = _list(out, count, number, door["x"], door["y"])
    for slot in range(header["entity_count"]):
        entity, state = levels.entities[header["first_entity"] + slot], state_of(worlds, index, slot)
        if entity["type"] == ROCKET_TURRET:
            number = int(glyphs.appearances[ROCKET_TURRET, 0, 0]) if leaves_turret(entity, state) else -1
            count = _list(out, count, number, entity["x"], entity["y"])
        x, y = place_of(worlds, index, entity)
        count = _list(out, count, appearance_of(glyphs.appearances, worlds, index, entity, state), x, y)
    return _list(out, count, ninja_appearance(glyphs.appearances, ninja), ninja["x"], ninja["y"])


@kernel
def _list(out, row, number, x, y):
    """Write a row; return the next one."""
    out[row, 0], out[row, 1], out[row, 2] = number, x, y
    return row + 1


@kernel
def _grid(resolution, per_x, per_y, left, top):
    """Return the placement of stamps: phases per world pixel (across, down), bits of a phase, centre to subtract."""
    bits = 0 if resolution.stamps.shape[1] == 1 else _PHASE_BITS
    phases = 1 << bits
    return per_x * phases, per_y * phases, bits, left + resolution.centre[0], top + resolution.centre[1]


@kernel
def _bounds(resolution, left, top, out):
    """Return least and largest x, least and largest y (world pixels) of positions visible in the picture."""
    reach_x, reach_y = resolution.centre[0] + 1, resolution.centre[1] + 1
    scale_x, scale_y = resolution.scale[0], resolution.scale[1]
    high_x, high_y = (left + out.shape[1] + reach_x) * scale_x, (top + out.shape[0] + reach_y) * scale_y
    return (left - reach_x) * scale_x, high_x, (top - reach_y) * scale_y, high_y


@kernel
def leaves_turret(entity, state):
    """Return whether an entity is a flying rocket: its turret is drawn as well."""
    return entity["type"] == ROCKET_TURRET and is_flying(state)


@kernel
def appearance_of(appearances, worlds, index, entity, state):
    """Return the number of an entity's appearance, -1 if it is not drawn. A laser points along its beam."""
    orientation = min(int(entity["orientation"]), ORIENTATIONS - 1)
    if entity["type"] == LASER_TURRET:
        orientation = beam_orientation(mover_of(worlds, index, entity["mover"]))
    return int(appearances[entity["type"], orientation, state])


@kernel
def door_appearance(door_appearances, door, state):
    """Return the number of a door's appearance."""
    return int(door_appearances[door["type"], door["vertical"], state])


@kernel
def ninja_appearance(appearances, ninja):
    """Return the number of the ninja's appearance."""
    orientation = FACES_RIGHT if ninja["facing"] >= 0 else FACES_LEFT
    return int(appearances[NINJA, orientation, ninja["state"]])


@kernel
def _write_tiles(tiles, level, glyph_tiles, left, top, out):
    """Write the tiles of the square of the world whose upper left pixel is (left, top), at full size.

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
def _write_window(layers, level, left, top, out):
    """Write the square of a level's layer whose upper left pixel is (left, top); outside the layer is solid."""
    height, width, size = layers.shape[1], layers.shape[2], out.shape[0]
    first = min(max(-left, 0), size)
    end = max(min(width - left, size), first)
    for row in range(size):
        line, begin, stop = top + row, first, end
        if line < 0 or line >= height:
            begin, stop = size, size
        for column in range(begin):
            out[row, column, 0] = _SOLID
        if begin < stop:
            copy_bytes(out, row * size + begin, layers, (level * height + line) * width + left + begin, stop - begin)
        for column in range(stop, size):
            out[row, column, 0] = _SOLID


@kernel
def _blend(below, alpha, ink):
    """Return ``round(below * (255 - alpha) / 255) + ink`` in whole numbers."""
    scaled = below * (255 - alpha) + 128
    return ((scaled + (scaled >> 8)) >> 8) + ink


@kernel
def _stamp(stamps, phase, boxes, number, left, top, out):
    """Blend a stamp whose upper left corner lies at (left, top) of the picture, as far as it is inside.

    Several pixels at a time may go beyond the box, where the stamp is transparent.
    """
    first_row = max(top + boxes[number, 0], 0)
    end_row = min(top + boxes[number, 1], out.shape[0])
    first_column = max(left + boxes[number, 2] // BLENDED * BLENDED, 0)
    end_column = min(left + boxes[number, 3], out.shape[1])
    _, phases, _, height, width = stamps.shape
    alpha = (number * phases + phase) * 2 * height * width  # of the pixel at (left, top)
    ink = alpha + height * width
    reach = first_column + BLENDED
    if end_column <= reach <= out.shape[1] and reach - left <= width:  # a block a row
        target, source = (
            first_row * out.shape[1] + first_column,
            alpha + (first_row - top) * width + first_column - left,
        )
        for _ in range(first_row, end_row):
            blend_bytes(out, target, stamps, source, source + height * width)
            target += out.shape[1]
            source += width
        return
    for row in range(first_row, end_row):
        column, line = first_column, (row - top) * width - left
        while column < end_column:
            if column + BLENDED <= out.shape[1] and column - left + BLENDED <= width:
                blend_bytes(out, row * out.shape[1] + column, stamps, alpha + line + column, ink + line + column)
                column += BLENDED
            else:
                below = int(out[row, column, 0])
                out[row, column, 0] = _blend(
                    below,
                    int(stamps[number, phase, 0, row - top, column - left]),
                    int(stamps[number, phase, 1, row - top, column - left]),
                )
                column += 1


@kernel
def _draw(resolution, grid, number, x, y, out):
    """Draw an appearance (-1: nothing) at a position of the world, to its pixel or the nearest quarter of one."""
    if number >= 0:
        steps_per_x, steps_per_y, bits, centre_x, centre_y = grid
        nearest = 0.5 if bits > 0 else 0.0
        steps_x, steps_y, mask = _floor(x * steps_per_x + nearest), _floor(y * steps_per_y + nearest), (1 << bits) - 1
        phase = ((steps_y & mask) << bits) + (steps_x & mask)
        left, top = (steps_x >> bits) - centre_x, (steps_y >> bits) - centre_y
        _stamp(resolution.stamps, phase, resolution.boxes, number, left, top, out)


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
                emission, x, y, dx, dy, length = beam_of(levels, worlds, index, entity, state_of(worlds, index, slot))
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
