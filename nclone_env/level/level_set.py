"""LevelSet: several levels packed into a few arrays that every environment shares, and their paths.

The level library shares equal sets within a process, and their arrays across the machine.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nclone_env import _arrays
from nclone_env._arrays import Arrays, Layout, LibraryStatus, cached_arrays, library_status
from nclone_env.game import EVIL_DELAY, EVIL_NINJA, EXIT, GOLD, KINDS, ONE_WAY
from nclone_env.level.build import mirrored
from nclone_env.level.compile import DOOR, ENTITY, SEGMENT, CompiledLevel, compile_level
from nclone_env.level.level import Level
from nclone_env.level.routes.distance import FIELD_SHAPE, distance_at
from nclone_env.memory import MemoryNode, array_group, array_node

NO_LANDMARKS = np.zeros(1, np.int16)
NO_LANDMARKS.flags.writeable = False
_ACTING = frozenset(kind.number for kind in KINDS if kind.acts)
_SOLID_MOVERS = tuple(kind.number for kind in KINDS if kind.solid and kind.has_mover)

LEVEL_HEADER = np.dtype(
    [("spawn_x", "f8"), ("spawn_y", "f8"), ("start_distance", "f8")]
    + [(name, "i4") for name in ("first_entity", "first_mover", "first_door", "first_run", "first_field")]
    + [(name, "i4") for name in ("entity_count", "mover_count", "door_count", "run_count", "exit_count", "gold_count")]
    + [(name, "i4") for name in ("first_exit", "has_platforms", "has_blocks", "has_plain_walls")]
    + [(name, "i4") for name in ("first_landmark", "landmark_count", "trail_count")],
    align=True,
)
"""One level of a set: start of the ninja, length of its path to the exit (pixels), and its rows of the packed arrays.

``first_entity``, ``first_mover``, ``first_door``, ``first_run`` and ``first_field`` are indices of the packed arrays;
``trail_count``, the past positions of the ninja that the last evil ninja needs (physics 03, section 12.3);
``first_exit`` is an index of the level's own entity table; ``has_platforms`` and ``has_blocks``, whether there are
one-way platforms and solid entities that move; ``has_plain_walls``, whether no door sticks out of the cell that lists
it (``sim.sight``). Packed levels have no landmarks (``level.level_set``).
"""

RUN = np.dtype([("type", "i2"), ("first", "i2"), ("stop", "i2"), ("shift", "i2")], align=True)
"""Consecutive entities of a type that moves or thinks: ``first`` to ``stop - 1`` in the entity table of the level.

Entities and mover records of a type are both consecutive: the mover record of entity ``slot`` is ``slot + shift``.
Types without mover records ignore ``shift``."""


LASER_FRAME = np.dtype(
    [(name, "f8") for name in ("x", "y", "angle", "next_x", "next_y", "next_angle")]
    + [("motion", "i4"), ("frames", "i2"), ("sense", "u1"), ("next_sense", "u1")],
    align=True,
)
"""A frame of a surface laser, before and after it (``sim.entities.laser.known``); ``sense`` 0: an empty entry."""


class Paths(NamedTuple):
    """Path lengths of L levels, read-only.

    A level either has landmarks, which are visited in order, with a field for each; or it has none, and its fields are
    those of ``level.routes.distance``: by a switch to its exit, then to each exit.

    Attributes:
        header: (L,) ``LEVEL_HEADER``; ``start_distance``, ``first_field``, ``first_landmark`` and ``landmark_count`` of
            these paths.
        fields: (F, 51, 89) float32; path length from each node of the lattice, pixels, infinite without a path.
        landmarks: int16; entities of the levels, those of a level in order, the exit last.
    """

    header: np.ndarray
    fields: np.ndarray
    landmarks: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays that levels themselves do not have; none without landmarks."""
        own = self._asdict() if self.header["landmark_count"].any() else {}
        return array_group("paths", own, shared=True)


