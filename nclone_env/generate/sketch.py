"""A level in the making: cells that are carved out of a solid block, and the entities put into them.

Columns 0..41 and rows 0..22 count the playable cells. Entities are placed by cell and by a place within it, in units of
6 pixels from its top-left corner: 0 to 4, 2 is the centre.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.game import KINDS, TILE_COLUMNS, TILE_ROWS
from nclone_env.generate.draws import Draws
from nclone_env.level import Level, build_level, mirrored_tiles

OPEN, BLOCK = 0, 1
CENTRE = 2
UP, RIGHT, DOWN, LEFT = 6, 0, 2, 4
"""Orientations."""
Cell = tuple[int, int]
"""Column and row."""
Place = tuple[Cell, int, int, int, int]
"""A cell, the place in it, orientation and mode: as for :meth:`Sketch.put`."""

_CORNERS = ((-1, 1), (1, 1), (-1, -1), (1, -1))  # sides on which a corner is solid: column, row
_SLOPES = {(-1, -1): 6, (1, -1): 7, (1, 1): 8, (-1, 1): 9}
_MOONS = {(-1, -1): 10, (1, -1): 11, (1, 1): 12, (-1, 1): 13}
_PIPES = {(-1, -1): 14, (1, -1): 15, (1, 1): 16, (-1, 1): 17}
INNER_SHAPES = (_SLOPES, _PIPES)
OUTER_SHAPES = (_SLOPES, _MOONS)
_ORDER = tuple(kind.name for kind in KINDS if kind.has_entity)
"""The kinds in the order of level files; switches of doors come with their doors."""


class Proposal(NamedTuple):
    """An entity that may go into a level: its kind, and its lines of a level file."""

    name: str
    lines: str


class Sketch:
    """A level in the making; all cells are solid to begin with.

    Attributes:
        tiles: (23, 42) uint8 tile numbers.
        taken: (23, 42) bool; cells that hold an entity.
        wanted: how many of the proposed entities the level shall have.
        proposals: entities that go into the level if they are in the way of the best solution.
    """

    def __init__(self) -> None:
        self.tiles = np.full((TILE_ROWS, TILE_COLUMNS), BLOCK, np.uint8)
        self.taken = np.zeros((TILE_ROWS, TILE_COLUMNS), np.bool_)
        self.wanted = 0
        self.proposals: list[Proposal] = []
        self._spawn: tuple[int, int] = (0, 0)
        self._lines: dict[str, list[str]] = {name: [] for name in _ORDER}

    def carve(self, columns: tuple[int, int], rows: tuple[int, int], tile: int = OPEN) -> None:
        """Set the cells of a rectangle, first and last column and row included; the outermost cells stay solid."""
        left, right = max(columns[0], 1), min(columns[1], TILE_COLUMNS - 2)
        top, bottom = max(rows[0], 1), min(rows[1], TILE_ROWS - 2)
        self.tiles[top : bottom + 1, left : right + 1] = tile

    def fill(self, columns: tuple[int, int], rows: tuple[int, int]) -> None:
        """Make the cells of a rectangle solid."""
        self.carve(columns, rows, BLOCK)

    def is_symmetric(self) -> bool:
        """Return whether the tiles are their mirror image."""
        return np.array_equal(self.tiles, mirrored_tiles(self.tiles))

    def is_open(self, column: int, row: int) -> bool:
        """Return whether a cell is empty; those outside are not."""
        return 0 <= column < TILE_COLUMNS and 0 <= row < TILE_ROWS and int(self.tiles[row, column]) == OPEN

    def is_block(self, column: int, row: int) -> bool:
        """Return whether a cell is a full block; those outside are."""
        return not (0 <= column < TILE_COLUMNS and 0 <= row < TILE_ROWS) or int(self.tiles[row, column]) == BLOCK

    def is_free(self, column: int, row: int) -> bool:
        """Return whether a cell is empty and holds no entity."""
        return self.is_open(column, row) and not self.taken[row, column]

    def is_floor(self, column: int, row: int) -> bool:
        """Return whether the ninja can stand in the middle of an empty cell."""
        return self.is_open(column, row) and self.is_block(column, row + 1)

    def floors(self) -> list[Cell]:
        """Return the cells in which the ninja can stand, row by row."""
        standing = (self.tiles[:-1] == OPEN) & (self.tiles[1:] == BLOCK)
        return [(column, row) for row, column in np.argwhere(standing).tolist()]

    def start(self, cell: Cell) -> None:
        """Put the ninja on the floor of a cell."""
        self._spawn = _place(cell, CENTRE, CENTRE)
        self.taken[cell[1], cell[0]] = True

    def put(self, name: str, cell: Cell, dx: int = CENTRE, dy: int = CENTRE, *, facing: int = 0, mode: int = 0) -> None:
        """Put an entity into a cell, ``dx`` and ``dy`` units of 6 pixels from its left side and its top."""
        self._lines[name].append(_line(name, _place(cell, dx, dy), facing, mode))
        self.taken[cell[1], cell[0]] = True

    def propose(
        self, name: str, cell: Cell, dx: int = CENTRE, dy: int = CENTRE, *, facing: int = 0, mode: int = 0
    ) -> None:
        """Propose an entity; arguments as for :meth:`put`."""
        self.propose_all(name, [(cell, dx, dy, facing, mode)])

    def propose_all(self, name: str, places: Sequence[Place]) -> None:
        """Propose entities of one kind that go into the level together."""
        lines = [_line(name, _place(cell, dx, dy), facing, mode) for cell, dx, dy, facing, mode in places]
        self.proposals.append(Proposal(name, "\n".join(lines)))
        for (column, row), *_ in places:
            self.taken[row, column] = True

    def propose_door(self, cell: Cell, switch: Cell, name: str = "locked_door") -> None:
        """Propose a locked or a trap door on the right side of a cell, its switch on the floor of another one."""
        door = _line(name, _place(cell, 4, CENTRE), RIGHT, 0)
        place = _line(f"{name}_switch", _place(switch, CENTRE, 3), 0, 0)
        self.proposals.append(Proposal(name, f"{door}\n{place}"))
        self.taken[switch[1], switch[0]] = True

    def level(self, proposals: Sequence[Proposal] = ()) -> Level:
        """Return the level with some of the proposed entities."""
        lines = {
            name: [*own, *(each.lines for each in proposals if each.name == name)] for name, own in self._lines.items()
        }
        return build_level(*(line for name in _ORDER for line in lines[name]), tiles=self.tiles, spawn=self._spawn)


def round_corners(sketch: Sketch, draws: Draws, inner: int, outer: int) -> None:
    """Fill in ``inner`` percent of the corners of empty spaces, and cut off ``outer`` percent of those of blocks.

    Slopes, pipes and moons do it, all of one shape, before entities are placed.
    """
    _round(sketch, draws, draws.pick(INNER_SHAPES), OPEN, inner)
    _round(sketch, draws, draws.pick(OUTER_SHAPES), BLOCK, outer)


def _round(sketch: Sketch, draws: Draws, shapes: Mapping[tuple[int, int], int], kind: int, percent: int) -> None:
    """Replace cells of a kind that have full blocks on two sides, and open cells on the other sides and beyond."""
    tiles, inside = sketch.tiles, (slice(1, TILE_ROWS - 1), slice(1, TILE_COLUMNS - 1))
    padded = np.where((tiles == OPEN) | (tiles == BLOCK), tiles, 2)

    def beside(right: int, down: int) -> np.ndarray:
        return padded[1 + down : TILE_ROWS - 1 + down, 1 + right : TILE_COLUMNS - 1 + right]

    for side, level in _CORNERS:
        solid = (beside(side, 0) == BLOCK) & (beside(0, level) == BLOCK)
        empty = (beside(-side, 0) == OPEN) & (beside(0, -level) == OPEN) & (beside(-side, -level) == OPEN)
        for row, column in np.argwhere((padded[inside] == kind) & solid & empty).tolist():
            if draws.chance(percent):
                tiles[row + 1, column + 1] = shapes[side, level]


def mirror(sketch: Sketch) -> None:
    """Make the right half of the tiles the mirror image of the left half; before corners are rounded."""
    half = TILE_COLUMNS // 2
    sketch.tiles[:, half:] = sketch.tiles[:, :half][:, ::-1]


def centre(sketch: Sketch) -> None:
    """Move what was carved to the middle; before entities are placed."""
    rows, columns = np.nonzero(sketch.tiles != BLOCK)
    down = (TILE_ROWS - 1 - rows.min() - rows.max()) // 2
    right = (TILE_COLUMNS - 1 - columns.min() - columns.max()) // 2
    sketch.tiles[:] = np.roll(sketch.tiles, (down, right), (0, 1))


def _place(cell: Cell, dx: int, dy: int) -> tuple[int, int]:
    return 4 * (cell[0] + 1) + dx, 4 * (cell[1] + 1) + dy


def _line(name: str, place: tuple[int, int], facing: int, mode: int) -> str:
    return f"{name} {place[0]} {place[1]} {facing} {mode}"
