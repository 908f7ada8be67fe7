"""Rooms: a building of rooms with ledges, joined by doorways and hatches."""

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import dress, plan_route, scaled
from nclone_env.generate.sketch import Sketch, centre, round_corners

Span = tuple[int, int]
_LEAST_WIDTH, _LEAST_HEIGHT = 8, 5


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the size of the building and the number of mines."""
    made = Sketch()
    width, height = scaled(26, 40, aim + draws.below(50)), scaled(12, 21, aim + draws.below(50))
    left, top = draws.between(1, 41 - width), draws.between(1, 22 - height)
    _divide(made, draws, (left, left + min(width, 40) - 1), (top, top + min(height, 21) - 1))
    centre(made)
    round_corners(made, draws, draws.pick((0, 40, 90)), draws.pick((0, 30)))
    route = plan_route(made, draws, least=scaled(18, 45, aim))
    dress(made, route, draws, scaled(1, 14, aim), (5, 10), longest=4)
    return made


def _divide(made: Sketch, draws: Draws, columns: Span, rows: Span) -> None:
    """Carve rooms out of a rectangle, and openings between them."""
    width, height = columns[1] - columns[0] + 1, rows[1] - rows[0] + 1
    wide, tall = width >= 2 * _LEAST_WIDTH + 1, height >= 2 * _LEAST_HEIGHT + 1
    if (not wide and not tall) or (width <= 16 and height <= 9 and draws.chance(45)):
        _furnish(made, draws, columns, rows)
    elif wide and (not tall or draws.below(width + 2 * height) < width):
        wall = draws.between(columns[0] + _LEAST_WIDTH, columns[1] - _LEAST_WIDTH)
        _divide(made, draws, (columns[0], wall - 1), rows)
        _divide(made, draws, (wall + 1, columns[1]), rows)
        _open_wall(made, draws, wall, rows)
    else:
        floor = draws.between(rows[0] + _LEAST_HEIGHT, rows[1] - _LEAST_HEIGHT)
        _divide(made, draws, columns, (rows[0], floor - 1))
        _divide(made, draws, columns, (floor + 1, rows[1]))
        _open_floor(made, draws, floor, columns)


def _furnish(made: Sketch, draws: Draws, columns: Span, rows: Span) -> None:
    """Carve a room with ledges, blocks or steps."""
    made.carve(columns, rows)
    width, height = columns[1] - columns[0] + 1, rows[1] - rows[0] + 1
    shape = draws.below(4)
    if shape == 0 and height >= 6:  # a ledge along a wall
        length, row = draws.between(2, width // 2), rows[1] - draws.between(2, 3)
        left = columns[0] if draws.chance(50) else columns[1] - length + 1
        made.fill((left, left + length - 1), (row, row))
    elif shape == 1 and height >= 6 and width >= 9:  # a platform in the middle
        length = draws.between(2, width - 6)
        left, row = columns[0] + (width - length) // 2, rows[1] - draws.between(2, height - 3)
        made.fill((left, left + length - 1), (row, row + draws.below(2)))
    elif shape == 2:  # steps
        left = draws.chance(50)
        for step in range(1, min(height - 3, width // 3)):
            column = columns[0] + 2 * (step - 1) if left else columns[1] - 2 * (step - 1)
            span = (column, column + 1) if left else (column - 1, column)
            made.fill(span, (rows[1] - min(height - 3, width // 3) + step + 1, rows[1]))
    elif width >= 10:  # blocks on the floor
        for _ in range(draws.between(1, 2)):
            column, size = draws.between(columns[0] + 2, columns[1] - 4), draws.between(1, 2)
            made.fill((column, column + size), (rows[1] - draws.below(2), rows[1]))


def _open_wall(made: Sketch, draws: Draws, wall: int, rows: Span) -> None:
    """Make a doorway in a wall, at the foot of one of the rooms."""
    places = [
        row
        for row in range(rows[0] + 1, rows[1] + 1)
        if all(made.is_open(wall + side, row - up) for side in (-1, 1) for up in (0, 1))
    ]
    standing = [row for row in places if made.is_floor(wall - 1, row) or made.is_floor(wall + 1, row)]
    for _ in range(1 + draws.chance(25)):
        if places:
            row = draws.pick(standing or places)
            made.carve((wall, wall), (row - draws.between(1, 2), row))


def _open_floor(made: Sketch, draws: Draws, floor: int, columns: Span) -> None:
    """Make a hatch in a floor."""
    places = [
        column
        for column in range(columns[0], columns[1] - 1)
        if all(made.is_open(column + right, floor + side) for side in (-1, 1) for right in (0, 1, 2))
    ]
    at_wall = [
        column
        for column in places
        if any(all(made.is_block(column + side, floor + down) for down in (1, 2)) for side in (-1, 3))
    ]  # there the ninja can climb
    for _ in range(1 + draws.chance(35)):
        if places:
            column = draws.pick(at_wall or places)
            made.carve((column, column + 2), (floor, floor))
