"""Small stand-ins for the packed levels and worlds, with the fields that the picture kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import COLUMNS, ROWS

HEADER = np.dtype([("spawn_x", "f8"), ("spawn_y", "f8"), ("first_entity", "i4"), ("entity_count", "i4")], align=True)
ENTITY = np.dtype([("x", "f8"), ("y", "f8"), ("type", "u1"), ("initial", "u1"), ("partner", "i2")], align=True)
HEAD = np.dtype(
    [("x", "f8"), ("y", "f8"), ("level", "i4"), ("frame", "i4"), ("state", "i1"), ("facing", "i1")],
    align=True,
)


class FakeLevels(NamedTuple):
    header: np.ndarray
    tiles: np.ndarray
    entities: np.ndarray


class FakeWorlds(NamedTuple):
    heads: np.ndarray
    entity_states: np.ndarray


def bordered(tiles: np.ndarray) -> np.ndarray:
    """Return (25, 44) tiles: (23, 42) playable ones in a ring of full blocks."""
    grid = np.ones((ROWS, COLUMNS), dtype=np.uint8)
    grid[1:-1, 1:-1] = tiles
    return grid


def make_levels(grids: list[np.ndarray], entities: list[list[tuple[float, float, int]]]) -> FakeLevels:
    """Return levels of (25, 44) tile grids and (x, y, type) lists."""
    header = np.zeros(len(grids), dtype=HEADER)
    header["entity_count"] = [len(items) for items in entities]
    header["first_entity"] = np.cumsum(header["entity_count"]) - header["entity_count"]
    flat = [item for items in entities for item in items]
    table = np.zeros(len(flat), dtype=ENTITY)
    for row, (x, y, entity_type) in zip(table, flat, strict=True):
        row["x"], row["y"], row["type"] = x, y, entity_type
    levels = FakeLevels(header, np.array(grids, dtype=np.uint8), table)
    for array in levels:
        array.flags.writeable = False
    return levels


def make_worlds(ninjas: list[tuple[float, float, int, int, int]], states: list[list[int]]) -> FakeWorlds:
    """Return worlds of (x, y, level, ninja state, facing) tuples and entity states."""
    heads = np.zeros(len(ninjas), dtype=HEAD)
    for head, (x, y, level, state, facing) in zip(heads, ninjas, strict=True):
        head["x"], head["y"], head["level"], head["state"], head["facing"] = x, y, level, state, facing
    table = np.zeros((len(states), max(1, *(len(item) for item in states))), dtype=np.uint8)
    for row, item in zip(table, states, strict=True):
        row[: len(item)] = item
    return FakeWorlds(heads, table)


def random_scene(seed: int, count: int = 4, entity_count: int = 120) -> tuple[FakeLevels, FakeWorlds]:
    """Return two random levels and ``count`` worlds in them, some with the ninja outside the level."""
    draw = np.random.default_rng(seed)
    grids = [bordered(draw.integers(0, 38, (23, 42))) for _ in range(2)]
    entities = [
        [
            (6.0 * draw.integers(0, 177), 6.0 * draw.integers(0, 101), int(draw.choice((1, 2, 3, 4, 21, 17))))
            for _ in range(entity_count)
        ]
        for _ in range(2)
    ]
    ninjas = [
        (
            draw.uniform(-90, 1150),
            draw.uniform(-90, 700),
            k % 2,
            int(draw.integers(0, 10)),
            (-1, 1)[k // 2 % 2],
        )
        for k in range(count)
    ]
    return make_levels(grids, entities), make_worlds(ninjas, draw.integers(0, 4, (count, entity_count)).tolist())
