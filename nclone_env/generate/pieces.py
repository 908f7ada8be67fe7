"""Set pieces, gates and gold: what is put into a form, in lines with a rhythm, and the tables of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nclone_env.game import TILE_COLUMNS
from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Route, distances, is_pit, scaled
from nclone_env.generate.sketch import BLOCK, CENTRE, DOWN, LEFT, OPEN, RIGHT, UP, Cell, Place, Sketch

_AXIS = 2 * (TILE_COLUMNS + 2)  # of mirror images, units of 6 pixels
AIR, PIT = -1, 14
"""Instead of the orientation of a wall: in the air, and ``UP`` on the floors of pits."""
_STEP = {RIGHT: (1, 0), DOWN: (0, 1), LEFT: (-1, 0), UP: (0, -1), PIT: (0, -1), AIR: (0, 0)}
_TALLEST = 7  # rows of the tallest corridor that a gate closes
_KINDS = ("locked_door", "locked_door", "trap_door", "regular_door")


@dataclass(frozen=True)
class Scene:
    """A level in the making, its aim, 0 easy to 100 hard, its route, and whether its tiles are their mirror image."""

    made: Sketch
    draws: Draws
    aim: int
    route: Route
    symmetric: bool

    def along(self, wall: int, room: int, steps: int, ends: int = 2) -> list[Cell]:
        """Return free cells at walls that face one way, with so many open cells before them, the own one included.

        In the ``AIR``, so many cells around are open. ``steps`` and ``ends`` keep away from start, switch and exit.
        """
        free = (self.made.tiles == OPEN) & ~self.made.taken
        for (column, row), reach in zip((self.route.start, self.route.switch, self.route.exit), (steps, ends, ends)):
            free[max(row - reach + 1, 0) : row + reach, max(column - reach + 1, 0) : column + reach] = False
        if wall == AIR:
            around = range(-room, room + 1)
            free &= np.all([self._beside(a, b, OPEN) for a in around for b in around], axis=0)
        else:
            right, down = _STEP[wall]
            free &= self._beside(-right, -down, BLOCK)
            free &= np.all([self._beside(n * right, n * down, OPEN) for n in range(room)], axis=0)
        cells = [(column, row) for row, column in np.argwhere(free).tolist()]
        return cells if wall != PIT else [cell for cell in cells if is_pit(self.made, *cell)]

    def _beside(self, right: int, down: int, tile: int) -> np.ndarray:
        """Return (23, 42) bool: whether the cell so far away has a tile; the outermost cells are solid."""
        return np.roll(self.made.tiles == tile, (-down, -right), (0, 1))

    def images(self, column: int) -> tuple[int, ...]:
        """Return a column, in a symmetric level with its mirror image, the left one first."""
        other = TILE_COLUMNS - 1 - column
        return (min(column, other), max(column, other)) if self.symmetric else (column,)


class Piece(NamedTuple):
    """A set piece: entities of one kind in lines along walls that face one way, or in the air.

    ``room`` cells before them are open; ``steps`` are cells from one to the next, to choose from, 0 for two in each
    cell; ``most`` is their number at an aim of 100; ``inset`` is their distance from the wall, units of 6 pixels;
    ``spin`` turns them from the orientation of the wall, clockwise in eighths, and is None if they have none.
    """

    kind: str
    walls: tuple[int, ...]
    room: int = 2
    steps: tuple[int, ...] = (1,)
    most: int = 40
    inset: int = 1
    spin: int | None = None


_SIDES, _ALL = (RIGHT, LEFT), (DOWN, RIGHT, LEFT)
HAZARDS = (
    Piece("mine", (DOWN,), 3, (0, 0, 1, 2), 60),
    Piece("mine", _ALL, 3, (0, 1), 60),
    Piece("mine", _SIDES, 3, (0, 1), 40),
    Piece("mine", (PIT,), 2, (0, 0, 1), 60),
    Piece("mine", (UP,), 3, (4, 5, 6), 12),
    Piece("mine", (UP,), 5, (0, 1), 10),
    Piece("toggle_mine", (UP,), 3, (0, 1, 2), 16),
    Piece("toggle_mine", (DOWN, UP), 3, (1, 2, 3), 24),
    Piece("mine", (AIR,), 1, (1, 3, 4, 5), 20),
    Piece("toggle_mine", (AIR,), 1, (1, 3, 4), 24),
)
"""What hurts to touch and stays where it is."""

MOVERS = (
    Piece("thwump", (DOWN,), 4, (3, 4, 5), 9, 2, 0),
    Piece("thwump", _SIDES, 4, (3, 4), 6, 2, 0),
    Piece("floor_guard", (UP,), 2, (7, 9), 6, 1),
    Piece("zap_drone", (UP,), 2, (4, 6, 8), 8, 2, 2),
    Piece("zap_drone", (DOWN,), 2, (4, 6, 8), 8, 2, 2),
    Piece("mini_drone", (UP,), 2, (3, 4, 5), 12, 2, 2),
    Piece("chaser_drone", (UP,), 2, (8, 12), 4, 2, 2),
    Piece("laser_drone", (DOWN,), 2, (9,), 3, 2, 2),
    Piece("chaingun_drone", (DOWN,), 2, (9,), 3, 2, 2),
    Piece("gauss_turret", (AIR,), 1, (6, 9, 12), 4),
    Piece("rocket_turret", (DOWN,), 2, (9, 12), 3, 2),
    Piece("laser_turret", (DOWN,), 4, (6, 8, 10), 4, 2, 0),
    Piece("death_ball", (AIR,), 1, (5, 8, 10), 6),
    Piece("evil_ninja", (UP,), 2, (1, 2, 3), 14, 2),
    Piece("shove_thwump", (UP,), 2, (4, 6, 8), 6, 2),
)
"""What moves or shoots: added if it is in the way of the best solution."""

HELPERS = (
    Piece("launch_pad", (UP,), 5, (5, 7), 4, 0, 0),
    Piece("launch_pad", (UP,), 3, (6, 8), 4, 0, 1),
    Piece("bounce_block", (AIR,), 1, (2, 4), 6),
    Piece("boost_pad", (AIR,), 1, (4, 5), 5),
    Piece("one_way", (AIR,), 1, (2, 4, 6), 8, 2, UP),
)
"""What carries the ninja."""


def lay(scene: Scene, piece: Piece, *, proposed: bool = False) -> None:
    """Put a set piece into a level, or propose it, on one to three lines; in a symmetric level with its image."""
    draws, step, mode = scene.draws, scene.draws.pick(piece.steps), scene.draws.below(2) * ("drone" in piece.kind)
    limit, places = max(scaled(piece.most // 2, piece.most, scene.aim), 1), list[Place]()
    for wall in piece.walls:
        lines: dict[int, list[Cell]] = {}
        for cell in _own_half(scene, piece, wall):
            lines.setdefault(cell[0] if wall in _SIDES else cell[1], []).append(cell)
        first = draws.pick(lines[draws.pick(list(lines))])[wall in _SIDES] if lines else 0
        for line in draws.shuffled(list(lines))[: draws.between(1, 3)]:
            cells = [cell for cell in lines[line] if (cell[wall in _SIDES] - first) % max(step, 1) == 0]
            places += [
                _place(piece, cell, wall, mode, shift) for cell in cells for shift in ((0,) if step else (-1, 1))
            ]
    places = places[: limit - limit // 2] if scene.symmetric else places[:limit]
    places += [_image(piece, place) for place in places if scene.symmetric]
    if places and proposed:
        scene.made.propose_all(piece.kind, places)
    for cell, dx, dy, facing, turn in () if proposed else places:
        scene.made.put(piece.kind, cell, dx, dy, facing=facing, mode=turn)


def _own_half(scene: Scene, piece: Piece, wall: int) -> list[Cell]:
    """Return the cells for a piece; in a symmetric level those of the left half whose images are free too."""
    steps = 4 if piece.kind == "mine" else 6
    cells = scene.along(wall, piece.room, steps)
    if not scene.symmetric:
        return cells
    images = set(scene.along((4 - wall) % 8 if wall in _SIDES else wall, piece.room, steps))
    return [cell for cell in cells if cell[0] < TILE_COLUMNS // 2 and (TILE_COLUMNS - 1 - cell[0], cell[1]) in images]


def _place(piece: Piece, cell: Cell, wall: int, mode: int, shift: int) -> Place:
    """Return where an entity of a set piece is, so many units of 6 pixels aside."""
    facing = 0 if piece.spin is None else (max(wall, 0) + piece.spin) % 8
    inset = CENTRE if wall == AIR else piece.inset if wall in (RIGHT, DOWN) else 4 - piece.inset
    dx, dy = (inset, CENTRE + shift) if wall in _SIDES else (CENTRE + shift, inset)
    return cell, dx, dy, facing, mode


def _image(piece: Piece, place: Place) -> Place:
    """Return the place of an entity in the mirror image of its level."""
    (column, row), dx, dy, facing, mode = place
    turning = "drone" in piece.kind or piece.kind == "laser_turret"
    return (TILE_COLUMNS - 1 - column, row), 4 - dx, dy, 0 if piece.spin is None else (4 - facing) % 8, mode ^ turning


PATTERNS = (
    *((3, 1, 2, 0), (4, 1, 2, 0), (3, 3, 2, 0), (2, 2, 2, 0), (4, 2, 2, 0), (6, 3, 2, 0), (1, 5, 2, 0), (2, 4, 2, 0)),
    *((3, 3, 4, 0), (5, 1, 4, 0), (8, 1, 4, 0), (6, 4, 4, 0), (5, 2, 4, 0), (4, 1, 4, 4), (6, 1, 2, 2), (6, 1, 4, 2)),
)
"""Gold across and down, units of 6 pixels between them, and by how many each column is above the one before."""


def add_gold(scene: Scene, groups: int) -> None:
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


def _put(scene: Scene, pattern: tuple[int, int, int, int], x: int, bottom: int) -> None:
    """Put a pattern around a column, units of 6 pixels, if all its cells are free; with its image where symmetric."""
    across, down, gap, rise = pattern
    left = x - (across - 1) * gap // 2
    places = {(left + a * gap, bottom - b * gap - a * rise) for a, b in np.ndindex(across, down)}
    if scene.symmetric:
        if x < _AXIS <= left + (across - 1) * gap or x > _AXIS:
            return
        places |= {(2 * _AXIS - a, b) for a, b in places}
    if all(scene.made.is_free(a // 4 - 1, b // 4 - 1) for a, b in places):
        for a, b in sorted(places):
            scene.made.put("gold", (a // 4 - 1, b // 4 - 1), a % 4, b % 4)


def add_gates(scene: Scene, count: int) -> int:
    """Build gates across the way and propose their doors; return how many doors were proposed.

    The switch of a locked door is off the way, on this side of the door; that of a trap door on the way before it.
    """
    draws, made, way = scene.draws, scene.made, scene.route.cells
    for cell in draws.shuffled(way[6:-1]):
        walls = _walls(scene, cell) if count else None
        if walls is None:
            continue
        count, kind = count - 1, draws.pick(_KINDS)
        for column, row in walls:
            made.tiles[row, column] = BLOCK
        switches = _this_side(scene, cell) if kind == "locked_door" else way[4 : way.index(cell) - 2]
        switches = [place for place in switches if made.is_free(*place) and made.is_floor(*place)]
        if kind == "regular_door":
            made.put(kind, cell, dx=4)
        elif switches:
            made.propose_door(cell, draws.pick(switches), kind)
        for column in scene.images(cell[0]):
            made.taken[cell[1], column] = True
    return len(made.proposals)


def _walls(scene: Scene, cell: Cell) -> list[Cell] | None:
    """Return the cells above a doorway, with their image; None if it lacks floors at its sides or a low ceiling."""
    made, (column, row), top = scene.made, cell, cell[1]
    while made.is_open(column, top - 1):
        top -= 1
    columns = scene.images(column)
    beside = [(place + side, row) for place in columns for side in (-1, 0, 1)]
    inside = [(place, above) for place in columns for above in range(top, row)]
    fits = row - top < _TALLEST and (len(columns) == 1 or abs(columns[0] - columns[1]) > 4)
    free = all(made.is_free(*place) for place in (*beside, *inside)) and all(made.is_floor(*place) for place in beside)
    return inside if fits and free else None


def _this_side(scene: Scene, cell: Cell) -> list[Cell]:
    """Return the floors off the way that can be reached while a doorway is closed, the far half of them."""
    tiles, (column, row) = scene.made.tiles, cell
    tiles[row, column] = BLOCK
    steps = distances(scene.made, scene.route.start)
    tiles[row, column] = OPEN
    off = [place for place in scene.made.floors() if place not in scene.route.cells]
    places = sorted((place for place in off if steps[place[1], place[0]] >= 6), key=lambda c: -int(steps[c[1], c[0]]))
    return places[: (len(places) + 1) // 2]
