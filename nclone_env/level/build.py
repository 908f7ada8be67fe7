"""Levels from words, for tests, measurements and generators; mirror images of levels, for twice as many to learn from.

::

    build_level("mine 14 50", "zap_drone 50 34 2 1", spawn=(20, 58), tiles=hall_tiles((2, 40), (5, 15)))
    build_room("exit 60 58", "exit_switch 50 58", cells={(14, 14): "#"})
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nclone_env.errors import LevelFormatError, check_integer, checked, shortened
from nclone_env.game import COLUMNS, INPUT_LEFT, INPUT_RIGHT, KINDS, LASER_TURRET, TILE_COLUMNS, TILE_ROWS
from nclone_env.level.formats.map_bytes import check_header
from nclone_env.level.formats.text import TILE_NUMBERS, TILES, parse_entities, parse_tiles
from nclone_env.level.level import Level, RawLevel

Cell = tuple[int, int]
"""Column 1..42 and row 1..23 of a playable cell; its top-left corner is at (24 * column, 24 * row) pixels."""
Cells = Mapping[Cell, int | str]
"""Tile number 0..37, or tile character, by cell."""

FULL_BLOCK = 1
ROOM_FLOOR = 15  # row
_SOURCE = "<built level>"
_HALL = ((2, 40), (5, 16))  # columns and rows; the floor is at y = 408 pixels
_MOVING = """
gold 30 66
exit 150 66
exit_switch 62 66
regular_door 56 64
locked_door 110 64
locked_door_switch 74 66
trap_door 130 64
trap_door_switch 90 66
launch_pad 84 68 6
zap_drone 50 34
zap_drone 90 38 2 2
floor_guard 140 67
bounce_block 40 62
bounce_block 100 58
thwump 66 30 2
thwump 24 40
toggle_mine 46 66
boost_pad 36 64
death_ball 120 40
death_ball 122 44
mini_drone 80 30 4 1
shove_thwump 54 50
"""
_SHOOTING = """
one_way 60 62 4
chaingun_drone 100 34
laser_drone 60 38 2 1
chaser_drone 120 34
rocket_turret 150 30
gauss_turret 20 30
evil_ninja 34 67
laser_turret 90 26 2
laser_turret 104 67 6 1
shove_thwump 48 66
"""

_UNITS = 4 * COLUMNS  # width of the world in units of records
_DIRECTED = tuple(kind.number for kind in KINDS if "o" in (kind.pack or "") and not kind.is_door)
"""Kinds that face a direction; doors are either vertical or horizontal."""
_DRONES = tuple(kind.number for kind in KINDS if "drone" in kind.name)


@checked()
def build_level(
    *entities: str,
    tiles: np.ndarray | Sequence[str] | Cells | None = None,
    spawn: tuple[int, int] = (20, 20),
    title: str = "",
) -> Level:
    """Return a level.

    Args:
        *entities: entity lines, ``name x y [orientation] [mode]`` (:mod:`nclone_env.level.formats.text`), in
            the order of a level file; an argument may hold several lines. The ninja is not among them.
        tiles: (23, 42) tile numbers; 23 strings of 42 tile characters; or the cells that are not empty. None: all cells
            are empty.
        spawn: x and y of the ninja, units of 6 pixels.
        title: title of the level.

    Raises:
        LevelFormatError: if no level file can hold the level. Messages count the entities from 1; 0 is the ninja.
    """
    lines = [line for text in entities for line in text.splitlines() if line.split("#")[0].strip()]
    records = parse_entities(["ninja {} {}".format(*spawn), *lines], _SOURCE, first=0, word="entity")
    raw = RawLevel(_tile_numbers(tiles), records, title, source=_SOURCE)
    check_header(raw)
    return Level.of(raw)


@checked()
def build_room(*entities: str, spawn: tuple[int, int] = (40, 58), cells: Cells | None = None, title: str = "") -> Level:
    """Return an empty level with a floor at y = 360 pixels; by default the ninja starts 2 pixels above the floor.

    Args:
        *entities: as for :func:`build_level`.
        spawn: x and y of the ninja, units of 6 pixels.
        cells: tiles that differ.
        title: title of the level.

    Raises:
        LevelFormatError: if no level file can hold the level.
    """
    floor = {(column, ROOM_FLOOR): FULL_BLOCK for column in range(1, TILE_COLUMNS + 1)}
    return build_level(*entities, tiles=floor | dict(cells or {}), spawn=spawn, title=title)


@checked()
def hall_tiles(columns: tuple[int, int], rows: tuple[int, int]) -> np.ndarray:
    """Return (23, 42) uint8 tiles: full blocks around an empty rectangle.

    Args:
        columns: first and last empty column, 1..42.
        rows: first and last empty row, 1..23.
    """
    for name, sides, most in (("columns", columns, TILE_COLUMNS), ("rows", rows, TILE_ROWS)):
        check_integer(f"{name}[0]", sides[0], low=1, high=most)
        check_integer(f"{name}[1]", sides[1], low=sides[0], high=most)
    tiles = np.full((TILE_ROWS, TILE_COLUMNS), FULL_BLOCK, np.uint8)
    tiles[rows[0] - 1 : rows[1], columns[0] - 1 : columns[1]] = 0
    return tiles


def _tile_numbers(tiles: np.ndarray | Sequence[str] | Cells | None) -> np.ndarray:
    """Return (23, 42) uint8 tile numbers."""
    if tiles is None:
        return np.zeros((TILE_ROWS, TILE_COLUMNS), np.uint8)
    if isinstance(tiles, Mapping):
        return _placed(tiles)
    if isinstance(tiles, np.ndarray):
        if tiles.shape != (TILE_ROWS, TILE_COLUMNS):
            raise LevelFormatError(_SOURCE, "tiles", f"shape {(TILE_ROWS, TILE_COLUMNS)}", str(tiles.shape))
        return tiles
    if not isinstance(tiles, Iterable) or not all(isinstance(line, str) for line in tiles):
        raise LevelFormatError(_SOURCE, "tiles", "an array, lines of characters or cells", shortened(tiles))
    return parse_tiles(tiles, f"{_SOURCE}: tiles")


def _placed(cells: Cells) -> np.ndarray:
    """Return empty tiles with some cells filled."""
    tiles = np.zeros((TILE_ROWS, TILE_COLUMNS), np.uint8)
    for (column, row), tile in cells.items():
        if not (1 <= column <= TILE_COLUMNS and 1 <= row <= TILE_ROWS):
            expected = f"cells of columns 1..{TILE_COLUMNS} and rows 1..{TILE_ROWS}"
            raise LevelFormatError(_SOURCE, "tiles", expected, str((column, row)))
        number = TILE_NUMBERS.get(tile) if isinstance(tile, str) else tile
        if number is None or not 0 <= number <= 255:
            raise LevelFormatError(_SOURCE, f"tile of cell {(column, row)}", "a tile number or character", repr(tile))
        tiles[row - 1, column - 1] = number
    return tiles


def moving(spawn: tuple[int, int] = (26, 66), title: str = "moving") -> Level:
    """Return a hall of 39 by 12 cells with doors, pads and entities that move, but none that shoot."""
    return build_level(_MOVING, tiles=hall_tiles(*_HALL), spawn=spawn, title=title)


def everything(spawn: tuple[int, int] = (26, 66)) -> Level:
    """Return the same hall with an entity of every kind that moves, shoots or is touched, sorted by type."""
    lines = [line for line in (_MOVING + _SHOOTING).splitlines() if line]
    numbers = {kind.name: kind.number for kind in KINDS}
    lines.sort(key=lambda line: numbers[line.split()[0]])
    return build_level(*lines, tiles=hall_tiles(*_HALL), spawn=spawn, title="everything")


def _mirror_image(name: str) -> str:
    """Return the name of a tile with left and right exchanged."""
    return name.replace("left", "*").replace("right", "left").replace("*", "right")


_TILE_NAMES = [name for _, name in TILES]
_MIRRORED_TILES = np.arange(256, dtype=np.uint8)  # numbers that are no tiles stay
_MIRRORED_TILES[: len(TILES)] = [_TILE_NAMES.index(_mirror_image(name)) for name in _TILE_NAMES]


@checked()
def mirrored(level: Level) -> Level:
    """Return the mirror image of a level; ``mirrored(mirrored(level))`` has the contents of the level.

    Play is mirrored too, except for ties that depend on the order of cells and for rounding, which add up over
    some seconds.
    """
    raw = level.raw
    image = dataclasses.replace(raw, tiles=mirrored_tiles(raw.tiles), records=_mirrored_records(raw.records))
    return Level(image, f"{level.name} mirrored")


def mirrored_inputs(inputs: np.ndarray) -> np.ndarray:
    """Return inputs, (T,) uint8, with left and right exchanged; where both are pressed, left counts, as in play."""
    left = (inputs & INPUT_LEFT) != 0
    right = ~left & ((inputs & INPUT_RIGHT) != 0)
    others = inputs & ~np.uint8(INPUT_LEFT | INPUT_RIGHT)
    return others | np.where(left, INPUT_RIGHT, np.where(right, INPUT_LEFT, 0)).astype(np.uint8)


def mirrored_tiles(tiles: np.ndarray) -> np.ndarray:
    """Return the mirror image of (rows, columns) uint8 tiles, left and right exchanged."""
    return _MIRRORED_TILES[tiles[:, ::-1]]


def _mirrored_records(records: np.ndarray) -> np.ndarray:
    mirror = records.copy()
    kinds, orientations = records[:, 0], records[:, 3]
    mirror[:, 1] = _UNITS - records[:, 1]
    directed = np.isin(kinds, _DIRECTED)
    mirror[directed, 3] = (4 - orientations[directed]) % 8
    drones = np.isin(kinds, _DRONES)
    mirror[drones, 3] = (4 - orientations[drones] // 2 * 2) % 8  # drones round odd orientations down
    turning = drones | (kinds == LASER_TURRET)
    mirror[turning, 4] = records[turning, 4] ^ 1  # clockwise or not
    return mirror
