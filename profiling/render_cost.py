"""Measure what the picture observations cost on one core, and the bytes of the glyphs.

Run ``python -m profiling.render_cost`` at the top of the repository. Worlds are drawn in one compiled loop
over a batch, as an environment does, into storage whose pages have been touched; compile time is not counted.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from functools import partial

import numba
import numpy as np
from tests.render.fake import FakeLevels, FakeWorlds, bordered, make_levels, make_worlds

from nclone_env._jit import kernel
from nclone_env.render.compose import write_global_view, write_player_frame
from nclone_env.render.glyphs import glyphs, static_layers
from nclone_env.render.picture import world_picture

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


def scene(entity_count: int) -> tuple[FakeLevels, FakeWorlds]:
    """Return one level of mixed tiles and entities with ninjas all over it."""
    draw = np.random.default_rng(0)
    tiles = bordered(draw.choice([0, 0, 0, 1, 1, *range(2, 34)], (23, 42)))
    xs, ys = 6.0 * draw.integers(4, 172, entity_count), 6.0 * draw.integers(4, 96, entity_count)
    types = draw.choice([1, 2, 2, 2, 3, 4, 21], entity_count)
    levels = make_levels([tiles], [list(zip(xs, ys, types, strict=True))])
    ninjas = [(draw.uniform(24, 1032), draw.uniform(24, 576), 0, k % 9, 1) for k in range(WORLDS)]
    return levels, make_worlds(ninjas, [[0] * entity_count] * WORLDS)


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
    for count in (20, 120, 600):
        levels, worlds = scene(count)
        frame = microseconds(partial(draw_frames, levels, worlds, glyphs(), frames), ROUNDS, WORLDS)
        views_call = partial(draw_views, levels, static_layers(levels), worlds, glyphs(), views)
        view = microseconds(views_call, ROUNDS, WORLDS)
        picture = microseconds(partial(world_picture, levels, worlds, 0), 10, 1)
        print(f"{count:4} entities  player_frame 128 x 128  {frame}")
        print(f"{'':13}  global_view 256 x 128   {view}")
        print(f"{'':13}  picture for people      {picture}")
    for depth, node in glyphs().memory().walk():
        print(f"{'  ' * depth}{node.name:16} {node.total_bytes:8} bytes")


if __name__ == "__main__":
    main()
