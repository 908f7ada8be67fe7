"""Measure what the picture observations cost on one core, and the bytes of the glyphs.

Run ``python -m profiling.render_cost`` at the top of the repository. Worlds are drawn in one compiled loop
over a batch, as an environment does, into storage whose pages have been touched; compile time is not counted.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from functools import partial

import numba
import numpy as np

from nclone_env._jit import kernel
from nclone_env.level.library import LevelArrays
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs, static_layers
from nclone_env.render.picture import world_picture
from nclone_env.sim.state import WorldArrays
from tests.render.scenes import make_levels, put_worlds

GOLD_AND_MINES = (1, 2, 2, 2, 21)
MOVING = (5, 14, 16, 17, 20, 25, 26, 28)
LASERS = (23,)
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
ROUNDS = 300


@kernel
def draw_frames(levels, worlds, glyphs, out):
    """Draw the player frame of every world."""
    for index in range(out.shape[0]):
        write_player_frame(levels, worlds, index, glyphs, out[index])


@kernel
def draw_views(levels, layers, worlds, glyphs, out):
    """Draw the global view of every world."""
    for index in range(out.shape[0]):
        write_global_view(levels, layers, worlds, index, glyphs, out[index])


def scene(entity_count: int, types: Sequence[int]) -> tuple[LevelArrays, WorldArrays]:
    """Return one level of mixed tiles and entities with ninjas all over it."""
    draw = np.random.default_rng(0)
    tiles = draw.choice([0, 0, 0, 1, 1, *range(2, 34)], (23, 42))
    kinds = draw.choice(types, entity_count).tolist()
    xs, ys = draw.integers(4, 172, entity_count).tolist(), draw.integers(4, 96, entity_count).tolist()
    records = [(*item, 2 * (number % 4), 0) for number, item in enumerate(zip(kinds, xs, ys, strict=True))]
    levels = make_levels((tiles, records))
    ninjas = [(draw.uniform(24, 1032), draw.uniform(24, 576), 0, k % 9, 1) for k in range(WORLDS)]
    worlds = put_worlds(levels, ninjas)
    worlds.movers["uy"] = draw.uniform(-np.pi, np.pi, worlds.movers.shape)  # lasers point anywhere
    return levels.arrays, worlds


def microseconds(call: Callable[[], object], rounds: int, per_call: int) -> str:
    """Return the median and the best time of one item."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) / per_call * 1e6)
    return f"median {np.median(times):8.2f}  best {min(times):8.2f}"


def main() -> None:
    """Print the table."""
    print(f"{platform.processor() or platform.machine()}, numba {numba.__version__}, numpy {np.__version__}")
    print("microseconds a picture, one core")
    frames = np.zeros((WORLDS, 128, 128, 1), dtype=np.uint8)
    views = np.zeros((WORLDS, 128, 256, 1), dtype=np.uint8)
    for count, kinds, types in SCENES:
        levels, worlds = scene(count, types)
        frame = microseconds(partial(draw_frames, levels, worlds, glyphs(), frames), ROUNDS, WORLDS)
        views_call = partial(draw_views, levels, static_layers(levels), worlds, glyphs(), views)
        view = microseconds(views_call, ROUNDS, WORLDS)
        picture = microseconds(partial(world_picture, levels, worlds, 0), 10, 1)
        print(f"{count:4} {kinds:14}  player_frame 128 x 128  {frame}")
        print(f"{'':19}  global_view 256 x 128   {view}")
        print(f"{'':19}  picture for people      {picture}")
    for depth, node in glyphs().memory().walk():
        print(f"{'  ' * depth}{node.name:16} {node.total_bytes:8} bytes")


if __name__ == "__main__":
    main()
