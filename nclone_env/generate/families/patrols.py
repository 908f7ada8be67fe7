"""Patrols: blocks and corridors with drones on their rounds, floor guards and thwumps."""

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import away_from, dress, free_near, plan_route, scaled
from nclone_env.generate.sketch import DOWN, LEFT, RIGHT, UP, Cell, Sketch, round_corners


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the size of the level and the numbers of movers and mines."""
    made = Sketch()
    _blocks(made, draws, aim)
    round_corners(made, draws, draws.pick((0, 40)), draws.pick((0, 50, 100)))
    route = plan_route(made, draws, least=scaled(18, 46, aim))
    made.wanted = scaled(1, 5, aim)
    near = {
        reach: away_from(away_from(free_near(made, route.middle, reach), route.start, 6), route.exit, 3)
        for reach in (1, 2, 3)
    }
    for _ in range(4 * made.wanted + 4):
        propose, reach = draws.pick(_KINDS)
        propose(made, draws, [cell for cell in near[reach] if made.is_free(*cell)])
    dress(made, route, draws, scaled(0, 6, aim), (5, 9), longest=2)
    return made


def _blocks(made: Sketch, draws: Draws, aim: int) -> None:
    """Carve a hall and leave blocks standing in a grid, some of them merged or missing."""
    columns, rows = scaled(4, 7, aim + draws.below(60)), scaled(2, 4, aim + draws.below(60))
    block_width, block_height = draws.between(2, 4), draws.between(1, 3)
    lane_width, lane_height = draws.between(2, 3), draws.between(2, 3)
    columns = min(columns, (40 - lane_width) // (block_width + lane_width))
    rows = min(rows, (21 - lane_height) // (block_height + lane_height))
    width = columns * (block_width + lane_width) + lane_width
    height = rows * (block_height + lane_height) + lane_height
    left, top = (42 - width) // 2, (23 - height) // 2
    made.carve((left, left + width - 1), (top, top + height - 1))
    for row in range(rows):
        for column in range(columns):
            x = left + lane_width + column * (block_width + lane_width)
            y = top + lane_height + row * (block_height + lane_height)
            merged = lane_width if column + 1 < columns and draws.chance(30) else 0
            if draws.chance(88):
                made.fill((x, x + block_width - 1 + merged), (y, y + block_height - 1))


def _drone(made: Sketch, draws: Draws, spots: list[Cell]) -> None:
    """Propose a drone, which follows a wall or wanders."""
    if spots:
        name = draws.pick(("zap_drone", "zap_drone", "mini_drone", "chaser_drone"))
        made.propose(name, draws.pick(spots), facing=draws.pick((RIGHT, DOWN, LEFT, UP)), mode=draws.below(4))


def _guard(made: Sketch, draws: Draws, spots: list[Cell]) -> None:
    """Propose a guard on a floor of some length."""
    floors = [
        (column, row) for column, row in spots if all(made.is_floor(column + right, row) for right in (-2, -1, 0, 1, 2))
    ]
    if floors:
        made.propose("floor_guard", draws.pick(floors), dy=3)


def _thwump(made: Sketch, draws: Draws, spots: list[Cell]) -> None:
    """Propose a thwump on a ceiling or wall, with room to charge."""
    places = []
    for column, row in spots:
        for facing, right, down in ((DOWN, 0, 1), (RIGHT, 1, 0), (LEFT, -1, 0)):
            room = all(made.is_open(column + n * right, row + n * down) for n in (1, 2, 3))
            if room and made.is_block(column - right, row - down):
                places.append(((column, row), facing))
    if places:
        cell, facing = draws.pick(places)
        made.propose("thwump", cell, facing=facing)


_KINDS = ((_drone, 1), (_drone, 1), (_drone, 1), (_guard, 2), (_thwump, 3))
"""Functions that propose a mover, and how near the way the cells for it are."""
