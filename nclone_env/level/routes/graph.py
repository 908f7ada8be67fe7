"""A level as a graph: places and entities as nodes, steps between places as edges.

A place is a block of 2 by 2 nodes of the lattice of :mod:`nclone_env.level.routes.distance`, at least one of them free.
Free nodes of one place are always neighbours. An edge joins two places if a step leads from a node of one to a node of
the other, so the graph is connected exactly where the lattice is, with a quarter of its nodes. Edges in both directions
join an entity to the place of the free lattice node nearest to its start.
"""

from typing import NamedTuple

import numpy as np

from nclone_env.game import (
    COLUMNS,
    FACING_X,
    FACING_Y,
    LAUNCH_PAD,
    ONE_WAY,
    REGULAR_DOOR,
    ROWS,
    THWUMP,
    WORLD_HEIGHT,
    WORLD_WIDTH,
)
from nclone_env.level.level_set import LevelSet
from nclone_env.level.routes.distance import free_nodes, nodes_at_doors
from nclone_env.level.routes.fields import FIELD_SHAPE, SPACING, Fields, distance_at
from nclone_env.memory import MemoryNode, array_group

NODE_FEATURES = ("x", "y", "free", "path_length", "facing_x", "facing_y")
"""Columns of ``nodes``: the position across and down the world, -1 to 1; for a place, the fraction of its four lattice
nodes that are free, for an entity 0; length d of the static path by a switch to its exit as d / (d + 528 pixels), 1 if
there is none; the direction in which a launch pad, one-way platform or thwump acts, 0 for others."""
NO_NODE = -1
_HALFWAY = 528.0
_FACING = (LAUNCH_PAD, ONE_WAY, THWUMP)
_THWUMP_ORIENTATIONS, _UP = (0, 2, 4), 6  # physics 02, section 6.17
_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))


class Graphs(NamedTuple):
    """The graphs of L levels, padded to the largest, read-only: N nodes, of which the first K are entities.

    Attributes:
        nodes: (L, N, 6) float32, ``NODE_FEATURES``.
        kinds: (L, N) uint8; type of each entity (doors with a switch are at their switch), 0 for places.
        node_mask: (L, N) bool; False for padding.
        edges: (L, 2, E) int32; from and to, every edge in both directions; 0 where padding.
        edge_mask: (L, E) bool; False for padding.
        closed_by: (L, C, 2) int32; an edge and an entity: while the door of the entity is closed, the edge is absent.
            -1 where padding.
        lattice: (L, 51, 89) int16; node of each free node of the lattice, ``NO_NODE`` elsewhere.
    """

    nodes: np.ndarray
    kinds: np.ndarray
    node_mask: np.ndarray
    edges: np.ndarray
    edge_mask: np.ndarray
    closed_by: np.ndarray
    lattice: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("graphs", self._asdict(), shared=True)


class _Graph(NamedTuple):
    """One graph; places are numbered on their own."""

    places: np.ndarray  # (P, 6) float32
    entities: np.ndarray  # (K, 6) float32
    kinds: np.ndarray  # (K,)
    steps: np.ndarray  # (S, 2) places
    homes: np.ndarray  # (K,) place of each entity, NO_NODE if there is none
    closed: np.ndarray  # (C, 2) number in ``steps``, entity
    lattice: np.ndarray  # (51, 89) places


_LAYOUT = dict(zip(Graphs._fields, map(np.dtype, ("f4", "u1", "?", "i4", "?", "i4", "i2")), strict=True))


def level_graphs(levels: LevelSet) -> Graphs:
    """Return the graphs of a level set, computed once for all environments and processes."""
    return Graphs(**levels.derived("graphs", _LAYOUT, lambda: build_graphs(levels)._asdict()))


def build_graphs(levels: LevelSet) -> Graphs:
    """Compute the graphs of a level set with distance fields."""
    built = [_build(levels, number) for number in range(len(levels.levels))]
    entities = levels.max_entities
    nodes = entities + max(len(graph.places) for graph in built)
    edges = 2 * max(len(graph.steps) + int(np.count_nonzero(graph.homes >= 0)) for graph in built)
    closures = 2 * max(len(graph.closed) for graph in built)
    graphs = Graphs(
        np.zeros((len(built), nodes, len(NODE_FEATURES)), dtype=np.float32),
        np.zeros((len(built), nodes), dtype=np.uint8),
        np.zeros((len(built), nodes), dtype=np.bool_),
        np.zeros((len(built), 2, max(edges, 1)), dtype=np.int32),
        np.zeros((len(built), max(edges, 1)), dtype=np.bool_),
        np.full((len(built), max(closures, 1), 2), NO_NODE, dtype=np.int32),
        np.full((len(built), *FIELD_SHAPE), NO_NODE, dtype=np.int16),
    )
    for row, graph in enumerate(built):
        _place(graphs, row, graph, entities)
    return graphs


