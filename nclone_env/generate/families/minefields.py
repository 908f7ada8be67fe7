"""Mine fields: halls with curtains, lattices, chains and rings of mines, and ways between them."""

from collections.abc import Callable

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Route, add_gold, away_from, plan_route, scaled
from nclone_env.generate.sketch import Cell, Sketch, mirror, round_corners

Hall = tuple[int, int, int, int]
"""First and last column, top and bottom row."""


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the size of the hall and the number of mines."""
    made = Sketch()
    width, height = scaled(30, 40, aim + draws.below(60)), scaled(12, 20, aim + draws.below(60))
    width, height = min(width, 40), min(height, 21)
    left, top = (42 - width) // 2, (23 - height) // 2
    hall = (left, left + width - 1, top, top + height - 1)
    made.carve(hall[:2], hall[2:])
    _pillars(made, draws, hall)
    if draws.chance(50):
        mirror(made)
    round_corners(made, draws, draws.pick((0, 50, 100)), draws.pick((0, 60)))
    route = plan_route(made, draws, least=scaled(20, 46, aim))
    for _ in range(scaled(2, 3, aim + draws.below(30))):
        draws.pick(_PATTERNS)(made, draws, hall, route)
    add_gold(made, route, draws, draws.between(5, 10))
    return made


def _pillars(made: Sketch, draws: Draws, hall: Hall) -> None:
    """Put platforms in tiers, columns, or steps into the hall."""
    left, right, top, bottom = hall
    shape = draws.below(3)
    if shape == 0:  # tiers
        for row in range(bottom - draws.between(2, 3), top + 2, -draws.between(3, 4)):
            column = left + draws.below(4)
            while column < right - 2:
                length = draws.between(3, 9)
                made.fill((column, min(column + length - 1, right)), (row, row))
                column += length + draws.between(3, 5)
    elif shape == 1:  # columns from the floor
        for column in range(left + draws.between(3, 6), right - 3, draws.between(5, 8)):
            made.fill((column, column + draws.below(2)), (bottom - draws.between(0, (bottom - top) // 2), bottom))
    else:  # floating blocks
        for column in range(left + draws.between(2, 5), right - 3, draws.between(6, 8)):
            for row in range(bottom - 3, top + 2, -draws.between(4, 5)):
                made.fill((column, column + draws.between(1, 2)), (row, row + draws.below(2)))


def _put(made: Sketch, route: Route, cell: Cell, dx: int = 2, dy: int = 2) -> None:
    """Put a mine into a cell, unless it is taken or near the start, the switch or the exit."""
    clear = all(away_from([cell], place, 2) for place in (route.switch, route.exit)) and away_from(
        [cell], route.start, 4
    )
    if clear and made.is_free(*cell):
        made.put("mine", cell, dx, dy)


def _curtains(made: Sketch, draws: Draws, hall: Hall, route: Route) -> None:
    """Hang columns of mines, each with a gap."""
    left, right, top, bottom = hall
    for column in range(left + draws.between(3, 6), right - 1, draws.between(5, 9)):
        floors = [row for row in range(top, bottom + 1) if made.is_floor(column, row)] or [bottom]
        gap, size = draws.pick(floors) - draws.below(3), draws.between(3, 5)
        for row in range(top, bottom + 1):
            if not gap - size < row <= gap:
                _put(made, route, (column, row))


def _lattice(made: Sketch, draws: Draws, hall: Hall, route: Route) -> None:
    """Spread mines evenly, every other row shifted."""
    left, right, top, bottom = hall
    across, down, kept = draws.between(4, 6), draws.between(3, 4), draws.between(60, 100)
    for number, row in enumerate(range(top + 2, bottom, down)):
        for column in range(left + 2 + (number % 2) * (across // 2), right, across):
            if draws.chance(kept):
                _put(made, route, (column, row))


def _chains(made: Sketch, draws: Draws, hall: Hall, route: Route) -> None:
    """Draw diagonal chains of mines."""
    left, right, top, bottom = hall
    for _ in range(draws.between(3, 6)):
        column, row = draws.between(left + 4, right - 4), draws.between(top + 1, bottom - 2)
        right_step, down_step = draws.pick(((1, 1), (1, -1), (1, 0), (0, 1)))
        for number in range(draws.between(3, 6)):
            _put(made, route, (column + number * right_step, row + number * down_step))


def _edges(made: Sketch, draws: Draws, hall: Hall, route: Route) -> None:
    """Put mines on the ends of platforms and under them."""
    left, right, top, bottom = hall
    for row in range(top, bottom):
        for column in range(left, right + 1):
            under, over = made.is_block(column, row - 1), made.is_block(column, row + 1)
            end = not (made.is_block(column - 1, row + 1) and made.is_block(column + 1, row + 1))
            if row > top and under and draws.chance(40):
                _put(made, route, (column, row), 2, 1)
            elif over and end and draws.chance(45):
                _put(made, route, (column, row), 2, 3)


def _toggles(made: Sketch, draws: Draws, hall: Hall, route: Route) -> None:
    """Put toggle mines on floors, and into the air along the way."""
    for cell in away_from(route.middle, route.start, 4):
        if draws.chance(30) and made.is_free(*cell):
            made.put("toggle_mine", cell, 2, 3 if made.is_floor(*cell) else 2)


_PATTERNS: tuple[Callable[[Sketch, Draws, Hall, Route], None], ...] = (_curtains, _lattice, _chains, _edges, _toggles)
