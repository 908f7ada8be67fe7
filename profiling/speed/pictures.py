"""Cost of the picture observations in several sizes on one core, next to a copy of their bytes.

Worlds are drawn in one compiled loop over a batch, as an environment does, into storage with all pages committed;
compilation is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import tyro

from nclone_env.config import RenderConfig
from nclone_env.game import (
    BOUNCE_BLOCK,
    DEATH_BALL,
    FLOOR_GUARD,
    GOLD,
    LASER_TURRET,
    MINE,
    MINI_DRONE,
    REGULAR_DOOR,
    SHOVE_THWUMP,
    THWUMP,
    TOGGLE_MINE,
    ZAP_DRONE,
    kind_name,
)
from nclone_env.jit import copy_bytes, kernel
from nclone_env.level.build import build_level
from nclone_env.level.level_set import LevelArrays, pack
from nclone_env.render import PictureArrays, world_picture, write_global_view, write_player_frame
from nclone_env.sim.state import WorldArrays
from profiling.measure import describe, timings
from profiling.pictures.scenes import pictures_of, put_worlds

GOLD_AND_MINES = (MINE, GOLD, GOLD, GOLD, TOGGLE_MINE)
MOVING = (
    REGULAR_DOOR,
    ZAP_DRONE,
    FLOOR_GUARD,
    BOUNCE_BLOCK,
    THWUMP,
    DEATH_BALL,
    MINI_DRONE,
    SHOVE_THWUMP,
)
LASERS = (LASER_TURRET,)
SCENES = (
    (20, "gold and mines", GOLD_AND_MINES),
    (120, "gold and mines", GOLD_AND_MINES),
    (600, "gold and mines", GOLD_AND_MINES),
    (20, "moving", MOVING),
    (120, "moving", MOVING),
    (8, "lasers", LASERS),
    (32, "lasers", LASERS),
)
WORLDS = 64

SIZES = (
    RenderConfig(128),
    RenderConfig(84),
    RenderConfig(64),
    RenderConfig(128, 2.0, (256, 512)),
    RenderConfig(256, 2.0, (600, 1056)),
)


@kernel
def draw_frames(levels, worlds, pictures, out):
    """Draw the player frame of every world."""
    for index in range(out.shape[0]):
        write_player_frame(levels, worlds, index, pictures, out[index])


@kernel
def draw_views(levels, worlds, pictures, out):
    """Draw the global view of every world."""
    for index in range(out.shape[0]):
        write_global_view(levels, worlds, index, pictures, out[index])


@kernel
def copy_pictures(source, out):
    """Copy one picture over and over: the lower bound of any drawing."""
    size = out.shape[1] * out.shape[2]
    for index in range(out.shape[0]):
        copy_bytes(out, index * size, source, 0, size)


def scene(entity_count: int, types: Sequence[int]) -> tuple[LevelArrays, WorldArrays]:
    """Return a level of mixed tiles and entities with ninjas all over it."""
    draw = np.random.default_rng(0)
    tiles = draw.choice([0, 0, 0, 1, 1, *range(2, 34)], (23, 42))
    kinds = draw.choice(types, entity_count).tolist()
    xs, ys = draw.integers(4, 172, entity_count).tolist(), draw.integers(4, 96, entity_count).tolist()
    places = enumerate(zip(kinds, xs, ys, strict=True))
    entities = [f"{kind_name(kind)} {x} {y} {2 * (number % 4)}" for number, (kind, x, y) in places]
    levels = pack([build_level(*entities, tiles=tiles)])
    ninjas = [(draw.uniform(24, 1032), draw.uniform(24, 576), k % 9, 1) for k in range(WORLDS)]
    return levels.arrays, put_worlds(levels, ninjas, frames=7)


def microseconds(call: Callable[[], object], rounds: int, per_call: int) -> str:
    """Return the median and the best time of one item as text."""
    times = timings(rounds, call) / per_call * 1e6
    return f"median {np.median(times):8.2f}  best {times.min():8.2f}"


def print_sizes(name: str, levels: LevelArrays, worlds: WorldArrays, rounds: int) -> None:
    """Print the cost of a scene in every size."""
    for sizes in SIZES:
        pictures = pictures_of(levels, sizes)
        side = sizes.player_frame_size
        shapes = {"player_frame": (side, side), "global_view": sizes.view_shape}
        for (kind, shape), draw in zip(shapes.items(), (draw_frames, draw_views), strict=True):
            out = np.zeros((WORLDS, *shape, 1), dtype=np.uint8)
            drawn = microseconds(partial(draw, levels, worlds, pictures, out), rounds, WORLDS)
            copied = microseconds(partial(copy_pictures, out[0].copy(), out), rounds, WORLDS)
            print(f"{name:19}  {kind:12} {shape[0]:4} x {shape[1]:<4}  {drawn}   copy {copied}", flush=True)


def print_bytes(pictures: PictureArrays) -> None:
    """Print the arrays from which the pictures of one level are composed."""
    print(pictures.memory())


def main(rounds: int = 200) -> None:
    """Print the table.

    Args:
        rounds: timed calls, each of which draws 64 pictures.
    """
    print(describe())
    print("microseconds per picture, one core")
    for count, types_name, types in SCENES:
        levels, worlds = scene(count, types)
        print_sizes(f"{count:4} {types_name}", levels, worlds, rounds)
        print(f"{'':19}  picture for people        {microseconds(partial(world_picture, levels, worlds, 0), 10, 1)}")
    for sizes in SIZES:
        print(sizes)
        print_bytes(pictures_of(levels, sizes))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
