"""Forms of levels: what is hollow in a solid block, drawn from shapes with straight and diagonal edges.

The diagonals of a cell part it into four quarters: top, right, bottom, left. A shape whose corners are corners of
cells, and whose edges are horizontal, vertical or diagonal, covers whole quarters, so that tiles show it exactly.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from nclone_env.game import TILE_COLUMNS, TILE_ROWS
from nclone_env.generate.draws import Draws
from nclone_env.generate.route import scaled
from nclone_env.generate.sketch import BLOCK, OPEN

_UNIT = 6  # parts of a cell, so that the middles of quarters are integers
_rows, _columns = np.indices((TILE_ROWS, TILE_COLUMNS))
_x = _UNIT * _columns[..., None] + np.array((3, 5, 3, 1))
_y = _UNIT * _rows[..., None] + np.array((1, 3, 5, 3))
_SOLID = {(0, 3): 6, (0, 1): 7, (1, 2): 8, (2, 3): 9}  # slopes by their solid quarters

Shape = np.ndarray
"""(23, 42, 4) bool: quarters of cells."""
_LEFT, _MIDDLE, _RIGHT, _TOP, _CENTRE, _BOTTOM = 1, 20, 40, 1, 11, 21
"""Columns and rows: the first, left of the middle, the last; the first, the middle one, the last."""
_LEGS = {"R": (1, 0), "L": (-1, 0), "D": (0, 1), "U": (0, -1), "/": (1, -1), "\\": (1, 1), "%": (-1, 1)}


def box(left: int, top: int, right: int, bottom: int, cut: int = 0) -> Shape:
    """Return a rectangle from the first to the last column and row, its corners cut off by so many cells."""
    x, y = _x - _UNIT * left, _y - _UNIT * top
    width, height = _UNIT * (right + 1 - left), _UNIT * (bottom + 1 - top)
    inside = (x > 0) & (x < width) & (y > 0) & (y < height)
    return inside & (np.minimum(x, width - x) + np.minimum(y, height - y) > _UNIT * cut)


def swept(column: int, row: int, size: int, right: int, down: int) -> Shape:
    """Return what a square of some cells sweeps on its way to a neighbouring cell: 1, 0 or -1 right and down."""
    left, top = min(column, column + right), min(row, row + down)
    both = box(left, top, left + size - 1 + abs(right), top + size - 1 + abs(down))
    half = _UNIT * size // 2
    aside = (_x - _UNIT * column - half) * down - (_y - _UNIT * row - half) * right
    return both & (abs(aside) < half * (abs(right) + abs(down)))


def mirrored(shape: Shape) -> Shape:
    """Return the mirror image, left and right exchanged."""
    return shape[:, ::-1][..., [0, 3, 2, 1]]


def turned(shape: Shape) -> Shape:
    """Return the shape turned by 180 degrees."""
    return shape[::-1, ::-1][..., [2, 3, 0, 1]]


def tiles_of(air: Shape) -> np.ndarray:
    """Return (23, 42) uint8: the tiles around some air; the outermost cells are solid."""
    solid = ~air
    tiles = np.where(solid.sum(axis=2) > 2, BLOCK, OPEN).astype(np.uint8)
    for quarters, tile in _SOLID.items():
        tiles[(solid == np.isin(np.arange(4), quarters)).all(axis=2)] = tile
    tiles[[0, -1]] = tiles[:, [0, -1]] = BLOCK
    return tiles


def draw_form(draws: Draws, aim: int) -> Shape:
    """Return a form for an aim, 0 easy to 100 hard."""
    draw, symmetries, _ = draws.pick([row for row in FORMS if row[2] <= aim])
    air, symmetry = draw(draws, aim), draws.pick(symmetries)
    if aim >= 30 and draws.chance(30):
        air |= draws.pick(FORMS)[0](draws, aim // 2)
    if draws.chance(40):
        air |= _nooks(air, draws)
    if symmetry is not None:
        air[:, _MIDDLE + 1 :] = symmetry(air)[:, _MIDDLE + 1 :]
    elif draws.chance(50):
        air = mirrored(air)
    return air


def _nooks(air: Shape, draws: Draws) -> Shape:
    """Small pits in floors, or niches in ceilings, in a rhythm."""
    quarters, nooks = air.sum(axis=2), np.zeros_like(air)
    solid, free = quarters == 0, quarters == 4
    period, deep, wide, side = draws.between(4, 8), draws.between(1, 2), draws.between(1, 3), draws.pick((1, -1))
    for row in range(_TOP + 3, _BOTTOM - 2):
        for column in range(_LEFT + draws.below(2), _RIGHT - wide, period):
            inside = slice(column - 1, column + wide + 1)
            first = row if side > 0 else row - deep + 1
            if (
                solid[first - 1 + (side > 0) : first + deep + (side > 0), inside].all()
                and free[row - side, inside].all()
            ):
                nooks |= box(column, first, column + wide - 1, first + deep - 1)
    return nooks


def _walk(legs: str, lengths: tuple[int, ...], draws: Draws, aim: int) -> Shape:
    """A corridor that goes leg by leg (``_LEGS``), again and again, with chambers at its ends; ``*`` draws a leg."""
    thick, wall, cut = draws.pick((2, 2, 3, 3, 4, 5)), draws.between(1, 2), draws.below(2)
    column, longer = draws.between(_LEFT + 2, _MIDDLE // 2), draws.between(0, 4)
    row = draws.between(_TOP + 2, _BOTTOM - 6) if "U" in legs or "/" in legs else _TOP + 1
    air = box(column - 2, row - 1, column + 2 + thick, row + thick - 1, cut)
    for number in range(scaled(1, 16, aim + draws.below(20))):
        right, down = _LEGS[draws.pick("RRRDDUUL") if legs == "*" else legs[number % len(legs)]]
        length = lengths[number % len(lengths)] + (draws.below(3) if legs == "*" else longer)
        if legs == "RDLU":
            length -= (thick + wall) * ((number - 1) // 2)  # a spiral
        for _ in range(length):
            x, y = column + right, row + down
            if x < _LEFT or x + thick - 1 > _RIGHT or y < _TOP or y + thick - 1 > _BOTTOM:
                break
            air |= swept(column, row, thick, right, down)
            column, row = x, y
    return air | box(column - 2, row - 1, column + thick + 1, row + thick - 1, cut)


def _hall(draws: Draws, aim: int) -> Shape:
    """A hall with blocks in a rhythm, some of them hollow, and nooks at its sides."""
    half, height = scaled(4, 19, aim + draws.below(50)), scaled(4, 19, aim + draws.below(50))
    left, top = _MIDDLE + 1 - min(half, 19), _CENTRE - min(height, 20) // 2
    bottom = top + min(height, 20) - 1
    air = box(left, top, 2 * _MIDDLE + 1 - left, bottom, draws.between(0, 4))
    wide, tall = draws.between(1, 4), draws.between(1, 4)
    across, down = wide + draws.between(2, 5), tall + draws.between(3, 4)
    shift, cut, hollow = draws.pick((0, 0, across // 2)), draws.pick((0, 0, 1)), draws.chance(40)
    for number, row in enumerate(range(top + draws.between(2, 3), bottom - tall + draws.below(2), down)):
        for column in range(left + draws.between(1, 3) + number % 2 * shift, _RIGHT - left, across):
            if draws.chance(75):
                air &= ~box(column, row, column + wide - 1, row + tall - 1, cut)
                if hollow and wide > 2 and tall > 2 and draws.chance(70):
                    air |= box(column + 1, row + 1, column + wide - 2, row + draws.pick((tall - 2, tall)))
    for _ in range(draws.between(1, 2)):
        row = draws.pick((top + draws.between(2, 3), bottom - draws.below(3)))
        air |= box(left - draws.between(1, 3), row - draws.between(0, 2), left + 1, row)
    return air


def _ring(draws: Draws, aim: int) -> Shape:
    """A corridor around a block, in which there may be a chamber with a way to it; it may be a rhombus."""
    half, height = min(scaled(9, 18, aim + draws.below(50)), 19), min(scaled(10, 18, aim + draws.below(50)), 20)
    left, right, top = _MIDDLE + 1 - half, _MIDDLE + half, _CENTRE - height // 2
    bottom, cut, thick = top + height - 1, draws.pick((0, 1, 2, 4, 6, height // 2)), draws.between(2, 4)
    air, shown, inset = box(left, top, right, bottom, cut), False, 0
    while height - 2 * (inset + thick) >= 3 and inset < draws.pick((4, 8, 8)):
        inset, shown = inset + (thick if not shown else draws.between(1, 2)), not shown
        part = box(left + inset, top + inset, right - inset, bottom - inset, max(cut - inset * 2 // 3, 0))
        air = air & ~part if shown else air | part
    if inset > thick:
        row = _CENTRE + draws.pick((-1, 1)) * (height // 2 - inset - 1)
        air |= draws.pick((box(left, row - 1, _MIDDLE, row), box(_MIDDLE, top, _MIDDLE + 1, _CENTRE)))
    row = draws.between(top + cut, bottom - cut)
    return air | box(left - draws.between(0, 3), row - 1, left + thick + cut // 2, row)


def _pods(draws: Draws, aim: int) -> Shape:
    """Chambers of many sizes in a grid, joined by corridors."""
    columns, rows = draws.pick(((2, 1), (3, 1), (2, 2), (3, 2)) if aim < 50 else ((3, 2), (3, 3), (4, 2), (5, 2)))
    wide, tall, air = min(39 // columns, 12), min(20 // rows, 9), box(0, 0, 0, 0)
    floors: dict[tuple[int, int], tuple[int, int]] = {}
    for column, row in np.ndindex(columns, rows):
        x = _MIDDLE - wide * columns // 2 + column * wide + wide // 2
        y = _CENTRE - tall * rows // 2 + row * tall + tall // 2
        across, down = draws.between(2, (wide - 2) // 2), draws.between(1, (tall - 1) // 2)
        floors[column, row] = (x, y + down)
        air |= box(x - across, y - down, x + across, y + down, draws.between(0, min(across, down)))
        if column and (row == column % 2 * (rows - 1) or draws.chance(25)):
            before, floor = floors[column - 1, row]
            air |= box(before, y + down - draws.between(0, 2), x, y + down)
            air |= box(before, min(floor, y + down) - 1, before + 1, max(floor, y + down))
        if row:
            air |= box(x, floors[column, row - 1][1], x + 1, y + down)
    return air


def _profile(draws: Draws, aim: int) -> Shape:
    """A hall with a floor in parts of equal widths: stairs, pits, bumps; its ceiling may follow."""
    half, height = min(scaled(5, 18, aim + draws.below(60)), 19), draws.between(3, 10)
    wide, gap = draws.between(1, 5), draws.pick((0, 0, 1, 2, 3))
    parts, deepest = max(half * 2 // (wide + gap), 2), draws.between(2, 11)
    pattern, parallel, cut = draws.below(6), draws.chance(35), draws.below(3)
    top = _CENTRE - (height + deepest) // 2
    air = box(_MIDDLE - half, top, _MIDDLE + 1 + half, top + height - 1, draws.between(0, 3))
    for number in range(parts):
        middle = min(number, parts - 1 - number)
        shares = (number, parts - 1 - number, 2 * middle, parts - 2 * middle, number % 2 * parts, draws.below(parts))
        depth = deepest * shares[pattern] // parts
        left = _MIDDLE - half + 1 + number * (wide + gap)
        high = min(top + depth, top + height - 2) if parallel and gap == 0 else top + height - 2
        if parallel and gap == 0:
            air &= ~box(left, top, left + wide - 1, high - 1)
        air |= box(left, high, left + wide - 1, top + height - 1 + depth)
        if cut and depth > 1 and wide > 2:
            air |= box(left - 1, top + height - 1, left + wide, top + height, 1)
    row = top + height - draws.between(1, height - 1)
    return air | box(_MIDDLE - half - draws.between(0, 3), row - 1, _MIDDLE - half + 2, row)


def _branches(draws: Draws, aim: int) -> Shape:
    """A shaft or a corridor with alcoves or chambers at its sides, and a chamber in the middle or at an end."""
    size, deep, tall = draws.between(1, 3), draws.between(2, scaled(4, 12, aim)), draws.between(2, 3)
    step, stout = tall + draws.between(2, 4), draws.chance(40)
    top, bottom = draws.between(1, 6), draws.between(17, 21)
    air = box(_MIDDLE - size + 1, top, _MIDDLE + size, bottom, draws.below(2))
    for row in range(bottom, top + tall - 1, -step):
        length = draws.between(2, deep) if draws.chance(50) else deep
        air |= box(_MIDDLE - size - length, row - tall + 1, _MIDDLE, row, draws.below(2))
        if stout and step > tall + 2:
            air |= box(_MIDDLE - size - length - 2, row - tall, _MIDDLE - size - length + 2, row, 1)
    if draws.chance(50):
        row, size = draws.pick((_CENTRE, bottom - 2)), draws.between(2, 4)
        air |= box(_MIDDLE - 2 * size, row - size, _MIDDLE + 1 + 2 * size, row + size, draws.between(0, size))
    return air


FORMS: tuple[tuple[Callable[[Draws, int], Shape], tuple[Callable[[Shape], Shape] | None, ...], int], ...] = (
    (_hall, (None, mirrored, mirrored, turned), 0),
    (_hall, (None, mirrored, turned), 0),
    (_ring, (None, mirrored, turned), 15),
    (_pods, (None, None, mirrored, turned), 10),
    (_profile, (None, mirrored), 0),
    (_profile, (None, mirrored), 0),
    (_branches, (None, mirrored, turned), 10),
    (partial(_walk, "RDLD", (34, 4)), (None,), 20),
    (partial(_walk, "RDLU", (34, 17)), (None,), 30),
    (partial(_walk, "RDRU", (4, 4)), (None, mirrored), 0),
    (partial(_walk, "RD", (5, 4)), (None, turned), 0),
    (partial(_walk, "\\R/R", (3, 2)), (None, None, mirrored), 0),
    (partial(_walk, "R\\L%", (12, 5)), (None, turned), 20),
    (partial(_walk, "*", (4, 6, 8)), (None, None, turned), 10),
    (partial(_walk, "*", (4, 9, 3)), (None, mirrored), 20),
)
"""What draws a form, the symmetries that may complete it (None: as it is), and the least aim."""
