"""What several families put into their levels: gold along the way, and mines along walls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Route
from nclone_env.generate.sketch import Cell, Sketch

_SIDES = ((0, 1, 2, 4), (0, -1, 2, 0), (1, 0, 4, 2), (-1, 0, 0, 2))
"""Step to a neighbour, and the place in the cell next to it."""


def add_gold(sketch: Sketch, route: Route, draws: Draws, groups: int) -> None:
    """Lay rows of gold on floors, and columns and rows in the air, near the way."""
    for _ in range(groups):
        cell = draws.pick(route.cells)
        step = (1, 0) if sketch.is_floor(*cell) or draws.chance(50) else (0, -1)
        standing = sketch.is_floor(*cell)
        for number in range(draws.between(3, 6)):
            place = (cell[0] + step[0] * number, cell[1] + step[1] * number)
            if not sketch.is_free(*place) or sketch.is_floor(*place) != standing:
                break
            sketch.put("gold", place)


def add_wall_mines(sketch: Sketch, cells: Iterable[Cell], draws: Draws, runs: int, longest: int = 4) -> None:
    """Put runs of mines on floors, walls and ceilings next to some cells.

    Args:
        sketch: the level.
        cells: where runs may begin.
        draws: random choices.
        runs: number of runs.
        longest: most mines of a run, one a cell.
    """
    chosen = list(cells)
    for _ in range(runs if chosen else 0):
        cell = draws.pick(chosen)
        right, down, dx, dy = draws.pick(_SIDES)
        while sketch.is_open(*cell) and sketch.is_open(cell[0] + right, cell[1] + down):
            cell = (cell[0] + right, cell[1] + down)  # to the wall
        for number in range(draws.between(1, longest)):
            place = (cell[0] + number * abs(down), cell[1] + number * abs(right))
            if not sketch.is_free(*place) or not sketch.is_block(place[0] + right, place[1] + down):
                break
            sketch.put("mine", place, 1 if dx == 0 else (3 if dx == 4 else 2), 1 if dy == 0 else (3 if dy == 4 else 2))


def away_from(cells: Sequence[Cell], centre: Cell, steps: int) -> list[Cell]:
    """Return the cells that are at least so many columns or rows away from one."""
    return [cell for cell in cells if max(abs(cell[0] - centre[0]), abs(cell[1] - centre[1])) >= steps]


def scaled(least: int, most: int, aim: int) -> int:
    """Return the number at ``aim`` percent of the way from one number to another."""
    return least + (most - least) * aim // 100


def free_near(sketch: Sketch, cells: Iterable[Cell], reach: int) -> list[Cell]:
    """Return the free cells within some columns and rows of some cells, in order and without repetition."""
    found = {
        (column + right, row + down): None
        for column, row in cells
        for down in range(-reach, reach + 1)
        for right in range(-reach, reach + 1)
    }
    return [cell for cell in found if sketch.is_free(*cell)]


def is_pit(sketch: Sketch, column: int, row: int) -> bool:
    """Return whether a floor lies between walls of two cells or more on both sides."""
    for step in (-1, 1):
        place = column
        while sketch.is_floor(place + step, row):
            place += step
        if not (sketch.is_block(place + step, row) and sketch.is_block(place + step, row - 1)):
            return False
    return True
