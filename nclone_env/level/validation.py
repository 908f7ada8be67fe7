"""Checks for well-formed levels that are unusual, or unfit for training."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from nclone_env.game import (
    CELL_SIZE,
    COLUMNS,
    EXIT,
    MAP_UNIT,
    MAX_TILE,
    NINJA,
    ROWS,
    TILE_COLUMNS,
    TILE_ROWS,
    kind_name,
)
from nclone_env.level.level import RawLevel, has_behaviour, played_records, writing_fault

FULL_BLOCK = 1
UNITS_PER_CELL = int(CELL_SIZE / MAP_UNIT)


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
