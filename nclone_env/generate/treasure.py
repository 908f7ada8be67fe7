"""Gold in blocks, rows, columns and stairs, at the same places of a level's parts."""

from __future__ import annotations

from typing import NamedTuple

from nclone_env.constants import TILE_COLUMNS
from nclone_env.generate.pieces import Scene
from nclone_env.generate.sketch import UP, Cell


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
    """Put gold of a few patterns on floors, in the middle of each, and into the air."""
    draws = scene.draws
    for _ in range(groups):
        pattern = draws.pick(PATTERNS)
        lines: dict[int, list[Cell]] = {}
        for cell in scene.along(UP, 2, 3, 1):
            lines.setdefault(cell[1], []).append(cell)
        if not lines:
            return
        row = draws.pick(list(lines))
        lift = draws.pick((0, 0, 0, 4, 8))
        for left, right in _runs([column for column, _ in lines[row]]):
            pieces = max((right - left + 1) // draws.pick((8, 12)), 1)
            for number in range(pieces):
                middle = 2 * left + 2 + (2 * number + 1) * (right - left + 1) // pieces  # half cells
                _put(scene, pattern, 2 * middle, 4 * (row + 2) - 1 - lift)


def _runs(columns: list[int]) -> list[tuple[int, int]]:
    """Return the first and last columns of those next to each other."""
    runs: list[tuple[int, int]] = []
    for column in sorted(columns):
        if runs and runs[-1][1] == column - 1:
            runs[-1] = (runs[-1][0], column)
        else:
            runs.append((column, column))
    return runs


def _put(scene: Scene, pattern: Pattern, x: int, bottom: int) -> None:
    """Put a pattern around a column, units of 6 pixels, if all its cells are free."""
    width = (pattern.across - 1) * pattern.gap
    mirror = -1 if scene.symmetric and x > 2 * (TILE_COLUMNS + 2) else 1
    places = [
        (x + mirror * (number * pattern.gap - width // 2), bottom - line * pattern.gap - number * pattern.rise)
        for number in range(pattern.across)
        for line in range(pattern.down)
    ]
    if all(scene.made.is_free(a // 4 - 1, b // 4 - 1) for a, b in places):
        for a, b in places:
            scene.made.put("gold", (a // 4 - 1, b // 4 - 1), a % 4, b % 4)
