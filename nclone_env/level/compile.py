"""RawLevel to Level: everything about a level that never changes during play, as read-only arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nclone_env.constants import (
    CELL_SIZE,
    CELLS,
    COLUMNS,
    EXIT,
    EXIT_SWITCH,
    GOLD,
    MAP_UNIT,
    MAX_TILE,
    MINE,
    ROWS,
)
from nclone_env.errors import InertEntityWarning
from nclone_env.level.distance import objective_fields
from nclone_env.level.raw import RawLevel, entity_name
from nclone_env.level.records import DATA_TYPES, count_exits, has_behaviour
from nclone_env.level.tiles import CURVE_KIND, CURVE_SHAPE, EDGE_SIGNS, GRID_EDGES, STRAIGHT
from nclone_env.memory_tree import MemoryNode, array_group

MODELLED_TYPES = frozenset({MINE, GOLD, EXIT})
"""Record types that create entities; exit switches come with their exit (physics 02, section 2.5)."""

SEGMENT = np.dtype([("x1", "i2"), ("y1", "i2"), ("x2", "i2"), ("y2", "i2"), ("kind", "i2")])
"""A straight segment from (x1, y1) to (x2, y2), or an arc: centre (x1, y1), quadrant signs (x2, y2). Pixels."""

ENTITY = np.dtype([("x", "i2"), ("y", "i2"), ("type", "u1"), ("initial", "u1"), ("partner", "i2")])
"""Position in pixels, type, state at the start of an episode, index of the exit that a switch opens (else -1)."""


@dataclass(frozen=True, eq=False)
class Level:
    """One compiled level. Every array is read-only.

    Attributes:
        raw: what the level file says.
        name: ``set/level`` of a built-in level, file name of another, else the title.
        tiles: (25, 44) uint8; tile numbers with the border of full blocks, unknown numbers as 0.
        spawn: start of the ninja, pixels.
        segments: (S,) ``SEGMENT``; sorted by cell, in the order that collision depends on (physics 01, section 2.7).
        segment_start: (1101,) int32; segments of cell ``column * 25 + row`` are ``start[cell]:start[cell + 1]``.
        entities: (E,) ``ENTITY`` in type-list order (physics 02, section 4.2).
        members: (E,) int16; entity indices sorted by cell; within a cell in order of insertion, exits last.
        member_start: (1101,) int32; as ``segment_start``, for ``members``.
    """

    raw: RawLevel
    name: str
    tiles: np.ndarray
    spawn: tuple[float, float]
    segments: np.ndarray
    segment_start: np.ndarray
    entities: np.ndarray
    members: np.ndarray
    member_start: np.ndarray

    @property
    def exits(self) -> np.ndarray:
        """(X,) int; indices of the exits in ``entities``; each is followed by its switch."""
        return np.flatnonzero(self.entities["type"] == EXIT)

    @cached_property
    def distances(self) -> np.ndarray:
        """(1 + X, 51, 89) float32 distances to the objectives, computed on first use and kept with the level."""
        exits = self.exits
        exit_points = [(int(e["x"]), int(e["y"])) for e in self.entities[exits]]
        switch_points = [(int(e["x"]), int(e["y"])) for e in self.entities[exits + 1]]
        return objective_fields(self.tiles, exit_points, switch_points)

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        names = ("tiles", "segments", "segment_start", "entities", "members", "member_start")
        return array_group(self.name, {name: getattr(self, name) for name in names}, shared=True)


def compile_level(raw: RawLevel, name: str = "") -> Level:
    """Compute a :class:`Level`; entity types that are not modelled are left out with one warning.

    Args:
        raw: what the level file says.
        name: what to call it; by default its title, or where it came from.
    """
    name = name or raw.title or raw.source
    tiles = padded_tiles(raw.tiles)
    segments, segment_start = _segments(tiles)
    entities, members, member_start = _entities(raw.records)
    spawn = (float(raw.records[0, 1]) * MAP_UNIT, float(raw.records[0, 2]) * MAP_UNIT)
    _warn_of_inert(raw.records, name)
    arrays = (tiles, segments, segment_start, entities, members, member_start)
    for array in arrays:
        array.flags.writeable = False
    return Level(raw, name, tiles, spawn, *arrays[1:])


def padded_tiles(tiles: np.ndarray) -> np.ndarray:
    """Return (25, 44) uint8: the (23, 42) tiles inside a ring of full blocks; numbers above 37 become 0."""
    padded = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    padded[1:-1, 1:-1] = np.where(tiles > MAX_TILE, 0, tiles)
    return padded


def _segments(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments sorted by cell and the start of each cell (physics 01, sections 2.5 to 2.7)."""
    curves, curve_cells = _curve_segments(tiles)
    edges, edge_cells = _edge_segments(tiles)
    segments = np.concatenate([curves, edges])
    return _sort_by_cell(segments, np.concatenate([curve_cells, edge_cells]))