def _place(graphs: Graphs, row: int, graph: _Graph, first_place: int) -> None:
    """Write a graph into its row; places follow after ``first_place`` entities."""
    count, end = len(graph.entities), first_place + len(graph.places)
    graphs.nodes[row, :count], graphs.nodes[row, first_place:end] = graph.entities, graph.places
    graphs.kinds[row, :count] = graph.kinds
    graphs.node_mask[row, :count] = graphs.node_mask[row, first_place:end] = True
    joined = np.flatnonzero(graph.homes >= 0)
    pairs = np.concatenate([first_place + graph.steps, np.stack([joined, first_place + graph.homes[joined]], axis=1)])
    edges = np.concatenate([pairs, pairs[:, ::-1]])
    graphs.edges[row, :, : len(edges)] = edges.T
    graphs.edge_mask[row, : len(edges)] = True
    back = graph.closed + (len(pairs), 0)
    graphs.closed_by[row, : 2 * len(back)] = np.concatenate([graph.closed, back])
    graphs.lattice[row] = np.where(graph.lattice >= 0, first_place + graph.lattice, NO_NODE)


def _build(levels: LevelSet, number: int) -> _Graph:
    arrays, header, table = levels.arrays, levels.arrays.header[number], levels.entities_of(number)
    doors = arrays.doors[header["first_door"] :][: header["door_count"]]
    fields, first = levels.fields, int(header["first_field"])
    free = free_nodes(arrays.tiles[number])
    cells, lattice = _places(free)
    steps = _steps(free, lattice)
    closed = [np.zeros((0, 2), dtype=np.int64)]
    for door in doors[doors["type"] != REGULAR_DOOR]:
        left = _steps(free & ~nodes_at_doors(np.array([door])), lattice)
        missing = np.flatnonzero(~np.isin(_codes(steps), _codes(left)))
        closed.append(np.stack([missing, np.full(len(missing), door["owner"])], axis=1))
    xs, ys = table["x"].astype(np.float64), table["y"].astype(np.float64)
    entities = _features(fields, first, xs, ys)
    for slot in np.flatnonzero(np.isin(table["type"], _FACING)):
        eighths = int(table["orientation"][slot])
        if table["type"][slot] == THWUMP and eighths not in _THWUMP_ORIENTATIONS:
            eighths = _UP  # unless told otherwise
        entities[slot, 4:] = FACING_X[eighths], FACING_Y[eighths]
    homes = np.array([_home(lattice, x, y) for x, y in zip(xs, ys, strict=True)], dtype=np.int64)
    places = _place_features(fields, first, free, cells)
    return _Graph(places, entities, table["type"], steps, homes, np.concatenate(closed), lattice)


def _places(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells, (P,) numbers ``row * 45 + column``, with a free node, and the place of each node."""
    rows, columns = np.indices(FIELD_SHAPE) // 2
    cells = rows * (COLUMNS + 1) + columns
    used, place = np.unique(cells[free], return_inverse=True)
    lattice = np.full(FIELD_SHAPE, NO_NODE, dtype=np.int64)
    lattice[free] = place
    return used, lattice


def _steps(free: np.ndarray, lattice: np.ndarray) -> np.ndarray:
    """Return the pairs of different places, (S, 2), smaller first, that a step between free nodes joins; in order."""
    rows, columns = FIELD_SHAPE
    parts = []
    for down, right in _STEPS:
        here = (slice(0, rows - down), slice(max(-right, 0), columns - max(right, 0)))
        there = (slice(down, rows), slice(max(right, 0), columns + min(right, 0)))
        both = free[here] & free[there]
        parts.append(np.stack([lattice[here][both], lattice[there][both]], axis=1))
    pairs = np.sort(np.concatenate(parts), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def _codes(steps: np.ndarray) -> np.ndarray:
    return steps[:, 0] * (ROWS + 1) * (COLUMNS + 1) + steps[:, 1]


def _home(lattice: np.ndarray, x: float, y: float) -> int:
    """Return the place of the free node of the lattice that is nearest to a point."""
    rows, columns = np.nonzero(lattice >= 0)
    if not len(rows):
        return NO_NODE
    nearest = np.hypot(SPACING * columns - x, SPACING * rows - y).argmin()
    return int(lattice[rows[nearest], columns[nearest]])


def _place_features(fields: Fields, first: int, free: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the features of places; each lies in the middle of its free nodes."""
    rows, columns = np.nonzero(free)
    numbers = np.searchsorted(cells, rows // 2 * (COLUMNS + 1) + columns // 2)
    counts = np.bincount(numbers, minlength=len(cells))
    xs = SPACING * np.bincount(numbers, columns, len(cells)) / counts
    ys = SPACING * np.bincount(numbers, rows, len(cells)) / counts
    features = _features(fields, first, xs, ys)
    features[:, 2] = counts / 4
    return features


def _features(fields: Fields, first: int, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Return nodes with their positions and path lengths."""
    features = np.zeros((len(xs), len(NODE_FEATURES)), dtype=np.float32)
    features[:, 0], features[:, 1] = 2 * xs / WORLD_WIDTH - 1, 2 * ys / WORLD_HEIGHT - 1
    lengths = np.array([distance_at(fields, first, float(x), float(y)) for x, y in zip(xs, ys, strict=True)])
    known = np.isfinite(lengths)
    features[:, 3] = np.where(known, lengths / (np.where(known, lengths, 1.0) + _HALFWAY), 1.0)
    return np.clip(features, -1, 1)
