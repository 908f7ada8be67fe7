"""Tiles as text: the character of each tile and its description (physics 01, section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nclone_env.constants import MAX_TILE, TILE_COLUMNS, TILE_ROWS
from nclone_env.errors import LevelFormatError, shortened

_CORNERS = ("top-left", "top-right", "bottom-right", "bottom-left")
_CORNER_GROUPS = (  # characters and name of each group of four, by the corner that is solid
    ("abcd", "45 degree slope"),
    ("efgh", "quarter moon"),
    ("ijkl", "quarter pipe"),
    ("mnop", "short mild slope"),
    ("qrst", "raised mild slope"),
    ("ABCD", "short steep slope"),
    ("EFGH", "raised steep slope"),
)
_SIDES = ("top", "right", "bottom", "left")

TILES: tuple[tuple[str, str], ...] = (
    (".", "empty"),
    ("#", "full block"),
    *((character, f"half block, {side}") for character, side in zip("^>_<", _SIDES)),
    *(
        (character, f"{name}, {corner}")
        for characters, name in _CORNER_GROUPS
        for character, corner in zip(characters, _CORNERS)
    ),
    *((character, f"glitched, {side} edge only") for character, side in zip("1234", _SIDES)),
)
"""Character and description by tile number 0..37; sides and corners name the solid part."""

TILE_CHARACTERS = "".join(character for character, _ in TILES)
TILE_NUMBERS = {character: number for number, character in enumerate(TILE_CHARACTERS)}


def parse_tiles(lines: Sequence[str], source: str, first: int = 1) -> np.ndarray:
    """Read the tiles of a level.

    Args:
        lines: 23 strings of 42 characters.

    Returns:
        (23, 42) uint8 tile numbers.

    Raises:
        LevelFormatError: at the first error; the message names the line.
    """
    tiles = np.zeros((TILE_ROWS, TILE_COLUMNS), np.uint8)
    for row, line in enumerate(lines[:TILE_ROWS]):
        where = f"line {first + row}"
        if len(line) != TILE_COLUMNS:
            raise LevelFormatError(source, where, f"{TILE_COLUMNS} tiles", f"{len(line)}: {shortened(line)}")
        unknown = next((column for column, tile in enumerate(line) if tile not in TILE_NUMBERS), None)
        if unknown is not None:
            expected = f"a tile, one of {TILE_CHARACTERS}, in column {unknown + 1}"
            raise LevelFormatError(source, where, expected, repr(line[unknown]))
        tiles[row] = [TILE_NUMBERS[tile] for tile in line]
    if len(lines) != TILE_ROWS:
        where = f"line {first + min(len(lines), TILE_ROWS)}"
        raise LevelFormatError(source, where, f"{TILE_ROWS} lines of tiles", str(len(lines)))
    return tiles


def format_tiles(tiles: np.ndarray, source: str) -> list[str]:
    """Return the lines of (23, 42) tiles.

    Raises:
        LevelFormatError: if a tile number has no character.
    """
    unknown = np.argwhere(tiles > MAX_TILE)
    if unknown.size:
        row, column = unknown[0].tolist()
        where = f"tile in column {column + 1}, row {row + 1}"
        expected = f"a tile of 0..{MAX_TILE}, for which text has a character"
        raise LevelFormatError(source, where, expected, str(tiles[row, column]))
    return ["".join(TILE_CHARACTERS[tile] for tile in row) for row in tiles.tolist()]