class LevelArrays(NamedTuple):
    """L packed levels, every array read-only.

    Attributes:
        header: (L,) ``LEVEL_HEADER``.
        tiles: (L, 25, 44) uint8.
        segment_start: (L, 1101) int32; positions in ``segments`` by cell ``column * 25 + row``.
        segments: ``SEGMENT`` records of all levels.
        member_start: (L, 1101) int32; positions in ``members`` by cell.
        members: int16; entities of the level that never change their cell.
        near_start: (L, 1101) int32; positions in ``near`` by cell.
        near: int16; those of them that can act on a ninja in the cell, in the order in which they are visited.
        entities: ``ENTITY`` records of all levels.
        mover_slots: int16; entity of each mover record of a level.
        doors: ``DOOR`` records of all levels.
        runs: ``RUN`` records of all levels, types ascending within a level.
        edges: (L, 3, 191) int64; the lattice that moving entities collide with, a bit an edge
            (``level.compile.pack_edges``).
        laser_start: (L + 1,) int32; where the table of each level begins in ``laser_frames``.
        laser_frames: ``LASER_FRAME`` hash tables of all levels, empty ones at first: the simulator fills them in
            (:meth:`LevelSet.replace`). Play is the same with any part of them.
    """

    header: np.ndarray
    tiles: np.ndarray
    segment_start: np.ndarray
    segments: np.ndarray
    member_start: np.ndarray
    members: np.ndarray
    near_start: np.ndarray
    near: np.ndarray
    entities: np.ndarray
    mover_slots: np.ndarray
    doors: np.ndarray
    runs: np.ndarray
    edges: np.ndarray
    laser_start: np.ndarray
    laser_frames: np.ndarray


# fmt: off
_DTYPES: tuple[Any, ...] = (
    LEVEL_HEADER, "u1", "i4", SEGMENT, "i4", "i2", "i4", "i2", ENTITY, "i2", DOOR, RUN, "i8", "i4", LASER_FRAME,
    "f4",
)
# fmt: on
ARRAYS_LAYOUT = dict(zip((*LevelArrays._fields, "fields"), map(np.dtype, _DTYPES), strict=True))
"""The dtypes of the ``LevelArrays`` and of the distance fields."""


