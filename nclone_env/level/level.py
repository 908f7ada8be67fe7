"""A level: the contents of its file, before anything is computed from them, and the rules for its object records.

A record is five bytes: type, x, y, orientation, mode (physics 01, section 14.2). Some belong together
(physics 02, sections 2.5 and 2.6): with E exits in the level, the switch of the exit in record i is record
i + E; the switch of a locked or trap door is the record after it. Records are counted from 0.

The rules come in three strengths. :func:`loading_fault` refuses only what has no meaning, so that files of any
origin load. :func:`writing_fault` also asks for what the game's own files always have, because only such
levels survive a round trip through every format. :func:`validate` tells what is unusual, or unfit for training.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from nclone_env._table import outline
from nclone_env.errors import LevelFormatError, plain
from nclone_env.game import (
    CELL_SIZE,
    COLUMNS,
    DOOR_SWITCHES,
    EXIT,
    KINDS,
    MAP_UNIT,
    MAX_TILE,
    NINJA,
    ROWS,
    SWITCH_OF,
    TILE_COLUMNS,
    TILE_ROWS,
    UNKNOWN_27,
    UNLIMITED,
    kind_name,
)

UNPUBLISHED = 0xFFFFFFFF
MAX_TYPE = 39  # the counts block has room for types 0..39
MAX_RECORDS = UNLIMITED
ORIENTATIONS = np.array([kind.orientations for kind in KINDS])
MODES = np.array([kind.modes for kind in KINDS])

FULL_BLOCK = 1
UNITS_PER_CELL = int(CELL_SIZE / MAP_UNIT)


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

    Raises:
        LevelFormatError: if an array has another shape, or numbers that are no bytes.
    """

    tiles: np.ndarray
    records: np.ndarray
    title: str = ""
    author: str = ""
    level_id: int = UNPUBLISHED
    game_mode: int = 0
    source: str = field(default="<bytes>")
    notes: tuple[str, ...] = ()

    __repr__ = outline

    def __post_init__(self) -> None:
        """Freeze private copies of both arrays."""
        for name, rows, columns in (("tiles", TILE_ROWS, TILE_COLUMNS), ("records", -1, 5)):
            array = self._bytes(name, rows, columns)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def _bytes(self, name: str, rows: int, columns: int) -> np.ndarray:
        """Return a copy of an array as uint8, unless a number would become another."""
        given = getattr(self, name)
        try:
            values = np.asarray(given).reshape(rows, columns)
            with np.errstate(invalid="ignore"):  # not a number
                array = values.astype(np.uint8)
            if (array == values).all():
                return array
            got = f"{values[array != values].flat[0]}"
        except (TypeError, ValueError, OverflowError) as error:
            got = str(error)
        shape = f"({'n' if rows < 0 else rows}, {columns})"
        raise LevelFormatError(self.source, name, f"{shape} whole numbers from 0 to 255", plain(got))

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


class RecordFault(NamedTuple):
    """What is wrong with one record."""

    record: int
    """Which record; the number of records if one is missing at the end."""
    expected: str
    got: str


def loading_fault(records: np.ndarray) -> RecordFault | None:
    """Return the first reason why (N, 5) uint8 records have no meaning as a level, or None."""
    if not len(records):
        return RecordFault(0, "a ninja record, the start of the level", "no records")
    if len(records) > MAX_RECORDS:
        return RecordFault(MAX_RECORDS, f"at most {MAX_RECORDS} records", f"{len(records)}")
    if records[0, 0] != NINJA:
        return RecordFault(0, "the ninja as the first record", kind_name(int(records[0, 0])))
    return _crowd_fault(records) or _partner_missing(records)


def writing_fault(records: np.ndarray) -> RecordFault | None:
    """Return the first reason why (N, 5) uint8 records cannot be written to a level file, or None."""
    fault = loading_fault(records)
    if fault:
        return fault
    types = records[:, 0].tolist()
    exits = count_exits(records)
    for index, kind in enumerate(types):
        if kind > MAX_TYPE:
            return RecordFault(index, f"a type of 0..{MAX_TYPE}, which level files can count", f"type {kind}")
        fault = _partner_type_fault(index, types, exits)
        if fault:
            return fault
    return None


def played_records(records: np.ndarray) -> np.ndarray:
    """Return (N, 5) uint8 records as they are played: each orientation and mode modulo the number that its kind has.

    Levels with greater ones, edited by other means than the game's editor, are public, and the game plays them.
    """
    played = records.copy()
    known = records[:, 0] < len(KINDS)
    kinds = records[known, 0]
    played[known, 3] = records[known, 3] % ORIENTATIONS[kinds]
    played[known, 4] = records[known, 4] % MODES[kinds]
    return played


def count_exits(records: np.ndarray) -> int:
    """Return the number of exit records in (N, 5) records."""
    return int(np.count_nonzero(records[:, 0] == EXIT))


def partner_index(index: int, kind: int, exits: int) -> int | None:
    """Return which record is the switch of the exit or door in record ``index``; None for other types."""
    if kind == EXIT:
        return index + exits
    return index + 1 if kind in DOOR_SWITCHES else None


_MOST = np.array([kind.most for kind in KINDS])
_HAS_SWITCH = np.isin(np.arange(256), list(SWITCH_OF))


