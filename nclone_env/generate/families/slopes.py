"""Slopes: rolling hills in storeys, joined by gaps that one-way platforms cover."""

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import dress, plan_route, scaled
from nclone_env.generate.sketch import DOWN, OPEN, UP, Cell, Sketch, round_corners

_UP_STEEP, _DOWN_STEEP = (8,), (9,)
_UP_MILD, _DOWN_MILD = (20, 24), (25, 21)
_FLAT = (OPEN,)
_RUNS = (_FLAT, _FLAT, _UP_STEEP, _DOWN_STEEP, _UP_MILD, _DOWN_MILD)
"""Tiles of the surface from left to right."""


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the number and length of the storeys and the number of mines."""
    made = Sketch()
    storeys = min(scaled(2, 3, aim + draws.below(70)), 3)
    width, height = min(scaled(30, 38, aim + draws.below(60)), 40), 7
    left, top = (42 - width) // 2, (23 - storeys * height) // 2 + 1
    for number in range(storeys):
        _storey(made, draws, (left, left + width - 1), top + number * height, height)
    on_left, gaps = draws.chance(50), []
    for number in range(1, storeys):
        gaps += _gap(made, left if on_left else left + width - 3, top + number * height)
        on_left = not on_left
    round_corners(made, draws, draws.pick((60, 100)), draws.pick((0, 50, 100)))
    route = plan_route(made, draws, least=scaled(18, 50, aim))
    for cell in gaps:
        if made.is_free(*cell):
            made.put("one_way", cell, dy=0, facing=UP if draws.chance(80) else DOWN)
    dress(made, route, draws, scaled(2, 16, aim), (5, 9), steps=5)
    return made


def _storey(made: Sketch, draws: Draws, columns: tuple[int, int], top: int, height: int) -> None:
    """Carve a hall whose floor rises and falls, flat at both ends."""
    floor, column = top + height - 2, columns[0]
    lowest, highest = top + height - 1, top + 4
    made.carve(columns, (top, top + height - 2))
    while column <= columns[1]:
        run, length = draws.pick(_RUNS), draws.between(1, 4)
        for _ in range(length):
            rises, falls = run in (_UP_STEEP, _UP_MILD), run in (_DOWN_STEEP, _DOWN_MILD)
            inside = columns[0] + 3 <= column <= columns[1] - 3 - len(run)
            if (rises and floor <= highest) or (falls and floor >= lowest) or not inside:
                run, rises, falls = _FLAT, False, False
            for tile in run:
                made.fill((column, column), (floor, lowest))
                made.tiles[floor - rises, column] = tile if rises or falls else made.tiles[floor, column]
                column += 1
            floor += falls - rises
            if column > columns[1]:
                break


def _gap(made: Sketch, column: int, row: int) -> list[Cell]:
    """Open the floor above a storey at a wall, where the ninja can climb; return the cells for one-way platforms."""
    top = row - 1
    while made.is_block(column, top - 1):
        top -= 1
    made.carve((column, column + 2), (top, row))
    return [(column + n, top) for n in range(3)]