@dataclass(frozen=True, eq=False)
class LevelSet:
    """Levels with their packed arrays.

    Attributes:
        levels: the levels, in order.
        arrays: the arrays the simulator reads.
        fields: (F, 51, 89) float32, read-only; the distance fields of the levels one after another, those of a level
            from its ``first_field``: path length by a switch to its exit, then path length to each exit. Empty without
            ``with_distances``.
    """

    levels: tuple[Level, ...]
    arrays: LevelArrays
    fields: np.ndarray
    _derived: dict[str, Arrays] = field(default_factory=dict, repr=False)

    @cached_property
    def paths(self) -> Paths:
        """Paths between tiles, which doors do not block; needs ``with_distances``."""
        return Paths(self.arrays.header, self.fields, NO_LANDMARKS)

    @cached_property
    def images(self) -> Mapping[str, str]:
        """Digest of the mirror image of each level, by the digest of the level."""
        return {level.raw.digest: mirrored(level).raw.digest for level in self.levels}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each level."""
        return tuple(level.name for level in self.levels)

    @property
    def max_entities(self) -> int:
        """Entity bytes that a world needs for any of the levels."""
        return int(self.arrays.header["entity_count"].max())

    @property
    def max_movers(self) -> int:
        """Mover records that a world needs for any of the levels."""
        return int(self.arrays.header["mover_count"].max())

    @property
    def max_trail(self) -> int:
        """Past positions of the ninja that a world needs for any of the levels."""
        return int(self.arrays.header["trail_count"].max())

    def entities_of(self, level: int) -> np.ndarray:
        """Return the (E,) ``ENTITY`` records of a level, a view."""
        header = self.arrays.header[level]
        return self.arrays.entities[header["first_entity"] :][: header["entity_count"]]

    def mover_slots_of(self, level: int) -> np.ndarray:
        """Return (M,) int16: the entity of each mover record of a level, a view."""
        header = self.arrays.header[level]
        return self.arrays.mover_slots[header["first_mover"] :][: header["mover_count"]]

    def derived(self, name: str, layout: Layout, make: Callable[[], Mapping[str, np.ndarray]]) -> Arrays:
        """Return arrays derived from the contents of the levels, computed once and cached in a file.

        The name, a part of that of the file, has everything else that they depend on, such as a size.
        """
        if name not in self._derived:
            self._derived[name] = cached_arrays(name, content_digest(self.levels), layout, make)
        return self._derived[name]

    def replace(self, **arrays: np.ndarray) -> None:
        """Replace arrays of ``arrays`` by those that another room derives, read-only; play must not depend on them."""
        for array in arrays.values():
            array.flags.writeable = False
        object.__setattr__(self, "arrays", self.arrays._replace(**arrays))

    def memory(self) -> MemoryNode:
        """Return the bytes of the packed arrays; users of ``derived`` arrays report those."""
        parts = (
            array_group("level arrays", self.arrays._asdict(), shared=True),
            array_node("distance fields", self.fields, shared=True),
        )
        return MemoryNode("levels", children=parts)


def content_digest(levels: Sequence[Level]) -> str:
    """Return the SHA-256 over tiles and records of levels, in hex; names and headers are not included."""
    return hashlib.sha256("".join(level.raw.digest for level in levels).encode()).hexdigest()


def pack(levels: Sequence[Level], *, with_distances: bool = False) -> LevelSet:
    """Compile levels and pack their arrays, read-only.

    Args:
        levels: one or more levels.
        with_distances: also pack the distance fields (environments need them, the simulator does not).
    """
    compiled = [compile_level(level) for level in levels]
    runs = [_runs(level.entities) for level in compiled]
    joined = {
        name: _joined([getattr(level, name) for level in compiled], ARRAYS_LAYOUT[name])
        for name in ("segments", "members", "near", "entities", "mover_slots", "doors")
    }
    arrays = LevelArrays(
        header=_headers(levels, compiled, runs),
        tiles=np.stack([level.tiles for level in compiled]),
        segment_start=_offset_starts([level.segment_start for level in compiled]),
        member_start=_offset_starts([level.member_start for level in compiled]),
        near_start=_offset_starts([level.near_start for level in compiled]),
        runs=_joined(runs, RUN),
        edges=np.stack([level.edges for level in compiled]),
        laser_start=np.zeros(len(levels) + 1, np.int32),
        laser_frames=np.zeros(1, LASER_FRAME),
        **joined,
    )
    fields = np.zeros((0, *FIELD_SHAPE), dtype=np.float32)
    if with_distances:
        distances = [level.distances() for level in compiled]
        fields = np.concatenate(distances)
        for row, level, own in zip(arrays.header, levels, distances, strict=True):
            row["start_distance"] = distance_at(own, 0, *level.spawn)
    for array in (*arrays, fields):
        array.flags.writeable = False
    return LevelSet(tuple(levels), arrays, fields)


def _runs(entities: np.ndarray) -> np.ndarray:
    """Return the ``RUN`` records of a level from its entities, whose types ascend."""
    kinds = entities["type"]
    acting = [kind for kind in np.unique(kinds).tolist() if kind in _ACTING]
    bounds = [(kind, *np.searchsorted(kinds, (kind, kind + 1)).tolist()) for kind in acting]
    return np.array([(*bound, entities["mover"][bound[1]] - bound[1]) for bound in bounds], dtype=RUN)


def _headers(levels: Sequence[Level], compiled: Sequence[CompiledLevel], runs: Sequence[np.ndarray]) -> np.ndarray:
    headers = np.zeros(len(levels), dtype=LEVEL_HEADER)
    headers["run_count"] = [len(rows) for rows in runs]
    for row, level, arrays in zip(headers, levels, compiled, strict=True):
        kinds = arrays.entities["type"]
        row["spawn_x"], row["spawn_y"] = level.spawn
        row["entity_count"], row["mover_count"] = len(kinds), len(arrays.mover_slots)
        row["door_count"], row["exit_count"] = len(arrays.doors), len(arrays.exits)
        row["gold_count"] = np.count_nonzero(kinds == GOLD)
        row["trail_count"] = max(EVIL_DELAY * int(np.count_nonzero(kinds == EVIL_NINJA)) - 1, 0)
        row["first_exit"] = np.searchsorted(kinds, EXIT)
        row["has_platforms"], row["has_blocks"] = np.any(kinds == ONE_WAY), np.isin(kinds, _SOLID_MOVERS).any()
        row["has_plain_walls"] = _lie_in_their_cells(arrays.doors)
    for first, count in (
        ("first_entity", headers["entity_count"]),
        ("first_mover", headers["mover_count"]),
        ("first_door", headers["door_count"]),
        ("first_run", headers["run_count"]),
        ("first_field", 1 + headers["exit_count"]),
    ):
        headers[first] = np.cumsum(count) - count
    return headers


def _lie_in_their_cells(doors: np.ndarray) -> bool:
    """Return whether all doors lie in the cells that list them, as tiles always do; those beside a border need not."""
    half_x, half_y = np.where(doors["vertical"] != 0, 0, 12), np.where(doors["vertical"] != 0, 12, 0)
    left, top = 24 * doors["column"], 24 * doors["row"]
    inside = (doors["x"] - half_x >= left) & (doors["x"] + half_x <= left + 24)
    return bool((inside & (doors["y"] - half_y >= top) & (doors["y"] + half_y <= top + 24)).all())


def _offset_starts(starts: Sequence[np.ndarray]) -> np.ndarray:
    """Return (L, 1101) int32: the starts of each level, moved behind what the levels before it have."""
    rows = np.stack(starts)
    totals = rows[:, -1:]
    return rows + (np.cumsum(totals, axis=0, dtype=np.int32) - totals)


def _joined(parts: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Return the parts in one array, at least one record long, so that kernels get a valid pointer."""
    total = sum(len(part) for part in parts)
    joined = np.zeros(max(total, 1), dtype=dtype)
    if total:
        joined[:] = np.concatenate(parts)
    return joined


