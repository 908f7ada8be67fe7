"""RawLevel to Level: everything about a level that never changes during play, as read-only arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nclone_env.constants import EXIT, MAP_UNIT
from nclone_env.errors import InertEntityWarning
from nclone_env.level.distance import objective_fields
from nclone_env.level.entities import MODELLED_TYPES, EntityTable, entity_table
from nclone_env.level.raw import RawLevel, entity_name
from nclone_env.level.records import DATA_TYPES, has_behaviour
from nclone_env.level.segments import grid, padded_tiles, sorted_segments
from nclone_env.memory_tree import MemoryNode, array_group


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
        grid: (2, 51, 89) uint8; the lattice that moving entities collide with.
        table: the entities.
    """

    raw: RawLevel
    name: str
    tiles: np.ndarray
    spawn: tuple[float, float]
    segments: np.ndarray
    segment_start: np.ndarray
    grid: np.ndarray
    table: EntityTable

    @property
    def entities(self) -> np.ndarray:
        """(E,) ``ENTITY`` in type-list order (physics 02, section 4.2)."""
        return self.table.entities

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
        arrays = {name: getattr(self, name) for name in ("tiles", "segments", "segment_start", "grid")}
        return array_group(self.name, arrays | self.table._asdict(), shared=True)


def compile_level(raw: RawLevel, name: str = "") -> Level:
    """Compute a :class:`Level`; entity types that are not modelled are left out with one warning.

    Args:
        raw: what the level file says.
        name: what to call it; by default its title, or where it came from.
    """
    name = name or raw.title or raw.source
    tiles = padded_tiles(raw.tiles)
    table = entity_table(raw.records)
    segments, segment_start = sorted_segments(tiles, table.doors)
    lattice = grid(tiles, table.doors)
    spawn = (float(raw.records[0, 1]) * MAP_UNIT, float(raw.records[0, 2]) * MAP_UNIT)
    _warn_of_inert(raw.records, name)
    for array in (tiles, segments, segment_start, lattice, *table):
        array.flags.writeable = False
    return Level(raw, name, tiles, spawn, segments, segment_start, lattice, table)


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