def _curve_segments(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns, rows = np.nonzero(CURVE_KIND[tiles.T] >= 0)
    numbers = tiles[rows, columns]
    curves = np.zeros(len(columns), dtype=SEGMENT)
    shape = CURVE_SHAPE[numbers]
    offset_x, offset_y = 24 * columns, 24 * rows
    curves["kind"] = CURVE_KIND[numbers]
    straight = curves["kind"] == STRAIGHT
    curves["x1"], curves["y1"] = shape[:, 0] + offset_x, shape[:, 1] + offset_y
    curves["x2"] = np.where(straight, shape[:, 2] + offset_x, shape[:, 2])
    curves["y2"] = np.where(straight, shape[:, 3] + offset_y, shape[:, 3])
    return curves, columns * ROWS + rows


def edge_lattices(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the signed half-edges: horizontal (51, 88) and vertical (50, 89) int8 (physics 01, section 2.5)."""
    signs = EDGE_SIGNS[tiles]
    horizontal = np.zeros((2 * ROWS + 1, 2 * COLUMNS), dtype=np.int8)
    vertical = np.zeros((2 * ROWS, 2 * COLUMNS + 1), dtype=np.int8)
    horizontal[0], horizontal[-1] = 1, -1
    vertical[:, 0], vertical[:, -1] = 1, -1
    for line in range(3):
        for half in range(2):
            horizontal[line : line + 49 : 2, half::2] += signs[:, :, 2 * line + half]
            vertical[half::2, line : line + 87 : 2] += signs[:, :, 6 + 2 * line + half]
    return horizontal, vertical


def grid_edges(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what moving entities collide with: horizontal (51, 88) and vertical (50, 89) int8, values 0 to 2.

    Two solids that meet leave no edge, else the stronger contribution stays (physics 01, section 2.8).
    """
    values = GRID_EDGES[tiles]
    horizontal = np.zeros((2 * ROWS + 1, 2 * COLUMNS), dtype=np.int8)
    vertical = np.zeros((2 * ROWS, 2 * COLUMNS + 1), dtype=np.int8)
    horizontal[[0, -1]] = 1
    vertical[:, [0, -1]] = 1
    for line in range(3):
        for half in range(2):
            _merge(horizontal[line : line + 49 : 2, half::2], values[:, :, 2 * line + half])
            _merge(vertical[half::2, line : line + 87 : 2], values[:, :, 6 + 2 * line + half])
    return horizontal, vertical


def _merge(lattice: np.ndarray, values: np.ndarray) -> None:
    both_solid = (lattice == 2) & (values == 2)
    np.maximum(lattice, values, out=lattice)
    lattice[both_solid] = 0


def _edge_segments(tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    horizontal, vertical = edge_lattices(tiles)
    parts, cells = [], []
    for lattice, flat in ((horizontal, True), (vertical, False)):
        i, j = np.nonzero(lattice.T)
        positive = lattice[j, i] > 0
        part = np.zeros(len(i), dtype=SEGMENT)
        x, y = 12 * i, 12 * j
        forward = positive if flat else ~positive
        ahead_x, ahead_y = (12, 0) if flat else (0, 12)
        part["x1"], part["y1"] = np.where(forward, x, x + ahead_x), np.where(forward, y, y + ahead_y)
        part["x2"], part["y2"] = np.where(forward, x + ahead_x, x), np.where(forward, y + ahead_y, y)
        column = i // 2 if flat else (i - positive) // 2
        row = (j - positive) // 2 if flat else j // 2
        parts.append(part)
        cells.append(column * ROWS + row)
    return np.concatenate(parts), np.concatenate(cells)


def _sort_by_cell(items: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(cells, kind="stable")
    start = np.zeros(CELLS + 1, dtype=np.int32)
    np.cumsum(np.bincount(cells, minlength=CELLS), out=start[1:])
    return items[order], start


def _entities(records: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entity table, and its indices by cell (physics 02, sections 2.4, 2.5 and 4.3)."""
    created = _create(records)
    order = sorted(range(len(created)), key=lambda number: (_list_type(created[number][2]), number))
    index_of = {number: index for index, number in enumerate(order)}
    table = np.zeros(len(created), dtype=ENTITY)
    for number, (x, y, kind, partner) in enumerate(created):
        table[index_of[number]] = (x, y, kind, 0, index_of.get(partner, -1))
    cells = np.array([_cell(x, y) for x, y, _, _ in created], dtype=np.int64)
    last = np.array([kind == EXIT for _, _, kind, _ in created], dtype=bool)
    insertion = np.argsort(last, kind="stable")  # an exit joins its cell only when its switch is taken
    indices = np.array([index_of[number] for number in insertion], dtype=np.int16)
    members, start = _sort_by_cell(indices, cells[insertion])
    return table, members, start


def _create(records: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return (x, y, type, number of the partner or -1) of each entity in order of creation."""
    exits = count_exits(records)
    created: list[tuple[int, int, int, int]] = []
    for row in np.flatnonzero(np.isin(records[:, 0], tuple(MODELLED_TYPES))):
        kind, x, y = (int(value) for value in records[row, :3])
        created.append((6 * x, 6 * y, kind, -1))
        if kind == EXIT:
            switch = records[row + exits]
            created.append((6 * int(switch[1]), 6 * int(switch[2]), EXIT_SWITCH, len(created) - 1))
    return created


def _list_type(kind: int) -> int:
    return EXIT if kind == EXIT_SWITCH else kind


def _cell(x: float, y: float) -> int:
    column = min(max(int(x // CELL_SIZE), 0), COLUMNS - 1)
    row = min(max(int(y // CELL_SIZE), 0), ROWS - 1)
    return column * ROWS + row


def inert_types(records: np.ndarray) -> dict[str, int]:
    """Return the number of records by entity name that the simulator does not model yet and leaves out."""
    kinds = np.unique(records[:, 0]).tolist()
    left_out = [kind for kind in kinds if kind not in MODELLED_TYPES | DATA_TYPES and has_behaviour(kind)]
    return count_by_name(records, left_out)


def count_by_name(records: np.ndarray, kinds: Iterable[int]) -> dict[str, int]:
    """Return the number of records of each of some entity types, by entity name."""
    return {entity_name(kind): int(np.count_nonzero(records[:, 0] == kind)) for kind in sorted(kinds)}


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by name as text: ``mine (2), gold (1)``."""
    return ", ".join(f"{name} ({count})" for name, count in counts.items())


def _warn_of_inert(records: np.ndarray, name: str) -> None:
    inert = inert_types(records)
    if inert:
        message = f"{name}: entities that are not modelled yet do nothing: {listed(inert)}"
        warnings.warn(message, InertEntityWarning, stacklevel=1)
