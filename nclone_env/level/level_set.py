"""LevelSet: several levels packed into a few arrays that every environment shares, and their paths.

The level library shares equal sets within a process, and their arrays across the machine.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from nclone_env import _arrays
from nclone_env._arrays import Arrays, Layout, LibraryStatus, cached_arrays, library_status
from nclone_env._table import outline
from nclone_env.errors import ConfigError, checked
from nclone_env.level.build import mirrored
from nclone_env.level.compile import ARRAYS_LAYOUT, LASER_FRAME, LevelArrays, compile_level, level_distances
from nclone_env.level.level import Level
from nclone_env.level.routes.fields import Fields, distance_at, field_room, frozen, joined_fields
from nclone_env.memory import MemoryNode, array_group

NO_LANDMARKS = np.zeros(1, np.int16)
NO_LANDMARKS.flags.writeable = False


class Paths(NamedTuple):
    """Path lengths of L levels, read-only.

    A level either has landmarks, which are visited in order, with a field for each; or it has none, and its fields are
    those of ``level.routes.distance``: by a switch to its exit, then to each exit.

    Attributes:
        header: (L,) ``LEVEL_HEADER``; ``start_distance``, ``first_field``, ``first_landmark`` and ``landmark_count`` of
            these paths.
        fields: (F,) ``FIELD``; path lengths, with ``rows``, ``codes`` and ``rests`` as of ``Fields``.
        landmarks: int16; entities of the levels, those of a level in order, the exit last.
    """

    header: np.ndarray
    fields: np.ndarray
    rows: np.ndarray
    codes: np.ndarray
    rests: np.ndarray
    landmarks: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays that levels themselves do not have; none without landmarks."""
        own = self._asdict() if self.header["landmark_count"].any() else {}
        return array_group("paths", own, shared=True)


@dataclass(frozen=True, eq=False)
class LevelSet:
    """Levels with their packed arrays.

    Attributes:
        levels: the levels, in order.
        arrays: the arrays the simulator reads.
        fields: the distance fields of the levels one after another, read-only, those of a level from its
            ``first_field``: path length by a switch to its exit, then path length to each exit. None without
            ``with_distances``.
    """

    levels: tuple[Level, ...]
    arrays: LevelArrays = field(repr=False)
    fields: Fields = field(repr=False)
    _derived: dict[str, Arrays] = field(default_factory=dict, repr=False)

    __repr__ = outline

    @cached_property
    def paths(self) -> Paths:
        """Paths between tiles, which doors do not block; needs ``with_distances``."""
        return Paths(self.arrays.header, *self.fields, NO_LANDMARKS)

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
            array_group("distance fields", self.fields._asdict(), shared=True),
        )
        return MemoryNode("levels", children=parts)


def content_digest(levels: Sequence[Level]) -> str:
    """Return the SHA-256 over tiles and records of levels, in hex; names and headers are not included."""
    return hashlib.sha256("".join(level.raw.digest for level in levels).encode()).hexdigest()


@checked()
def pack(levels: Sequence[Level], *, with_distances: bool = False) -> LevelSet:
    """Compile levels and pack their arrays, read-only.

    Args:
        levels: one or more levels.
        with_distances: also pack the distance fields (environments need them, the simulator does not).
    """
    if not len(levels):
        raise ConfigError("levels: expected at least one level, got none")
    compiled = [compile_level(level) for level in levels]
    arrays = LevelArrays(*map(_joined, zip(*compiled, strict=True)))
    arrays = arrays._replace(
        laser_start=np.zeros(len(levels) + 1, np.int32),  # no tables yet
        laser_frames=np.zeros(1, LASER_FRAME),
    )
    _write_places(compiled, arrays.header)
    distances = [level_distances(level) for level in compiled] if with_distances else []
    for row, level, own in zip(arrays.header, levels, distances):
        row["start_distance"] = distance_at(own, 0, *level.spawn)
    fields = joined_fields(distances) if distances else frozen(field_room(0))
    for array in arrays:
        array.flags.writeable = False
    return LevelSet(tuple(levels), arrays, fields)


def _write_places(compiled: Sequence[LevelArrays], headers: np.ndarray) -> None:
    """Write the rows of the packed arrays to the ``LEVEL_HEADER`` of each level."""
    for first, count in (
        ("first_entity", headers["entity_count"]),
        ("first_mover", headers["mover_count"]),
        ("first_door", headers["door_count"]),
        ("first_run", headers["run_count"]),
        ("first_field", 1 + headers["exit_count"]),
        ("first_segment", [len(level.segments) for level in compiled]),
        ("first_mine", [len(level.mines) for level in compiled]),
        ("first_near", [len(level.near) for level in compiled]),
    ):
        headers[first] = np.cumsum(count) - count


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the parts in one array, at least one record long, so that kernels get a valid pointer."""
    joined = np.concatenate(parts)
    return joined if len(joined) else np.zeros(1, joined.dtype)


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
    fields = Fields(*(arrays.pop(name) for name in Fields._fields))
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
    return packed.arrays._asdict() | packed.fields._asdict()
