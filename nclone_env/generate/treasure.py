"""Gold in blocks, rows, columns and stairs, at the same places of a level's parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import TILE_COLUMNS
from nclone_env.generate.pieces import Scene
from nclone_env.generate.sketch import UP


class Pattern(NamedTuple):
    """Pieces of gold across and down, units of 6 pixels apart, and by how many each column is above the one before."""

    across: int
    down: int
    gap: int = 2
    rise: int = 0


PATTERNS = (
    *(Pattern(3, 1), Pattern(4, 1), Pattern(3, 3), Pattern(2, 2), Pattern(4, 2), Pattern(6, 3)),
    *(Pattern(1, 5), Pattern(2, 4), Pattern(3, 3, 4), Pattern(5, 1, 4), Pattern(8, 1, 4), Pattern(6, 4, 4)),
    *(Pattern(5, 2, 4), Pattern(4, 1, 4, 4), Pattern(6, 1, 2, 2), Pattern(6, 1, 4, 2)),
)


def add_treasure(scene: Scene, groups: int) -> None:
    """Put gold on floors, or some way above: a pattern in the middle of each floor of a row, several on long ones."""
    draws = scene.draws
    for _ in range(groups):
        cells = scene.along(UP, 2, 3, 1)
        if not cells:
            return
        row, pattern, lift, share = draws.pick(cells)[1], draws.pick(PATTERNS), draws.pick((0, 0, 0, 4, 8)), (8, 12)
        columns = [column for column, other in cells if other == row]
        for run in np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1):
            pieces = max(len(run) // draws.pick(share), 1)
            for number in range(pieces):
                halves = 2 * int(run[0]) + 2 + (2 * number + 1) * len(run) // pieces
                _put(scene, pattern, 2 * halves, 4 * (row + 2) - 1 - lift)


def _put(scene: Scene, pattern: Pattern, x: int, bottom: int) -> None:
    """Put a pattern around a column, units of 6 pixels, if all its cells are free."""
    side = -1 if scene.symmetric and x > 2 * (TILE_COLUMNS + 2) else 1
    left = x - side * ((pattern.across - 1) * pattern.gap // 2)
    places = [
        (left + side * across * pattern.gap, bottom - down * pattern.gap - across * pattern.rise)
        for across, down in np.ndindex(pattern.across, pattern.down)
    ]
    if all(scene.made.is_free(a // 4 - 1, b // 4 - 1) for a, b in places):
        for a, b in places:
            scene.made.put("gold", (a // 4 - 1, b // 4 - 1), a % 4, b % 4)
