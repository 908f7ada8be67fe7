"""The kernels that pages run, as the exports of a WebAssembly module (``jit.retarget``), and what a page has to know.

A page has one level at a time in the memory of the module, and any number of worlds, each in arrays of its own.
"""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from nclone_env.gallery.rows import PER_SPRITE, write_rows
from nclone_env.game import KINDS, ROCKET_TURRET
from nclone_env.jit import kernel, source_digest
from nclone_env.level import LevelArrays, level_room, write_level
from nclone_env.render import all_glyphs
from nclone_env.sim import (
    MOVER,
    NINJA_RECORD,
    NO_TRAIL,
    ROOM,
    WorldArrays,
    copy_world,
    hash_world,
    start,
    store_of,
    tick,
)

SECTION = "nclone_env"
"""The section of the module that holds the layout."""


@kernel
def make_world(levels, worlds):
    """Give the only world of zeroed arrays room for the only level, and put it at its start."""
    header, store = levels.header[0], store_of(worlds)
    room = worlds.rooms[0]
    room["entities"]["size"], room["movers"]["size"] = header["entity_count"], header["mover_count"]
    room["trail"]["size"] = header["trail_count"]
    store["entities"]["used"], store["movers"]["used"] = header["entity_count"], header["mover_count"]
    store["trail"]["used"], store["trail_begin"] = header["trail_count"], NO_TRAIL
    start(levels, worlds, 0, 0)


@kernel
def play(levels, worlds, inputs, first, last):
    """Play frames ``first`` to ``last - 1`` of (T,) uint8 inputs; from the start if ``first`` is 0."""
    if first == 0:
        start(levels, worlds, 0, 0)
    for frame in range(first, last):
        tick(levels, worlds, 0, inputs[frame])


@kernel
def hash_of(worlds):
    """Return the hash of a world."""
    return hash_world(worlds, 0)


@kernel
def copy(source, target):
    """Copy one world over another."""
    copy_world(source, 0, target, 0)


def _worlds() -> WorldArrays:
    return WorldArrays(
        np.zeros(1, NINJA_RECORD),
        np.zeros(2, ROOM),
        np.zeros(1, np.uint8),
        np.zeros(1, MOVER),
        np.zeros(1, np.uint16),
        np.zeros((1, 2)),
    )


def exports() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Return a kernel for each export, and arguments of its types."""
    levels = level_room(1)
    worlds = _worlds()
    tiles, records = np.zeros((23, 42), np.uint8), np.zeros((1, 5), np.uint8)
    sprites, rows = np.zeros((1, PER_SPRITE)), np.zeros((1, 1), np.int32)
    return {
        "compile": (write_level, (tiles, records, levels)),
        "make": (make_world, (levels, worlds)),
        "play": (play, (levels, worlds, np.zeros(1, np.uint8), 0, 0)),
        "hash": (hash_of, (worlds,)),
        "copy": (copy, (worlds, worlds)),
        "rows": (write_rows, (levels, worlds, all_glyphs(), sprites, rows)),
    }


def layout() -> dict[str, Any]:
    """Return what ``simulator.js`` has to know of the module, for JSON."""
    glyphs = all_glyphs()
    return {
        "sources": source_digest(__name__, "nclone_env.jit.retarget"),
        "exports": {name: list(_parameters(*export)) for name, export in exports().items()},
        "room": {
            name: {"shape": none.shape, "each": one.shape[0] - none.shape[0], "itemsize": one.itemsize}
            for name, none, one in zip(LevelArrays._fields, level_room(0), level_room(1))
        },
        "worlds": {
            name: {"itemsize": array.itemsize, "inner": array.shape[1:]} for name, array in _worlds()._asdict().items()
        },
        "records": {
            "ninja": _fields(NINJA_RECORD),
            "header": _fields(level_room(0).header.dtype),
            "entity": _fields(level_room(0).entities.dtype),
        },
        "constants": {
            f"glyphs.{name}": _in_runs(getattr(glyphs, name)) for name in ("appearances", "door_appearances")
        },
        "most": [kind.most for kind in KINDS],
        "shooting": [kind.number for kind in KINDS if kind.shoots],
        "twice": ROCKET_TURRET,
    }


def _parameters(function: Any, arguments: tuple[Any, ...]) -> Iterator[tuple[str, int]]:
    """Yield the name of each parameter of an export, and its dimensions, 0 of numbers."""
    for name, argument in zip(inspect.signature(function.py_func).parameters, arguments, strict=True):
        parts = argument._asdict() if isinstance(argument, tuple) else {"": argument}  # type: ignore[attr-defined]
        for part, value in parts.items():
            yield f"{name}.{part}" if part else name, getattr(value, "ndim", 0)


def _fields(record: np.dtype) -> dict[str, tuple[int, str]]:
    """Return the offset of each field of a record, and the method of ``DataView`` that reads it."""
    kinds = {"f8": "getFloat64", "i4": "getInt32", "i2": "getInt16", "i1": "getInt8", "u1": "getUint8"}
    return {name: (record.fields[name][1], kinds[record[name].str[1:]]) for name in record.names or ()}  # type: ignore[index]


def _in_runs(array: np.ndarray) -> dict[str, Any]:
    """Return an array of 16-bit numbers as its different rows, in runs of equal numbers, and which rows it has."""
    rows, which = np.unique(array.reshape(-1, array.shape[-1]), axis=0, return_inverse=True)
    runs = []
    for row in rows:
        first = np.flatnonzero(np.diff(row, prepend=row[0] - 1))
        runs.append(np.stack([row[first], np.diff(first, append=len(row))], axis=1).reshape(-1).tolist())
    return {"shape": array.shape, "rows": runs, "which": which.tolist()}
