"""Gates: walls across corridors, with a doorway and a door in it."""

from __future__ import annotations

from nclone_env.constants import TILE_COLUMNS
from nclone_env.generate.pieces import Scene
from nclone_env.generate.route import distances
from nclone_env.generate.sketch import BLOCK, OPEN, Cell

_TALLEST = 7
"""Rows of the tallest corridor that a gate closes."""
_KINDS = ("locked_door", "locked_door", "trap_door", "regular_door")


def add_gates(scene: Scene, count: int) -> int:
    """Build gates across the way and propose their doors; return how many were proposed.

    The switch of a locked door is off the way, on this side of the door; that of a trap door on the way before it.
    """
    draws, way = scene.draws, scene.route.cells
    proposed, built = 0, 0
    for cell in draws.shuffled(way[6:-1]):
        if built >= count:
            break
        if not _is_site(scene, cell):
            continue
        kind = draws.pick(_KINDS)
        before = way[4 : way.index(cell) - 2]
        switches = _behind_nothing(scene, cell) if kind == "locked_door" else before
        switches = [place for place in switches if scene.made.is_free(*place) and scene.made.is_floor(*place)]
        if kind != "regular_door" and not switches:
            continue
        _build(scene, cell)
        built += 1
        if kind == "regular_door":
            scene.made.put(kind, cell, dx=4)
        else:
            scene.made.propose_door(cell, draws.pick(switches), kind)
            proposed += 1
    return proposed


def _is_site(scene: Scene, cell: Cell) -> bool:
    """Return whether a corridor can be closed at a cell: a floor with floors beside it, under a low ceiling."""
    made, (column, row) = scene.made, cell
    columns = (column, TILE_COLUMNS - 1 - column) if scene.symmetric else (column,)
    if scene.symmetric and abs(columns[0] - columns[1]) < 6:
        return False
    top = row - _height(scene, cell)
    around = [(place + side, row) for place in columns for side in (-1, 0, 1)]
    inside = [(place, above) for place in columns for above in range(top + 1, row + 1)]
    return (
        _height(scene, cell) <= _TALLEST
        and all(made.is_free(*place) and made.is_floor(*place) for place in around)
        and all(made.is_free(*place) for place in inside)
    )


def _height(scene: Scene, cell: Cell) -> int:
    """Return how many cells are open from a floor up."""
    height = 1
    while scene.made.is_open(cell[0], cell[1] - height):
        height += 1
    return height


def _build(scene: Scene, cell: Cell) -> None:
    """Wall up a corridor but for the cell on its floor, also at its mirror image."""
    column, row = cell
    for place in (column, TILE_COLUMNS - 1 - column) if scene.symmetric else (column,):
        top = row - _height(scene, (place, row)) + 1
        if top < row:
            scene.made.fill((place, place), (top, row - 1))
        scene.made.taken[row, place] = True


def _behind_nothing(scene: Scene, cell: Cell) -> list[Cell]:
    """Return the floors off the way that can be reached while a gate is closed, the far half of them."""
    tiles, (column, row), way = scene.made.tiles, cell, set(scene.route.cells)
    top = row - _height(scene, cell) + 1
    tiles[top : row + 1, column] = BLOCK
    steps = distances(scene.made, scene.route.start)
    tiles[top : row + 1, column] = OPEN
    places = [place for place in scene.made.floors() if steps[place[1], place[0]] >= 6 and place not in way]
    places.sort(key=lambda place: -int(steps[place[1], place[0]]))
    return places[: (len(places) + 1) // 2]
