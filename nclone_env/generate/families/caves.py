"""Caves: winding hollows with smooth walls."""

import numpy as np

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import dress, keep_largest, plan_route, scaled
from nclone_env.generate.sketch import Sketch, centre, mirror, round_corners


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the length of the way and the number of mines."""
    made = Sketch()
    _hollow(made, draws, draws.between(44, 49))
    if draws.chance(25):
        mirror(made)
    keep_largest(made, 200)
    centre(made)
    round_corners(made, draws, 100, draws.pick((60, 100)))
    least = scaled(16, 46, aim)
    route = plan_route(made, draws, least, least + 30)
    dress(made, route, draws, scaled(2, 22, aim), (3, 7))
    return made


def _hollow(made: Sketch, draws: Draws, percent: int) -> None:
    """Fill cells at random and smooth them by the majority around each (a cellular automaton)."""
    rows, columns = made.tiles.shape
    solid = np.ones((rows, columns), np.int64)
    for row in range(1, rows - 1):
        for column in range(1, columns - 1):
            solid[row, column] = draws.chance(percent)
    for _ in range(4):
        padded = np.pad(solid, 1, constant_values=1)
        nine = [padded[1 + b :, 1 + a :][:rows, :columns] for b in (-1, 0, 1) for a in (-1, 0, 1)]
        solid = np.where(np.sum(nine, axis=0) >= 5, 1, 0)
    solid[[0, -1]] = solid[:, [0, -1]] = 1
    made.tiles[:] = solid
