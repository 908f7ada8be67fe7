"""LevelSet: several levels packed into a few arrays that every environment shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nclone_env.constants import CELLS, COLUMNS, GOLD, ROWS
from nclone_env.level.compile import ENTITY, SEGMENT, Level
from nclone_env.level.distance import FIELD_SHAPE, distance_at
from nclone_env.memory_tree import MemoryNode, array_group

LEVEL_HEADER = np.dtype(
    [
        ("spawn_x", "f8"),
        ("spawn_y", "f8"),
        ("start_distance", "f8"),
        ("first_entity", "i4"),
        ("entity_count", "i4"),
        ("first_exit", "i4"),
        ("exit_count", "i4"),
        ("first_field", "i4"),
        ("gold_count", "i4"),
    ],
    align=True,
)
"""Start of the ninja and length of its whole way (pixels), and where the level's rows of the shared arrays begin.

``first_entity`` and ``first_field`` count in the packed arrays, ``first_exit`` within the level.
"""


class LevelArrays(NamedTuple):
    """L packed levels, every array read-only.

    Attributes:
        header: (L,) ``LEVEL_HEADER``.
        tiles: (L, 25, 44) uint8.
        segment_start: (L, 1101) int32; positions in ``segments`` by cell ``column * 25 + row``.
        segments: ``SEGMENT`` records of all levels.
        member_start: (L, 1101) int32; positions in ``members`` by cell.
        members: int16; entity indices within the level.
        entities: ``ENTITY`` records of all levels.
    """

    header: np.ndarray
    tiles: np.ndarray
    segment_start: np.ndarray
    segments: np.ndarray
    member_start: np.ndarray
    members: np.ndarray
    entities: np.ndarray


@dataclass(frozen=True, eq=False)
class LevelSet:
    """Levels with their packed arrays.

    Attributes:
        levels: the levels, in order.
        arrays: what the simulator needs.
        fields: (F, 51, 89) float32, read-only; the distance fields of the levels one after another, those of a level
            from its ``first_field``: way to a switch and on to its exit, then the way to each exit. Empty without
            ``with_distances``.
        max_entities: entity bytes a world needs to play any of the levels.
    """

    levels: tuple[Level, ...]
    arrays: LevelArrays
    fields: np.ndarray
    max_entities: int

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each level."""
        return tuple(level.name for level in self.levels)

    def memory(self) -> MemoryNode:
        """Return the bytes of the packed arrays."""
        parts = (
            array_group("level arrays", self.arrays._asdict(), shared=True),
            MemoryNode("distance fields", int(self.fields.nbytes), shared=True),
        )
        return MemoryNode("levels", children=parts)


def pack(levels: Sequence[Level], *, with_distances: bool = False) -> LevelSet:
    """Pack levels into shared read-only arrays.

    Args:
        levels: one or more levels.
        with_distances: also pack the distance fields (environments need them, the simulator does not).
    """
    arrays = LevelArrays(
        header=_headers(levels),
        tiles=np.stack([level.tiles for level in levels]).reshape(-1, ROWS, COLUMNS),
        segment_start=_offset_starts([level.segment_start for level in levels]),
        segments=_joined([level.segments for level in levels], SEGMENT),
        member_start=_offset_starts([level.member_start for level in levels]),
        members=_joined([level.members for level in levels], np.dtype(np.int16)),
        entities=_joined([level.entities for level in levels], ENTITY),
    )
    fields = np.zeros((0, *FIELD_SHAPE), dtype=np.float32)
    if with_distances:
        fields = np.concatenate([level.distances for level in levels])
        for row, level in zip(arrays.header, levels, strict=True):
            row["start_distance"] = distance_at(level.distances, 0, *level.spawn)
    for array in (*arrays, fields):
        array.flags.writeable = False
    return LevelSet(tuple(levels), arrays, fields, max(1, *(len(level.entities) for level in levels)))


def _headers(levels: Sequence[Level]) -> np.ndarray:
    headers = np.zeros(len(levels), dtype=LEVEL_HEADER)
    first_entity = first_field = 0
    for row, level in zip(headers, levels, strict=True):
        exits = level.exits
        row["spawn_x"], row["spawn_y"] = level.spawn
        row["first_entity"], row["entity_count"] = first_entity, len(level.entities)
        row["first_exit"], row["exit_count"] = (exits[0] if len(exits) else 0), len(exits)
        row["first_field"] = first_field
        row["gold_count"] = np.count_nonzero(level.entities["type"] == GOLD)
        first_entity += len(level.entities)
        first_field += 1 + len(exits)
    return headers


def _offset_starts(starts: Sequence[np.ndarray]) -> np.ndarray:
    packed = np.empty((len(starts), CELLS + 1), dtype=np.int32)
    total = 0
    for row, start in zip(packed, starts, strict=True):
        row[:] = start + total
        total += int(start[-1])
    return packed


def _joined(parts: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Return the parts in one array, at least one record long, so that kernels get a valid pointer."""
    total = sum(len(part) for part in parts)
    joined = np.zeros(max(total, 1), dtype=dtype)
    if total:
        joined[:] = np.concatenate(parts)
    return joined
