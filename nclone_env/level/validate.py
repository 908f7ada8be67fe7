"""Look for what makes a well-formed level strange, or unfit for training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

import numpy as np

from nclone_env.constants import (
    CELL_SIZE,
    COLUMNS,
    EXIT,
    EXIT_SWITCH,
    MAP_UNIT,
    MAX_TILE,
    NINJA,
    ROWS,
    TILE_COLUMNS,
    TILE_ROWS,
)
from nclone_env.level.raw import RawLevel, entity_name
from nclone_env.level.records import DOOR_SWITCHES, writing_fault

FULL_BLOCK = 1
UNITS_PER_CELL = int(CELL_SIZE / MAP_UNIT)
IGNORED_FROM, IGNORED_ALSO = 29, (27,)  # types without behaviour (physics 03, section 13)
DATA_TYPES = frozenset({NINJA, EXIT_SWITCH, *DOOR_SWITCHES.values()})  # no entities of their own


class Finding(NamedTuple):
    """One thing worth knowing about a level."""

    severity: Literal["error", "warning"]
    """``error``: cannot be played as an environment; ``warning``: plays, perhaps not as meant."""
    text: str


def validate(raw: RawLevel, modelled: Collection[int] | None = None) -> list[Finding]:
    """Return what is strange about a level, errors first; an empty list if nothing is.

    Args:
        raw: the level.
        modelled: entity types the simulator models; None skips that check.
    """
    checks = (
        _exits(raw),
        _start(raw),
        _ignored(raw),
        _outside(raw),
        _unmodelled(raw, modelled),
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
    tiles = Counter(raw.tiles[raw.tiles > MAX_TILE].tolist())
    if tiles:
        listed = ", ".join(f"{tile} ({count})" for tile, count in sorted(tiles.items()))
        yield Finding("warning", f"unknown tile numbers are empty cells: {listed}")
    ignored = [kind for kind in _types(raw) if kind >= IGNORED_FROM or kind in IGNORED_ALSO]
    if ignored:
        yield Finding("warning", f"entities without behaviour are ignored: {_counted(_types(raw), ignored)}")


def _outside(raw: RawLevel) -> Iterator[Finding]:
    limits = np.array([COLUMNS, ROWS]) * UNITS_PER_CELL
    outside = raw.records[(raw.records[:, 1:3] >= limits).any(axis=1), 0].tolist()
    if outside:
        yield Finding("warning", f"entities outside the world: {_counted(Counter(outside), set(outside))}")


def _unmodelled(raw: RawLevel, modelled: Collection[int] | None) -> Iterator[Finding]:
    if modelled is None:
        return
    known = {*modelled, *DATA_TYPES, *IGNORED_ALSO}
    missing = [kind for kind in _types(raw) if kind not in known and kind < IGNORED_FROM]
    if missing:
        listed = _counted(_types(raw), missing)
        yield Finding("warning", f"entities the simulator does not model yet do nothing: {listed}")


def _unwritable(raw: RawLevel) -> Iterator[Finding]:
    fault = writing_fault(raw.records)
    if fault:
        text = f"record {fault.record}: expected {fault.expected}, got {fault.got}"
        yield Finding("warning", f"{text}; the level cannot be converted")


def _counted(types: Counter[int], kinds: Collection[int]) -> str:
    return ", ".join(f"{entity_name(kind)} ({types[kind]})" for kind in sorted(kinds))
