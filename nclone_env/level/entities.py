"""Object records to the table of entities and its order by cell (physics 02, sections 2 to 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import CELL_SIZE, COLUMNS, FACING_X, FACING_Y, ROWS
from nclone_env.kinds import DOOR_SWITCHES, EXIT, EXIT_SWITCH, KINDS, SWITCH_OF
from nclone_env.level.records import count_exits, played_records
from nclone_env.level.segments import DOOR, sort_by_cell

ENTITY = np.dtype(
    [
        ("x", "i2"),
        ("y", "i2"),
        ("mover", "i2"),
        ("order", "i2"),
        ("type", "u1"),
        ("initial", "u1"),
        ("orientation", "u1"),
        ("mode", "u1"),
    ],
    align=True,
)
"""Position in pixels (of a door: of its trigger), number of the mover record (of a switch: its exit's; -1 if
there is none), order of creation, type, state byte at the start of an episode, orientation and mode of the record."""

_WITH_MOVER = tuple(kind.number for kind in KINDS if kind.has_mover)
_DOORS = tuple(kind.number for kind in KINDS if kind.is_door)
_CREATING = tuple(kind.number for kind in KINDS if kind.has_entity and kind.number not in SWITCH_OF.values())
"""Kinds whose records create entities; an exit switch comes with its exit (physics 02, section 2.5)."""
_INITIAL_STATES = np.array([kind.initial for kind in KINDS], dtype=np.uint8)


class EntityTable(NamedTuple):
    """The entities of a level.

    Attributes:
        entities: (E,) ``ENTITY`` in type-list order.
        members: int16; entities without mover record sorted by cell, within a cell in order of creation.
        member_start: (1101,) int32; positions in ``members`` by cell ``column * 25 + row``.
        mover_slots: (M,) int16; entity of each mover record.
        doors: (D,) ``DOOR`` in order of creation.
    """

    entities: np.ndarray
    members: np.ndarray
    member_start: np.ndarray
    mover_slots: np.ndarray
    doors: np.ndarray


def entity_table(records: np.ndarray) -> EntityTable:
    """Create the entities of a level from its (N, 5) uint8 records, in the order of the records."""
    records = played_records(records)
    created = np.array(_create(records), dtype=np.int64).reshape(-1, 5)
    kinds = created[:, 2]
    slots = np.argsort(np.where(kinds == EXIT_SWITCH, EXIT, kinds), kind="stable")  # type lists (section 4.2)
    entities = np.zeros(len(created), dtype=ENTITY)
    for name, column in zip(("x", "y", "type", "orientation", "mode"), created[slots].T, strict=True):
        entities[name] = column
    entities["order"] = slots
    entities["initial"] = _INITIAL_STATES[entities["type"]]
    moving = np.isin(entities["type"], _WITH_MOVER)
    entities["mover"] = np.where(moving, np.cumsum(moving) - 1, -1)
    switches = np.flatnonzero(entities["type"] == EXIT_SWITCH)
    entities["mover"][switches] = entities["mover"][switches - 1]
    fixed = np.flatnonzero(~moving)
    fixed = fixed[np.argsort(entities["order"][fixed], kind="stable")]
    members, start = sort_by_cell(fixed.astype(np.int16), cells_of(entities["x"][fixed], entities["y"][fixed]))
    mover_slots = np.flatnonzero(moving).astype(np.int16)
    return EntityTable(entities, members, start, mover_slots, _doors(records, entities))


def cells_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the clamped cell numbers ``column * 25 + row`` of positions in pixels (section 4.3)."""
    column = np.clip(np.floor_divide(x, CELL_SIZE), 0, COLUMNS - 1).astype(np.int64)
    row = np.clip(np.floor_divide(y, CELL_SIZE), 0, ROWS - 1).astype(np.int64)
    return column * ROWS + row


def _create(records: np.ndarray) -> list[tuple[int, int, int, int, int]]:
    """Return (x, y, type, orientation, mode) of each entity in order of creation; a door lies at its trigger."""
    exits = count_exits(records)
    created: list[tuple[int, int, int, int, int]] = []
    for row in np.flatnonzero(np.isin(records[:, 0], _CREATING)):
        kind, x, y, orientation, mode = records[row].tolist()
        if kind in DOOR_SWITCHES:
            x, y = records[row + 1, 1:3].tolist()
        created.append((6 * x, 6 * y, kind, orientation, mode))
        if kind == EXIT:
            x, y = records[row + exits, 1:3].tolist()
            created.append((6 * x, 6 * y, EXIT_SWITCH, 0, 0))
    return created


def _doors(records: np.ndarray, entities: np.ndarray) -> np.ndarray:
    """Return the doors in order of creation (section 6.5)."""
    rows = records[np.isin(records[:, 0], _DOORS)]
    owners = np.flatnonzero(np.isin(entities["type"], _DOORS))
    owners = owners[np.argsort(entities["order"][owners], kind="stable")]
    doors = np.zeros(len(rows), dtype=DOOR)
    for number, (kind, x, y, orientation, _) in enumerate(rows.tolist()):
        behind_x, behind_y = 6 * x - 12 * FACING_X[orientation], 6 * y - 12 * FACING_Y[orientation]
        column, row = divmod(int(cells_of(np.array(behind_x), np.array(behind_y))), ROWS)
        doors[number] = (6 * x, 6 * y, owners[number], column, row, orientation in (0, 4), kind)
    return doors
