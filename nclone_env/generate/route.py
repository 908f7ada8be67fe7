"""Start, switch and exit of a level in the making, the cells on the way, and the gold and mines put along it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nclone_env.generate.draws import Draws
from nclone_env.generate.sketch import BLOCK, OPEN, Cell, Sketch
from nclone_env.jit import kernel

_SLOPES = 6
"""The first of the tiles that are neither empty, full nor half blocks."""
_SIDES = ((1, 0), (0, 1), (-1, 0), (0, -1))
_WALLS = ((0, 1, 2, 4), (0, -1, 2, 0), (1, 0, 4, 2), (-1, 0, 0, 2))
"""Step to a neighbour, and the place in the cell next to it."""


class Unusable(Exception):
    """A sketch that cannot become a level; the message is the reason."""


@dataclass(frozen=True)
class Route:
    """The way through a level: start, exit switch, exit, and all cells on it, each next to the one before."""

    start: Cell
    switch: Cell
    exit: Cell
    cells: tuple[Cell, ...]

    @property
    def middle(self) -> tuple[Cell, ...]:
        """The cells that are neither near the start nor at its end: where hazards may be."""
        return self.cells[6:-3]


def distances(sketch: Sketch, source: Cell) -> np.ndarray:
    """Return (23, 42) int32: steps from a cell to each cell by open cells, slopes included; -1 if there is no way."""
    steps = np.full(sketch.tiles.shape, -1, np.int32)
    _spread(sketch.tiles, steps, source[0], source[1], np.empty(steps.size, np.int32))
    return steps


def keep_largest(sketch: Sketch, least: int) -> None:
    """Fill all hollows but the largest; a level whose largest has fewer cells than ``least`` is ``Unusable``."""
    left = {(column, row) for row, column in np.argwhere(sketch.tiles == OPEN).tolist()}
    largest = np.zeros(sketch.tiles.shape, np.bool_)
    while left:
        part = distances(sketch, min(left)) >= 0
        left -= {(column, row) for row, column in np.argwhere(part).tolist()}
        largest = max(largest, part, key=np.count_nonzero)
    if np.count_nonzero(largest) < least:
        raise Unusable("too small")
    sketch.tiles[~largest] = BLOCK


@kernel
def _spread(tiles, steps, column, row, queue):
    """Write the steps from a cell; (966,) int32 scratch."""
    columns = tiles.shape[1]
    steps[row, column] = 0
    queue[0] = row * columns + column
    first, last = 0, 1
    while first < last:
        row, column = queue[first] // columns, queue[first] % columns
        first += 1
        for side in range(4):
            b, a = row + (side == 1) - (side == 3), column + (side == 0) - (side == 2)
            if steps[b, a] < 0 and (tiles[b, a] == OPEN or tiles[b, a] >= _SLOPES):
                steps[b, a] = steps[row, column] + 1
                queue[last] = b * columns + a
                last += 1


def plan_route(sketch: Sketch, draws: Draws, least: int, most: int = 1000) -> Route:
    """Choose start, switch and exit on floors and put them there.

    The exit is far from the start; the switch is off the shortest way between them where that is possible.

    Args:
        least: fewest steps from the start by the switch to the exit.
        most: greatest number of these steps that is aimed at.
    """
    floors = [cell for cell in sketch.floors() if sketch.is_free(*cell)]
    if len(floors) < 8:
        raise Unusable("too small")
    start = _corner(draws, floors)
    from_start = distances(sketch, start)
    ends = [cell for cell in floors if min(least // 2, 10) <= _at(from_start, cell) <= most]
    if not ends:
        raise Unusable("too short")
    ends.sort(key=lambda cell: -_at(from_start, cell))
    exit_ = draws.pick(ends[: max(len(ends) // 3, 1)])
    from_exit = distances(sketch, exit_)
    middles = [
        cell
        for cell in floors
        if _at(from_start, cell) >= 6
        and _at(from_exit, cell) >= 5
        and least <= _at(from_start, cell) + _at(from_exit, cell) <= max(most, least + 8)
    ]
    if not middles:
        raise Unusable("too short")
    switch = draws.pick(middles)
    return set_route(sketch, start, switch, exit_)


def set_route(sketch: Sketch, start: Cell, switch: Cell, exit_: Cell) -> Route:
    """Put start, switch and exit into their cells and return the way by all of them."""
    to_switch, to_exit = distances(sketch, switch), distances(sketch, exit_)
    if _at(to_switch, start) < 0 or _at(to_exit, switch) < 0:
        raise Unusable("no way")
    sketch.start(start)
    sketch.put("exit_switch", switch, dy=3)
    sketch.put("exit", exit_)
    cells = [*_descend(to_switch, start), *_descend(to_exit, switch)[1:]]
    return Route(start, switch, exit_, tuple(cells))


def _at(steps: np.ndarray, cell: Cell) -> int:
    return int(steps[cell[1], cell[0]])


def _corner(draws: Draws, floors: Sequence[Cell]) -> Cell:
    """Return a floor near one of the four corners of the level."""
    column, row = draws.pick((0, 41)), draws.pick((0, 22))
    near = sorted(floors, key=lambda cell: (abs(cell[0] - column) + 2 * abs(cell[1] - row), cell))
    return draws.pick(near[: max(len(near) // 8, 1)])


def _descend(steps: np.ndarray, cell: Cell) -> list[Cell]:
    """Return the cells from one to the source of the steps."""
    way = [cell]
    while _at(steps, cell):
        column, row = cell
        around = ((column + right, row + down) for right, down in _SIDES)
        cell = next(other for other in around if _at(steps, other) == _at(steps, cell) - 1)
        way.append(cell)
    return way


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


def add_wall_mines(sketch: Sketch, cells: Iterable[Cell], draws: Draws, runs: int, longest: int) -> None:
    """Put runs of mines, one a cell, on floors, walls and ceilings next to some cells."""
    chosen = list(cells)
    for _ in range(runs if chosen else 0):
        cell = draws.pick(chosen)
        right, down, dx, dy = draws.pick(_WALLS)
        while sketch.is_open(*cell) and sketch.is_open(cell[0] + right, cell[1] + down):
            cell = (cell[0] + right, cell[1] + down)  # to the wall
        for number in range(draws.between(1, longest)):
            place = (cell[0] + number * abs(down), cell[1] + number * abs(right))
            if not sketch.is_free(*place) or not sketch.is_block(place[0] + right, place[1] + down):
                break
            sketch.put("mine", place, 1 if dx == 0 else (3 if dx == 4 else 2), 1 if dy == 0 else (3 if dy == 4 else 2))


def dress(
    sketch: Sketch, route: Route, draws: Draws, mines: int, gold: tuple[int, int], *, longest: int = 3, steps: int = 4
) -> None:
    """Put runs of mines next to the way, some steps from the start; then groups of gold, their number from a range."""
    add_wall_mines(sketch, away_from(route.middle, route.start, steps), draws, mines, longest)
    add_gold(sketch, route, draws, draws.between(*gold))


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
