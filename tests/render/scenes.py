"""Small packed levels and worlds in chosen states, made without the simulator's kernels."""

from collections.abc import Sequence

import numpy as np

from nclone_env.config import EnvironmentConfig, RenderConfig
from nclone_env.game import DOOR_SWITCHES, EXIT, EXIT_SWITCH, KINDS, SWITCH_OF, kind_name
from nclone_env.level.build import build_level
from nclone_env.level.level_set import LevelArrays, LevelSet, pack
from nclone_env.render import PictureArrays, picture_arrays, write_global_view, write_player_frame
from nclone_env.sim.entities.laser.motion import BEAM_ANGLE
from nclone_env.sim.state import WorldArrays, make_worlds, world_at

Ninja = tuple[float, float, int, int, int]
"""x, y (pixels), level, state, facing."""

NO_TILES = np.zeros((23, 42), dtype=np.uint8)


def make_levels(*levels: tuple[np.ndarray, Sequence[str]]) -> LevelSet:
    """Return packed levels of (23, 42) tiles and entity lines."""
    return pack([build_level(*entities, tiles=tiles, spawn=(20, 40)) for tiles, entities in levels])


def pictures_of(levels: LevelArrays, sizes: RenderConfig | None = None) -> PictureArrays:
    """Return what both pictures of levels are composed from, by default in the default sizes."""
    return picture_arrays(EnvironmentConfig(render=sizes or RenderConfig()), levels)


def frame_of(levels: LevelArrays, worlds: WorldArrays, index: int, pictures: PictureArrays, size: int) -> np.ndarray:
    """Return the player frame of a world, (size, size)."""
    out = np.full((size, size, 1), 7, dtype=np.uint8)
    write_player_frame(levels, worlds, index, pictures, out)
    return out[..., 0]


def view_of(levels: LevelArrays, worlds: WorldArrays, index: int, pictures: PictureArrays) -> np.ndarray:
    """Return the global view of a world."""
    out = np.full((*pictures.global_view.layers.shape[1:], 1), 7, dtype=np.uint8)
    write_global_view(levels, worlds, index, pictures, out)
    return out[..., 0]


def put_worlds(levels: LevelSet, ninjas: Sequence[Ninja]) -> WorldArrays:
    """Return worlds at the start of their level, but with the ninja in a place and a state."""
    worlds = make_worlds(len(ninjas), levels)
    header = levels.arrays.header[[ninja[2] for ninja in ninjas]]
    rooms = worlds.rooms[:-1]
    rooms["entities"]["used"], rooms["movers"]["used"] = header["entity_count"], header["mover_count"]
    for index, ninja in enumerate(ninjas):
        for name, value in zip(("x", "y", "level", "state", "facing"), ninja, strict=True):
            worlds.ninjas[index][name] = value
        for slot, entity in enumerate(levels.entities_of(ninja[2])):
            world_at(worlds, index).entity_states[slot] = entity["initial"]
            if KINDS[entity["type"]].has_mover:
                mover = world_at(worlds, index).movers[entity["mover"]]
                mover["x"], mover["y"] = entity["x"], entity["y"]
    return worlds


def random_entities(draw: np.random.Generator, count: int) -> list[str]:
    """Return entity lines of all types that create entities, all over the world and a little beyond it."""
    creating = [kind.number for kind in KINDS if kind.has_entity and kind.number not in (EXIT, *SWITCH_OF.values())]
    kinds = draw.choice(creating, count).tolist()
    exits = [line(draw, EXIT) for _ in range(3)] + [line(draw, EXIT_SWITCH) for _ in range(3)]
    entities = []
    for kind in kinds:
        entities.append(line(draw, kind))
        if kind in DOOR_SWITCHES:
            entities.append(line(draw, DOOR_SWITCHES[kind]))
    return exits + entities


def line(draw: np.random.Generator, kind: int) -> str:
    """Return an entity in a random place, of random orientation and mode."""
    x, y, orientation, mode = (int(draw.integers(0, end)) for end in (177, 101, 8, 4))
    return f"{kind_name(kind)} {x} {y} {orientation} {mode}"


def random_scene(seed: int, count: int = 4, entity_count: int = 120) -> tuple[LevelArrays, WorldArrays]:
    """Return two random levels and worlds in them: entities in any state, movers and ninjas anywhere."""
    draw = np.random.default_rng(seed)
    levels = make_levels(*((draw.integers(0, 38, (23, 42)), random_entities(draw, entity_count)) for _ in range(2)))
    ninjas = [
        (draw.uniform(-90, 1150), draw.uniform(-90, 700), k % 2, int(draw.integers(0, 10)), (-1, 1)[k // 2 % 2])
        for k in range(count)
    ]
    worlds = put_worlds(levels, ninjas)
    few, all_states = (draw.integers(0, end, (count, -(-levels.max_entities // 8) * 8)) for end in (8, 256))
    states = np.where(draw.random(few.shape) < 0.7, few, all_states)
    ranges = {"x": (-30, 1090), "y": (-30, 630), BEAM_ANGLE: (-np.pi, np.pi)}
    movers = {name: draw.uniform(*ends, (count, levels.max_movers)) for name, ends in ranges.items()}
    for index in range(count):
        world = world_at(worlds, index)
        world.entity_states[:] = states[index, : len(world.entity_states)]
        for name, values in movers.items():
            world.movers[name] = values[index, : len(world.movers)]
    return levels.arrays, worlds
