"""Turrets: halls with cover, overlooked by gauss and rocket turrets, lasers, shooting drones and death balls."""

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Route, away_from, dress, free_near, plan_route, scaled
from nclone_env.generate.sketch import DOWN, LEFT, RIGHT, UP, Sketch, mirror, round_corners

_SHOOTERS = ("gauss_turret", "rocket_turret", "laser_turret", "laser_turret", "death_ball", "death_ball", "drone")


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the size of the hall and the numbers of turrets, balls and mines."""
    made = Sketch()
    width, height = min(scaled(30, 38, aim + draws.below(60)), 40), min(scaled(12, 20, aim + draws.below(60)), 21)
    left, top = (42 - width) // 2, (23 - height) // 2
    made.carve((left, left + width - 1), (top, top + height - 1))
    _cover(made, draws, (left, left + width - 1), (top, top + height - 1))
    if draws.chance(60):
        mirror(made)
    round_corners(made, draws, draws.pick((0, 50, 100)), draws.pick((0, 60, 100)))
    route = plan_route(made, draws, least=scaled(18, 42, aim))
    made.wanted = scaled(1, 4, aim)
    for _ in range(4 * made.wanted + 4):
        _shooter(made, draws, route)
    dress(made, route, draws, scaled(0, 8, aim), (5, 9))
    return made


def _cover(made: Sketch, draws: Draws, columns: tuple[int, int], rows: tuple[int, int]) -> None:
    """Put walls to hide behind into a hall: on the floor, on the ceiling and in between."""
    column = columns[0] + draws.between(3, 5)
    while column < columns[1] - 3:
        size, row = draws.between(1, 3), rows[1]
        made.fill((column, column + size - 1), (row - draws.between(0, 2), row))
        while row > rows[0] + 4:
            row -= draws.between(3, 4)
            long = draws.between(1, 5)
            if row > rows[0] + 1 and draws.chance(60):
                made.fill((column - draws.below(3), column + long), (row, row + draws.below(2)))
        if draws.chance(40):
            made.fill((column + 1, column + 1), (rows[0], rows[0] + draws.between(0, 2)))
        column += size + draws.between(4, 6)


def _shooter(made: Sketch, draws: Draws, route: Route) -> None:
    """Put a turret or a ball into the air near the way, far from the start."""
    near = free_near(made, route.middle, 2)
    spots = [cell for cell in away_from(near, route.start, 8) if not made.is_floor(*cell)]
    if not spots:
        return
    name = draws.pick(_SHOOTERS)
    if name == "drone":
        kind = draws.pick(("laser_drone", "chaingun_drone"))
        made.propose(kind, draws.pick(spots), facing=draws.pick((RIGHT, DOWN, LEFT, UP)), mode=draws.below(4))
    elif name == "laser_turret":
        made.propose(name, draws.pick(spots), facing=draws.pick((RIGHT, DOWN, LEFT, UP)), mode=0)
    else:
        made.propose(name, draws.pick(spots))
