"""A level: the contents of its file, before anything is computed from them, and its name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nclone_env.game import MAP_UNIT, TILE_COLUMNS, TILE_ROWS

UNPUBLISHED = 0xFFFFFFFF


class Record(NamedTuple):
    """One object record of a level: five bytes."""

    type: int
    """Entity type, 0..255."""
    x: int
    """In units of 6 pixels from the left edge of the world, which includes the border."""
    y: int
    """The same from the top edge."""
    orientation: int = 0
    """0 right, then clockwise in steps of 45 degrees, for the types that have one."""
    mode: int = 0
    """How drones patrol and lasers move."""


@dataclass(frozen=True, eq=False)
class RawLevel:
    """Tiles and object records of one level, with its header.

    Attributes:
        tiles: (23, 42) uint8, read-only; tile number of each playable cell, row by row.
        records: (N, 5) uint8, read-only; the fields of a :class:`Record`. Row 0 is the ninja.
        title: level name, at most 128 bytes.
        author: author name, at most 16 bytes.
        level_id: number the game gave the level; ``UNPUBLISHED`` if none.
        game_mode: 0 solo, 1 co-op, 2 race, 4 unset (physics 01, section 14.1).
        source: file the level came from, for messages.
        notes: what its file contains that is wrong but did not prevent reading it, one sentence each.
    """

    tiles: np.ndarray
    records: np.ndarray
    title: str = ""
    author: str = ""
    level_id: int = UNPUBLISHED
    game_mode: int = 0
    source: str = field(default="<bytes>")
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Freeze private copies of both arrays."""
        for name, shape in (("tiles", (TILE_ROWS, TILE_COLUMNS)), ("records", (-1, 5))):
            array = np.array(getattr(self, name), dtype=np.uint8).reshape(shape)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over tiles and records, in hex; headers do not count."""
        return hashlib.sha256(self.tiles.tobytes() + self.records.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class Level:
    """One level as loaded, cheap to keep; :func:`nclone_env.level.compile.compile_level` computes its arrays.

    Attributes:
        raw: contents of the level file.
        name: ``set/level`` for a built-in level, the file name for another file, else the title.
    """

    raw: RawLevel
    name: str

    @classmethod
    def of(cls, raw: RawLevel) -> Level:
        """Return a level named after its title, or after its source if it has no title."""
        return cls(raw, raw.title or raw.source)

    @property
    def spawn(self) -> tuple[float, float]:
        """Start of the ninja, pixels."""
        _, x, y, _, _ = self.raw.records[0].tolist()
        return x * MAP_UNIT, y * MAP_UNIT
