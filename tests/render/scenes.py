"""Small packed levels and worlds in chosen states, made without the simulator's kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nclone_env.config import EnvironmentConfig, RenderConfig
from nclone_env.constants import EXIT, EXIT_SWITCH, LOCKED_DOOR, TRAP_DOOR
from nclone_env.level.compile import compile_level
from nclone_env.level.entities import MODELLED_TYPES, MOVER_TYPES
from nclone_env.level.level_set import LevelArrays, LevelSet, pack
from nclone_env.level.raw import RawLevel
from nclone_env.level.records import DOOR_SWITCHES
from nclone_env.render.arrays import PictureArrays
from nclone_env.render.pictures import picture_arrays
from nclone_env.sim.state import WorldArrays, make_worlds

Record = tuple[int, int, int, int, int]
"""Type, x and y in units of 6 pixels, orientation, mode."""
Ninja = tuple[float, float, int, int, int]
"""x, y (pixels), level, state, facing."""

NO_TILES = np.zeros((23, 42), dtype=np.uint8)


def make_levels(*levels: tuple[np.ndarray, Sequence[Record]]) -> LevelSet:
    """Return compiled levels of (23, 42) tiles and records, without that of the ninja."""
    raws = [RawLevel(tiles, np.array([(0, 20, 40, 0, 0), *records])) for tiles, records in levels]
    return pack([compile_level(raw) for raw in raws])


def pictures_of(levels: LevelArrays, sizes: RenderConfig | None = None) -> PictureArrays:
    """Return what both pictures of levels are composed from, by default in the default sizes."""
    return picture_arrays(EnvironmentConfig(render=sizes or RenderConfig()), levels)


def put_worlds(levels: LevelSet, ninjas: Sequence[Ninja]) -> WorldArrays:
    """Return worlds at the start of their level, but with the ninja in a place and a state."""
    worlds = make_worlds(len(ninjas), levels)
    for index, ninja in enumerate(ninjas):
        for name, value in zip(("x", "y", "level", "state", "facing"), ninja, strict=True):
            worlds.ninjas[index][name] = value
        for slot, entity in enumerate(levels.levels[ninja[2]].entities):
            worlds.entity_states[index, slot] = entity["initial"]
            if entity["type"] in MOVER_TYPES:
                mover = worlds.movers[index, entity["mover"]]
                mover["x"], mover["y"] = entity["x"], entity["y"]
    return worlds


def random_records(draw: np.random.Generator, count: int) -> list[Record]:
    """Return records of all types that create entities, all over the world and a little beyond it."""
    kinds = draw.choice(sorted(MODELLED_TYPES - {EXIT}), count).tolist()
    exits = [(EXIT, *place(draw)) for _ in range(3)] + [(EXIT_SWITCH, *place(draw)) for _ in range(3)]
    records: list[Record] = []
    for kind in kinds:
        records.append((kind, *place(draw)))
        if kind in (LOCKED_DOOR, TRAP_DOOR):
            records.append((DOOR_SWITCHES[kind], *place(draw)))
    return exits + records


def place(draw: np.random.Generator) -> tuple[int, int, int, int]:
    """Return x, y, orientation and mode of a record."""
    return int(draw.integers(0, 177)), int(draw.integers(0, 101)), int(draw.integers(0, 8)), int(draw.integers(0, 4))


def random_scene(seed: int, count: int = 4, entity_count: int = 120) -> tuple[LevelArrays, WorldArrays]:
    """Return two random levels and worlds in them: entities in any state, movers and ninjas anywhere."""
    draw = np.random.default_rng(seed)
    levels = make_levels(*((draw.integers(0, 38, (23, 42)), random_records(draw, entity_count)) for _ in range(2)))
    ninjas = [
        (draw.uniform(-90, 1150), draw.uniform(-90, 700), k % 2, int(draw.integers(0, 10)), (-1, 1)[k // 2 % 2])
        for k in range(count)
    ]
    worlds = put_worlds(levels, ninjas)
    few, all_states = (draw.integers(0, end, worlds.entity_states.shape) for end in (8, 256))
    worlds.entity_states[:] = np.where(draw.random(few.shape) < 0.7, few, all_states)
    worlds.movers["x"] = draw.uniform(-30, 1090, worlds.movers.shape)
    worlds.movers["y"] = draw.uniform(-30, 630, worlds.movers.shape)
    worlds.movers["uy"] = draw.uniform(-np.pi, np.pi, worlds.movers.shape)
    return levels.arrays, worlds
