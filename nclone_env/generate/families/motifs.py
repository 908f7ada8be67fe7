"""Motifs: a form with two or three set pieces in a rhythm, doors across its way, and gold that leads or tempts."""

from itertools import permutations, product

from nclone_env.generate.draws import Draws
from nclone_env.generate.forms import draw_form, tiles_of
from nclone_env.generate.pieces import HAZARDS, HELPERS, MOVERS, Scene, add_gates, add_gold, lay
from nclone_env.generate.route import Route, Unusable, distances, keep_largest, scaled, set_route
from nclone_env.generate.sketch import Cell, Sketch, centre, round_corners


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets size of the form, length of the way, numbers of doors, movers and hazards."""
    made, aim = Sketch(), aim * (aim + 60) // 140  # so that difficulties spread evenly
    made.tiles[:] = tiles_of(draw_form(draws, aim))
    keep_largest(made, 24)
    centre(made)
    if draws.chance(30):
        round_corners(made, draws, 100, draws.pick((0, 100)))
    symmetric = made.is_symmetric()
    scene = Scene(made, draws, aim, _route(made, draws, aim), symmetric)
    gates = add_gates(scene, scaled(0, 5, aim + draws.below(40)))
    for piece in draws.shuffled(MOVERS)[: scaled(3, 5, aim)]:
        lay(scene, piece, proposed=True)
    made.wanted = len(made.proposals)
    made.proposals = made.proposals[gates:] + made.proposals[:gates]
    for piece in draws.shuffled(HAZARDS)[: scaled(0, 4, aim + draws.below(50))]:
        lay(scene, piece)
    if draws.chance(35):
        lay(scene, draws.pick(HELPERS))
    add_gold(scene, 2 + draws.below(3) + len(made.floors()) // 30)
    return made


def _route(made: Sketch, draws: Draws, aim: int) -> Route:
    """Choose start, switch and exit at the ends of the form, so far apart as the aim asks."""
    floors, (rows, columns) = made.floors(), made.tiles.shape
    corners = product((0, columns // 2, columns - 1), (0, rows // 2, rows - 1))
    ends = list(dict.fromkeys(_nearest(floors, *corner) for corner in corners if floors))
    least, most = scaled(5, 70, aim), scaled(14, 240, aim)
    for start, switch, exit_ in draws.shuffled(list(permutations(ends, 3))):
        steps = distances(made, switch)
        there, on = (int(steps[row, column]) for column, row in (start, exit_))
        if min(there, on) >= 3 and least <= there + on <= most:
            return set_route(made, start, _lifted(made, draws, switch), exit_)
    raise Unusable("too short")


def _nearest(floors: list[Cell], column: int, row: int) -> Cell:
    return min(floors, key=lambda cell: (abs(cell[0] - column) + 2 * abs(cell[1] - row), cell))


def _lifted(made: Sketch, draws: Draws, cell: Cell) -> Cell:
    """Return a cell up to three rows above one, as far as it is open."""
    for _ in range(draws.pick((0, 0, 1, 2, 3))):
        if made.is_open(cell[0], cell[1] - 2):
            cell = (cell[0], cell[1] - 1)
    return cell
