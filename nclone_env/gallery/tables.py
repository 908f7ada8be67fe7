"""What the scripts of a page know of the game: tables of its numbers, shapes and colours, for JSON."""

from typing import Any

import numpy as np

from nclone_env.game import (
    CELL_SIZE,
    INPUT_OF_ACTION,
    KINDS,
    MAP_UNIT,
    MAX_TILE,
    NINJA,
    Kind,
    initial_state,
)
from nclone_env.level import GAME_MODES, TILES
from nclone_env.render import PALETTES, SpriteSheet, all_glyphs, numbered, tile_outline
from nclone_env.replay import STATE_NAMES

STEPS = 256
"""Steps per pixel of a coordinate that a page draws."""


def game_data(sheet: SpriteSheet, magnification: int) -> dict[str, Any]:
    """Return the tables; each name is that of a constant of the package, or stands in ``assets/scene.js``."""
    return {
        "cell": CELL_SIZE,
        "unit": MAP_UNIT,
        "steps": STEPS,
        "states": STATE_NAMES,
        "inputs": INPUT_OF_ACTION,
        "modes": dict(GAME_MODES),
        "tiles": [
            {"character": character, "name": name, "outline": np.round(tile_outline(number), 3).ravel().tolist()}
            for number, (character, name) in enumerate(TILES[: MAX_TILE + 1])
        ],
        "kinds": [_kind(kind) for kind in KINDS],
        "sprites": [shown.type for shown in numbered()[0]],
        "sheet": {"side": magnification * sheet.side, "sprite": sheet.side, "columns": sheet.columns},
        "beams": [{"width": width, "colour": _rgb(colour)} for width, colour in sheet.beams],
        "themes": {
            theme: {"air": _rgb(look.paints["background"]), "wall": _rgb(look.paints["solid"]), "edge": _rgb(look.edge)}
            for theme, look in PALETTES.items()
        },
    }


def _kind(kind: Kind) -> dict[str, Any]:
    """Return the facts of a kind, with the sprite of each orientation."""
    glyphs, turns = all_glyphs(), min(kind.orientations, 8)
    if kind.is_door:
        icons = [int(glyphs.door_appearances[kind.number, int(turn % 4 == 0), 0]) for turn in range(turns)]
    else:
        at = [(turn, initial_state(kind.number, turn)) for turn in range(turns if kind.orientations < 256 else 1)]
        icons = [int(glyphs.appearances[kind.number, turn, state]) for turn, state in at]
    return {
        "name": kind.name,
        "pack": kind.pack,
        "orientations": kind.orientations % 256,
        "modes": kind.modes % 256,
        "switch": kind.switch,
        "deadly": kind.deadly or kind.shoots,
        "radius": max(kind.radii),
        "icons": icons,
        "most": 1 if kind.number == NINJA else kind.most,
    }


def _rgb(colour: tuple[int, int, int]) -> str:
    return f"rgb{colour}".replace(" ", "")
