"""The character of each tile in level text files, and what the tile is (physics 01, section 2.3)."""

from __future__ import annotations

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