_held: WeakValueDictionary[str, LevelSet] = WeakValueDictionary()
"""The level sets in use, by names and contents of their levels."""


def shared_level_set(levels: Sequence[Level]) -> LevelSet:
    """Return the levels packed with their distance fields, one object for equal levels.

    The set is shared within the process while it is referenced. Its arrays are mapped from a file that all processes
    share (``_arrays``), so that equal levels are compiled once per machine.
    """
    identity = _identity(levels)
    level_set = _held.get(identity)
    if level_set is not None:
        _arrays.counts.memory_hits += 1
        return level_set
    arrays = cached_arrays("levels", content_digest(levels), ARRAYS_LAYOUT, lambda: _packed(levels))
    fields = arrays.pop("fields")
    return _held.setdefault(identity, LevelSet(tuple(levels), LevelArrays(**arrays), fields))


def level_library() -> LibraryStatus:
    """Return the files, sizes and hit counters of the level library.

    Raises:
        ConfigError: if ``NCLONE_ENV_LEVEL_CACHE_MB`` is not a whole number.
    """
    held = list(_held.values())
    return library_status(len(held), sum(level_set.memory().total_bytes for level_set in held))


def _identity(levels: Sequence[Level]) -> str:
    """Return a digest of everything a level set exposes: contents, names and headers."""
    digest = hashlib.sha256()
    for level in levels:
        raw = level.raw
        header = (level.name, raw.title, raw.author, raw.level_id, raw.game_mode, raw.source)
        digest.update(repr((*header, raw.digest)).encode())
    return digest.hexdigest()


def _packed(levels: Sequence[Level]) -> Arrays:
    """Return the packed arrays of levels by name."""
    packed = pack(levels, with_distances=True)
    return {**packed.arrays._asdict(), "fields": packed.fields}
