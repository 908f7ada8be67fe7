"""Shafts: tall wells side by side, joined at their tops and bottoms, to be climbed by jumps from wall to wall."""

from itertools import pairwise

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Unusable, dress, plan_route, scaled
from nclone_env.generate.sketch import Sketch, centre, round_corners

Well = tuple[int, int, int, int]
"""First and last column, top and bottom row."""


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the number and depth of the wells and the number of mines."""
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
    dress(made, route, draws, scaled(1, 16, aim), (4, 8))
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
