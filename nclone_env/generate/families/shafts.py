"""Shafts: tall wells side by side, joined at their tops and bottoms, to be climbed by jumps from wall to wall."""

from __future__ import annotations

from itertools import pairwise

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Unusable, add_gold, add_wall_mines, away_from, plan_route, scaled
from nclone_env.generate.sketch import Sketch, centre, round_corners

Well = tuple[int, int, int, int]
"""First and last column, top and bottom row."""


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level.

    Args:
        draws: random choices.
        aim: 0 easy to 100 hard: number and depth of the wells, number of mines.
    """
    made = Sketch()
    wells = _wells(draws, aim)
    for left, right, top, bottom in wells:
        made.carve((left, right), (top, bottom))
        _ledges(made, draws, (left, right, top, bottom), draws.between(3, 5))
    below = draws.chance(50)
    for one, other in pairwise(wells):
        _join(made, draws, one, other, below)
        below = not below
    centre(made)
    round_corners(made, draws, draws.pick((0, 50, 100)), draws.pick((0, 40)))
    route = plan_route(made, draws, least=scaled(20, 60, aim))
    near = away_from(route.middle, route.start, 4)
    add_wall_mines(made, near, draws, scaled(1, 16, aim), longest=3)
    add_gold(made, route, draws, draws.between(4, 8))
    return made


def _wells(draws: Draws, aim: int) -> list[Well]:
    """Return wells from left to right."""
    wells, column = [], 1
    for _ in range(scaled(4, 8, aim + draws.below(20))):
        width = draws.between(3, 6)
        if column + width > 41:
            break
        depth = draws.between(scaled(8, 13, aim), 21)
        top = draws.between(1, 22 - depth)
        wells.append((column, column + width - 1, top, top + depth - 1))
        column += width + draws.between(1, 2)
    if len(wells) < 2:
        raise Unusable("too small")
    return wells


def _ledges(made: Sketch, draws: Draws, well: Well, spacing: int) -> None:
    """Put ledges on alternate sides, so far apart that a jump reaches the next."""
    left, right, top, bottom = well
    on_left, row = draws.chance(50), bottom - draws.between(2, 3)
    while row > top + 2:
        if draws.chance(60):
            column = left if on_left else right
            made.fill((column, column), (row, row + draws.below(2)))
        on_left, row = not on_left, row - spacing


def _join(made: Sketch, draws: Draws, one: Well, other: Well, below: bool) -> None:
    """Open the wall between two wells near the bottom or the top of both."""
    top, bottom = max(one[2], other[2]), min(one[3], other[3])
    if bottom - top < 4:
        raise Unusable("no way")
    row = bottom - draws.below(2) if below else top + 2 + draws.below(2)
    made.carve((one[1], other[0]), (row - draws.between(1, 2), row))
