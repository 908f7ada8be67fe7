"""Mazes: corridors with locked doors, whose switches are in other parts of the maze."""

from collections.abc import Sequence
from itertools import pairwise

from nclone_env.generate.draws import Draws
from nclone_env.generate.route import Unusable, dress, scaled, set_route
from nclone_env.generate.sketch import Cell, Sketch, round_corners

Edge = tuple[Cell, Cell]
"""Two neighbouring chambers; the first is the left or upper one."""


class _Maze:
    """Chambers on a grid, joined as a tree.

    Attributes:
        columns, rows: number of chambers.
        neighbours: the chambers that each is joined to.
    """

    def __init__(self, draws: Draws, columns: int, rows: int):
        self.columns, self.rows = columns, rows
        self.neighbours: dict[Cell, list[Cell]] = {(c, r): [] for r in range(rows) for c in range(columns)}
        start = draws.pick(list(self.neighbours))
        seen, trail = {start}, [start]
        while trail:
            column, row = trail[-1]
            steps = ((1, 0), (-1, 0), (1, 0), (-1, 0), (0, 1), (0, -1))  # corridors are rather long than tall
            around = [(column + a, row + b) for a, b in steps]
            new = [cell for cell in around if cell in self.neighbours and cell not in seen]
            if not new:
                trail.pop()
                continue
            cell = draws.pick(new)
            self.neighbours[trail[-1]].append(cell)
            self.neighbours[cell].append(trail[-1])
            seen.add(cell)
            trail.append(cell)

    def within(self, start: Cell, closed: Sequence[Edge] = ()) -> dict[Cell, Cell | None]:
        """Return the chambers that can be reached past closed edges, each with the one before it."""
        before: dict[Cell, Cell | None] = {start: None}
        waiting = [start]
        for cell in waiting:
            for other in self.neighbours[cell]:
                if other not in before and _edge(cell, other) not in closed:
                    before[other] = cell
                    waiting.append(other)
        return before

    def way(self, start: Cell, end: Cell) -> list[Cell]:
        """Return the chambers from one to another."""
        before, way = self.within(end), [start]
        while (last := before[way[-1]]) is not None:
            way.append(last)
        return way


def sketch(draws: Draws, aim: int) -> Sketch:
    """Draw a level; the aim sets the numbers of chambers, doors and mines."""
    made = Sketch()
    width, height = draws.between(4, 6), draws.between(3, 4)
    maze = _Maze(
        draws,
        min(scaled(5, 8, aim + draws.below(40)), 40 // (width + 1)),
        min(scaled(3, 5, aim + draws.below(40)), 21 // (height + 1)),
    )
    places = _Places(draws, maze, width, height)
    start = draws.pick([cell for cell, around in maze.neighbours.items() if len(around) == 1])
    far = sorted(maze.neighbours, key=lambda cell: (-len(maze.way(start, cell)), cell))
    end = draws.pick(far[:2])
    doors = _doors(draws, maze, maze.way(start, end), scaled(1, 3, aim + draws.below(30)))
    for cell in maze.neighbours:
        made.carve(*places.inside(cell))
    for edge in {_edge(cell, other) for cell, around in sorted(maze.neighbours.items()) for other in around}:
        places.join(made, edge, any(edge == door for door, _ in doors), draws)
    round_corners(made, draws, draws.pick((0, 60, 100)), draws.pick((0, 0, 40)))
    switch = draws.pick([cell for cell in sorted(maze.neighbours) if cell not in (start, end)])
    route = set_route(made, places.floor(made, draws, start), *(places.floor(made, draws, c) for c in (switch, end)))
    for edge, chamber in doors:
        made.propose_door(places.door(edge), places.floor(made, draws, chamber))
    made.wanted = len(doors)
    dress(made, route, draws, scaled(1, 14, aim), (5, 9))
    return made


class _Places:
    """Where the chambers of a maze are."""

    def __init__(self, draws: Draws, maze: _Maze, width: int, height: int):
        self._width, self._height = width, height
        self._left = (43 - maze.columns * (width + 1)) // 2
        self._top = (24 - maze.rows * (height + 1)) // 2

    def inside(self, chamber: Cell) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return first and last column, and row, of a chamber."""
        left, top = self._left + chamber[0] * (self._width + 1), self._top + chamber[1] * (self._height + 1)
        return (left, left + self._width - 1), (top, top + self._height - 1)

    def join(self, made: Sketch, edge: Edge, has_door: bool, draws: Draws) -> None:
        """Open the wall between two chambers: of one cell for a door, else wide."""
        columns, rows = self.inside(edge[0])
        if edge[0][1] == edge[1][1]:
            top = rows[1] if has_door else rows[1] - draws.between(1, self._height - 1)
            made.carve((columns[1] + 1, columns[1] + 1), (top, rows[1]))
        else:
            left = columns[0] if draws.chance(50) else columns[1] - 1  # at a wall, where the ninja can climb
            made.carve((left, left + 1), (rows[1] + 1, rows[1] + 1))

    def door(self, edge: Edge) -> Cell:
        """Return the cell on whose right side the door of an edge is."""
        columns, rows = self.inside(edge[0])
        return columns[1] + 1, rows[1]

    def floor(self, made: Sketch, draws: Draws, chamber: Cell) -> Cell:
        """Return a free cell on the floor of a chamber."""
        columns, rows = self.inside(chamber)
        free = [
            (column, row)
            for row in range(rows[0], rows[1] + 1)
            for column in range(columns[0], columns[1] + 1)
            if made.is_free(column, row) and made.is_floor(column, row)
        ]
        if not free:
            raise Unusable("too small")
        return draws.pick(free)


def _edge(cell: Cell, other: Cell) -> Edge:
    return (min(cell, other), max(cell, other))


def _doors(draws: Draws, maze: _Maze, way: list[Cell], count: int) -> list[tuple[Edge, Cell]]:
    """Return doors across corridors of the way, each with the chamber of its switch, off the way and before it."""
    edges = [_edge(cell, other) for cell, other in pairwise(way) if cell[1] == other[1]]
    doors: list[tuple[Edge, Cell]] = []
    used: set[Cell] = {way[0], way[-1]}
    for edge in draws.shuffled(edges):
        later = [other for other, _ in doors] + [edge]
        reach = [cell for cell in maze.within(way[0], later) if cell not in used and cell not in way]
        if reach and len(doors) < count:
            far = sorted(reach, key=lambda cell: (-len(maze.way(way[0], cell)), cell))
            chamber = draws.pick(far[:2])
            used.add(chamber)
            doors.append((edge, chamber))
    if not doors:
        raise Unusable("no doors")
    return doors
