"""Gates: walls across corridors, with a doorway and a door in it."""

from __future__ import annotations

from nclone_env.generate.pieces import Scene
from nclone_env.generate.route import distances
from nclone_env.generate.sketch import BLOCK, OPEN, Cell

_TALLEST = 7  # rows of the tallest corridor that a gate closes
_KINDS = ("locked_door", "locked_door", "trap_door", "regular_door")


def add_gates(scene: Scene, count: int) -> int:
    """Build gates across the way and propose their doors; return how many doors were proposed.

    The switch of a locked door is off the way, on this side of the door; that of a trap door on the way before it.
    """
    draws, made, way = scene.draws, scene.made, scene.route.cells
    for cell in draws.shuffled(way[6:-1]):
        walls = _walls(scene, cell) if count else None
        if walls is None:
            continue
        count, kind = count - 1, draws.pick(_KINDS)
        for column, row in walls:
            made.tiles[row, column] = BLOCK
        switches = _this_side(scene, cell) if kind == "locked_door" else way[4 : way.index(cell) - 2]
        switches = [place for place in switches if made.is_free(*place) and made.is_floor(*place)]
        if kind == "regular_door":
            made.put(kind, cell, dx=4)
        elif switches:
            made.propose_door(cell, draws.pick(switches), kind)
        for column in scene.images(cell[0]):
            made.taken[cell[1], column] = True
    return len(made.proposals)


def _walls(scene: Scene, cell: Cell) -> list[Cell] | None:
    """Return the cells above a doorway, with their image; None if it lacks floors at its sides or a low ceiling."""
    made, (column, row), top = scene.made, cell, cell[1]
    while made.is_open(column, top - 1):
        top -= 1
    columns = scene.images(column)
    beside = [(place + side, row) for place in columns for side in (-1, 0, 1)]
    inside = [(place, above) for place in columns for above in range(top, row)]
    fits = row - top < _TALLEST and (len(columns) == 1 or abs(columns[0] - columns[1]) > 4)
    free = all(made.is_free(*place) for place in (*beside, *inside)) and all(made.is_floor(*place) for place in beside)
    return inside if fits and free else None


def _this_side(scene: Scene, cell: Cell) -> list[Cell]:
    """Return the floors off the way that can be reached while a doorway is closed, the far half of them."""
    tiles, (column, row) = scene.made.tiles, cell
    tiles[row, column] = BLOCK
    steps = distances(scene.made, scene.route.start)
    tiles[row, column] = OPEN
    off = [place for place in scene.made.floors() if place not in scene.route.cells]
    places = sorted((place for place in off if steps[place[1], place[0]] >= 6), key=lambda c: -int(steps[c[1], c[0]]))
    return places[: (len(places) + 1) // 2]
