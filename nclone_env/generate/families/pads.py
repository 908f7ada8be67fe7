"""Launch pads: islands and high platforms over mined pits, reached by launch pads, boost pads and bounce blocks."""

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Route, add_gold, away_from, free_near, is_pit, plan_route, scaled
from nclone_env.generate.sketch import UP, Cell, Sketch, round_corners

_UP_RIGHT, _UP_LEFT = 7, 5


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the number and distance of the islands and the number of mines."""
    made = Sketch()
    islands = _islands(made, draws, aim)
    round_corners(made, draws, draws.pick((0, 60)), draws.pick((0, 60, 100)))
    route = plan_route(made, draws, least=scaled(20, 44, aim))
    _pads(made, draws, route, islands)
    _mine_pits(made, draws, route, scaled(30, 90, aim))
    for _ in range(draws.between(1, scaled(2, 4, aim))):
        _helper(made, draws, route)
    add_gold(made, route, draws, draws.between(5, 9))
    return made


def _islands(made: Sketch, draws: Draws, aim: int) -> list[Cell]:
    """Carve a hall with columns of different heights between pits; return the ends of their tops."""
    width = min(scaled(30, 38, aim + draws.below(40)), 40)
    height = draws.between(14, 21)
    left, top = (42 - width) // 2, (23 - height) // 2
    bottom = top + height - 1
    made.carve((left, left + width - 1), (top, bottom))
    column, ends = left, []
    while column < left + width - 2:
        length, row = draws.between(3, 6), bottom - draws.between(1, height - 6)
        made.fill((column, min(column + length - 1, left + width - 1)), (row, bottom))
        ends += [(column, row - 1), (min(column + length, left + width) - 1, row - 1)]
        column += length + draws.between(2, scaled(3, 6, aim))
    for column in range(left + draws.between(3, 8), left + width - 6, draws.between(8, 11)):  # platforms above
        row = top + draws.between(4, 7)
        if all(made.is_open(column + right, row + down) for right in range(-1, 6) for down in range(-2, 4)):
            made.fill((column, column + draws.between(2, 4)), (row, row))
    for _ in range(draws.between(1, 3)):  # walls to go over or under
        column = draws.between(left + 4, left + width - 5)
        made.fill((column, column), (top, top + draws.between(1, 5)))
    return ends


def _pads(made: Sketch, draws: Draws, route: Route, ends: list[Cell]) -> None:
    """Put launch pads at the foot of walls and on the ends of islands."""
    feet = [
        (column, row)
        for column, row in made.floors()
        if made.is_free(column, row)
        and (made.is_block(column - 1, row) or made.is_block(column + 1, row))
        and all(made.is_open(column, row - up) for up in (1, 2, 3))
    ]
    near = set(free_near(made, route.cells, 2))
    for cell in draws.shuffled([cell for cell in feet if cell in near])[: draws.between(1, 3)]:
        made.put("launch_pad", cell, dy=4, facing=UP)
    tops = [cell for cell in ends if made.is_free(*cell) and made.is_floor(*cell) and cell in near]
    for column, row in draws.shuffled(tops)[: draws.between(1, 3)]:
        made.put("launch_pad", (column, row), dy=4, facing=_UP_RIGHT if made.is_open(column + 1, row + 1) else _UP_LEFT)


def _mine_pits(made: Sketch, draws: Draws, route: Route, percent: int) -> None:
    """Put mines on the floors of pits that the way can do without."""
    pits = [(column, row) for column, row in made.floors() if is_pit(made, column, row) and made.is_free(column, row)]
    for cell in away_from(away_from(away_from(pits, route.start, 4), route.switch, 2), route.exit, 2):
        if draws.chance(percent):
            made.put("mine", cell, dy=3)


def _helper(made: Sketch, draws: Draws, route: Route) -> None:
    """Put a boost pad or a row of bounce blocks into the air near the way."""
    spots = [cell for cell in free_near(made, route.middle, 2) if not made.is_floor(*cell)]
    if not spots:
        return
    column, row = draws.pick(spots)
    if draws.chance(40):
        made.put("boost_pad", (column, row))
        return
    for number in range(draws.between(1, 3)):
        if made.is_free(column + number, row):
            made.put("bounce_block", (column + number, row))
