"""Level to CompiledLevel: everything about a level that never changes during play, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import EXIT
from nclone_env.level.entities import entity_table
from nclone_env.level.level import Level
from nclone_env.level.routes.distance import objective_fields
from nclone_env.level.segments import grid, padded_tiles, sorted_segments


class CompiledLevel(NamedTuple):
    """The arrays of one level, read-only. Environments play the packed ones of a ``LevelSet``.

    Attributes:
        tiles: (25, 44) uint8; tile numbers with the border of full blocks, unknown numbers as 0.
        segments: (S,) ``SEGMENT``; sorted by cell, in the order that collision depends on (physics 01, section 2.7).
        segment_start: (1101,) int32; segments of cell ``column * 25 + row`` are ``start[cell]:start[cell + 1]``.
        grid: (2, 51, 89) uint8; the lattice that moving entities collide with.
        entities: (E,) ``ENTITY`` in type-list order (physics 02, section 4.2).
        members: int16; entities without mover record sorted by cell, within a cell in order of creation.
        member_start: (1101,) int32; positions in ``members`` by cell.
        mover_slots: (M,) int16; entity of each mover record.
        doors: (D,) ``DOOR`` in order of creation.
        exits: (X,) int64; indices of the exits in ``entities``; the switch of each exit follows it.
    """

    tiles: np.ndarray
    segments: np.ndarray
    segment_start: np.ndarray
    grid: np.ndarray
    entities: np.ndarray
    members: np.ndarray
    member_start: np.ndarray
    mover_slots: np.ndarray
    doors: np.ndarray
    exits: np.ndarray

    def distances(self) -> np.ndarray:
        """Compute the distances to the objectives, (1 + X, 51, 89) float32 (``level.routes.distance``)."""
        exits, switches = self.entities[self.exits], self.entities[self.exits + 1]
        exit_points, switch_points = ([(int(e["x"]), int(e["y"])) for e in group] for group in (exits, switches))
        return objective_fields(self.tiles, exit_points, switch_points)


def compile_level(level: Level) -> CompiledLevel:
    """Compute the arrays of a level."""
    tiles = padded_tiles(level.raw.tiles)
    table = entity_table(level.raw.records)
    segments, segment_start = sorted_segments(tiles, table.doors)
    compiled = CompiledLevel(
        tiles=tiles,
        segments=segments,
        segment_start=segment_start,
        grid=grid(tiles, table.doors),
        exits=np.flatnonzero(table.entities["type"] == EXIT),
        **table._asdict(),
    )
    for array in compiled:
        array.flags.writeable = False
    return compiled