def _crowd_fault(records: np.ndarray) -> RecordFault | None:
    """Return the first kind of which there are too many."""
    counts = np.bincount(records[:, 0], minlength=len(KINDS))
    if (counts[: len(KINDS)] <= _MOST).all():
        return None
    for kind in KINDS:
        if counts[kind.number] > kind.most:
            first = int(np.flatnonzero(records[:, 0] == kind.number)[kind.most])
            return RecordFault(first, f"at most {kind.most} {kind.name} records in a level", f"{counts[kind.number]}")
    return None


def _partner_missing(records: np.ndarray) -> RecordFault | None:
    """Return the first exit or door whose switch is missing."""
    exits = count_exits(records)
    for index in np.flatnonzero(_HAS_SWITCH[records[:, 0]]).tolist():
        kind = int(records[index, 0])
        partner = partner_index(index, kind, exits)
        if partner is not None and partner >= len(records):
            wanted = f"the {kind_name(SWITCH_OF[kind])} of this {kind_name(kind)} in record {partner}"
            return RecordFault(index, wanted, f"only {len(records)} records")
    return None


def _partner_type_fault(index: int, types: Sequence[int], exits: int) -> RecordFault | None:
    kind = types[index]
    partner = partner_index(index, kind, exits)
    if partner is not None:
        wanted = SWITCH_OF[kind]
        if types[partner] != wanted:
            expected = f"{kind_name(wanted)}, the switch of the {kind_name(kind)} in record {index}"
            return RecordFault(partner, expected, kind_name(types[partner]))
    for door, switch in DOOR_SWITCHES.items():
        if kind == switch and types[index - 1] != door:  # a level file counts switches by their doors
            return RecordFault(index, f"a {kind_name(door)} before this {kind_name(switch)}", "none")
    return None


def has_behaviour(entity_type: int) -> bool:
    """Return whether records of a type do anything in the game (physics 03, section 13); the others are ignored."""
    return entity_type < len(KINDS) and entity_type != UNKNOWN_27


class Finding(NamedTuple):
    """One unusual property of a level."""

    severity: Literal["error", "warning"]
    """``error``: cannot be played as an environment; ``warning``: can be played, perhaps not as intended."""
    text: str


def validate(raw: RawLevel) -> list[Finding]:
    """Return the unusual properties of a level, errors first."""
    checks = (
        _exits(raw),
        _start(raw),
        _ignored(raw),
        _outside(raw),
        _turned(raw),
        (Finding("warning", note) for note in raw.notes),
        _unwritable(raw),
    )
    findings = [finding for check in checks for finding in check]
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _types(raw: RawLevel) -> Counter[int]:
    return Counter(raw.records[:, 0].tolist())


def _exits(raw: RawLevel) -> Iterator[Finding]:
    count = _types(raw)[EXIT]
    if count == 0:
        yield Finding("error", "no exit: the level cannot be finished")
    elif count > 1:
        yield Finding("warning", f"{count} exits: the objective is the nearest switch, then the nearest open exit")


def _start(raw: RawLevel) -> Iterator[Finding]:
    _, x, y, _, _ = raw.records[0].tolist()
    column, row = x // UNITS_PER_CELL - 1, y // UNITS_PER_CELL - 1
    inside = 0 <= column < TILE_COLUMNS and 0 <= row < TILE_ROWS
    if not inside:
        yield Finding("warning", f"the ninja starts at ({x}, {y}), outside the playable cells")
    elif raw.tiles[row, column] == FULL_BLOCK:
        place = f"column {column + 1}, row {row + 1}"
        yield Finding("warning", f"the ninja starts at ({x}, {y}), inside the full block in {place}")
    ninjas = _types(raw)[NINJA]
    if ninjas > 1:
        yield Finding("warning", f"{ninjas} ninja records: only the first is used")


def _ignored(raw: RawLevel) -> Iterator[Finding]:
    tiles = raw.tiles[raw.tiles > MAX_TILE]
    if len(tiles):
        yield Finding("warning", f"unknown tile numbers are empty cells: {_counted(tiles, str)}")
    types = raw.records[:, 0]
    ignored = types[[not has_behaviour(kind) for kind in types.tolist()]]
    if len(ignored):
        yield Finding("warning", f"entities without behaviour are ignored: {_counted(ignored)}")


def _outside(raw: RawLevel) -> Iterator[Finding]:
    limits = np.array([COLUMNS, ROWS]) * UNITS_PER_CELL
    outside = raw.records[(raw.records[:, 1:3] >= limits).any(axis=1)]
    if len(outside):
        yield Finding("warning", f"entities outside the world: {_counted(outside[:, 0])}")


def _turned(raw: RawLevel) -> Iterator[Finding]:
    other = raw.records[(raw.records != played_records(raw.records)).any(axis=1)]
    if len(other):
        listed = _counted(other[:, 0])
        yield Finding("warning", f"orientations and modes that do not exist are taken modulo their number: {listed}")


def _unwritable(raw: RawLevel) -> Iterator[Finding]:
    fault = writing_fault(raw.records)
    if fault:
        text = f"record {fault.record}: expected {fault.expected}, got {fault.got}"
        yield Finding("warning", f"{text}; the level cannot be converted")


def _counted(numbers: np.ndarray, name: Callable[[int], str] = kind_name) -> str:
    """Return how often each number is among some, as text: ``mine (2), gold (1)``."""
    return ", ".join(f"{name(number)} ({count})" for number, count in sorted(Counter(numbers.tolist()).items()))
