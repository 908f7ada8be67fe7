"""RawLevel to Level: everything about a level that never changes during play, as read-only arrays."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nclone_env.constants import EXIT, MAP_UNIT
from nclone_env.errors import InertEntityWarning
from nclone_env.level.entities import MODELLED_TYPES, EntityTable, entity_table
from nclone_env.level.raw import RawLevel, entity_name
from nclone_env.level.records import DATA_TYPES, has_behaviour
from nclone_env.level.routes.distance import objective_fields
from nclone_env.level.segments import grid, padded_tiles, sorted_segments
from nclone_env.memory_tree import MemoryNode, array_group


@dataclass(frozen=True, eq=False)
class Level:
    """One level. Its arrays are read-only, computed when they are first asked for, and then kept with it.

    An environment does not ask for them: it plays the packed ones of ``level.library``.

    Attributes:
        raw: what the level file says.
        name: ``set/level`` of a built-in level, file name of another, else the title.
    """

    raw: RawLevel
    name: str

    def __reduce__(self) -> tuple[type, tuple[RawLevel, str]]:
        """Pickle what the level file says; the rest follows from it."""
        return type(self), (self.raw, self.name)

    @cached_property
    def tiles(self) -> np.ndarray:
        """(25, 44) uint8; tile numbers with the border of full blocks, unknown numbers as 0."""
        return _frozen(padded_tiles(self.raw.tiles))

    @property
    def spawn(self) -> tuple[float, float]:
        """Start of the ninja, pixels."""
        return float(self.raw.records[0, 1]) * MAP_UNIT, float(self.raw.records[0, 2]) * MAP_UNIT

    @cached_property
    def table(self) -> EntityTable:
        """The entities."""
        return EntityTable(*map(_frozen, entity_table(self.raw.records)))

    @property
    def segments(self) -> np.ndarray:
        """(S,) ``SEGMENT``; sorted by cell, in the order that collision depends on (physics 01, section 2.7)."""
        return self._sorted_segments[0]

    @property
    def segment_start(self) -> np.ndarray:
        """(1101,) int32; segments of cell ``column * 25 + row`` are ``start[cell]:start[cell + 1]``."""
        return self._sorted_segments[1]

    @cached_property
    def _sorted_segments(self) -> tuple[np.ndarray, np.ndarray]:
        segments, start = sorted_segments(self.tiles, self.table.doors)
        return _frozen(segments), _frozen(start)

    @cached_property
    def grid(self) -> np.ndarray:
        """(2, 51, 89) uint8; the lattice that moving entities collide with."""
        return _frozen(grid(self.tiles, self.table.doors))

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
        """(1 + X, 51, 89) float32 distances to the objectives."""
        exits = self.exits
        exit_points = [(int(e["x"]), int(e["y"])) for e in self.entities[exits]]
        switch_points = [(int(e["x"]), int(e["y"])) for e in self.entities[exits + 1]]
        return objective_fields(self.tiles, exit_points, switch_points)

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays, without the distances."""
        arrays = {name: getattr(self, name) for name in ("tiles", "segments", "segment_start", "grid")}
        return array_group(self.name, arrays | self.table._asdict(), shared=True)


def compile_level(raw: RawLevel, name: str = "") -> Level:
    """Return a :class:`Level`; entity types that are not modelled are left out with one warning.

    Args:
        raw: what the level file says.
        name: what to call it; by default its title, or where it came from.
    """
    name = name or raw.title or raw.source
    _warn_of_inert(raw.records, name)
    return Level(raw, name)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


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
