"""Look for what makes a well-formed level strange, or unfit for training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from nclone_env.constants import CELL_SIZE, COLUMNS, MAP_UNIT, MAX_TILE, ROWS, TILE_COLUMNS, TILE_ROWS
from nclone_env.kinds import EXIT, NINJA
from nclone_env.level.compile import count_by_name, inert_types, listed
from nclone_env.level.raw import RawLevel
from nclone_env.level.records import has_behaviour, writing_fault

FULL_BLOCK = 1
UNITS_PER_CELL = int(CELL_SIZE / MAP_UNIT)


class Finding(NamedTuple):
    """One thing worth knowing about a level."""

    severity: Literal["error", "warning"]
    """``error``: cannot be played as an environment; ``warning``: plays, perhaps not as meant."""
    text: str


def validate(raw: RawLevel) -> list[Finding]:
    """Return what is strange about a level, errors first; an empty list if nothing is."""
    checks = (
        _exits(raw),
        _start(raw),
        _ignored(raw),
        _outside(raw),
        _unmodelled(raw),
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
        counts = {str(tile): count for tile, count in sorted(tiles.items())}
        yield Finding("warning", f"unknown tile numbers are empty cells: {listed(counts)}")
    ignored = [kind for kind in _types(raw) if not has_behaviour(kind)]
    if ignored:
        yield Finding(
            "warning", f"entities without behaviour are ignored: {listed(count_by_name(raw.records, ignored))}"
        )


def _outside(raw: RawLevel) -> Iterator[Finding]:
    limits = np.array([COLUMNS, ROWS]) * UNITS_PER_CELL
    outside = raw.records[(raw.records[:, 1:3] >= limits).any(axis=1)]
    if len(outside):
        counts = count_by_name(outside, set(outside[:, 0].tolist()))
        yield Finding("warning", f"entities outside the world: {listed(counts)}")


def _unmodelled(raw: RawLevel) -> Iterator[Finding]:
    inert = inert_types(raw.records)
    if inert:
        yield Finding("warning", f"entities the simulator does not model yet do nothing: {listed(inert)}")


def _unwritable(raw: RawLevel) -> Iterator[Finding]:
    fault = writing_fault(raw.records)
    if fault:
        text = f"record {fault.record}: expected {fault.expected}, got {fault.got}"
        yield Finding("warning", f"{text}; the level cannot be converted")
