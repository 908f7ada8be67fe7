"""The arrays that one step reads and writes: the argument of the compiled step and of its callees."""

import math
from typing import Any, NamedTuple

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import EPISODE, EVENT, RESULT, equal_thresholds, make_settings
from nclone_env.env.compiled.starts import StartArrays, no_starts
from nclone_env.level import LevelArrays, LevelSet, Paths, paths_with_doors
from nclone_env.memory import MemoryNode, array_group
from nclone_env.obs import frame_specs
from nclone_env.render import PictureArrays, picture_arrays
from nclone_env.sim import WorldArrays, make_worlds

STREAMED_BYTES = 16 * 1024**2
"""Size of the pictures of a step from which on they are streamed. From 24 MB on it pays even if all pictures are read
after each step, up to 12 MB it may not; measured with 32 MB of L3 cache (``profiling.speed.streamed_pictures``)."""
_NO_EVENTS = np.zeros(0, EVENT)


class Canvas(NamedTuple):
    """A picture of each kind per worker slot, where pictures are drawn before they are streamed to their arrays.

    Without rows they are drawn in their arrays. See :func:`make_canvas`.

    Attributes:
        player_frame: (slots, S, S, 1) uint8.
        global_view: (slots, H, W, 1) uint8.
    """

    player_frame: np.ndarray
    global_view: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return array_group("canvas", self._asdict(), shared=True)  # of all environments, not one for each


_NO_CANVAS = Canvas(np.zeros((0, 0, 0, 1), np.uint8), np.zeros((0, 0, 0, 1), np.uint8))  # of all that draw in place


class StepArrays(NamedTuple):
    """The state of n environments and everything their steps read.

    Environments of equal settings share ``settings``, ``thresholds`` of equal weights, and empty ``starts``. None of
    these is ever written: other weights or start states are other arrays.

    Attributes:
        levels: ``LevelArrays``, read-only.
        paths: ``Paths``, read-only.
        pictures: ``PictureArrays``, read-only.
        settings: (1,) ``SETTINGS``.
        thresholds: (L,) uint64, ascending; bounds below which a 63-bit random number selects each level.
        starts: ``StartArrays``.
        worlds: ``WorldArrays`` of n worlds.
        episodes: (n,) ``EPISODE``.
        actions: (n,) int64, 0..5, the input of a step.
        results: (n,) ``RESULT``, the output of a step.
        events: (n,) ``EVENT``, written for a custom reward function; no rows without one.
        canvas: ``Canvas``.
    """

    levels: LevelArrays
    paths: Paths
    pictures: PictureArrays
    settings: np.ndarray
    thresholds: np.ndarray
    starts: StartArrays
    worlds: WorldArrays
    episodes: np.ndarray
    actions: np.ndarray
    results: np.ndarray
    events: np.ndarray
    canvas: Canvas


def make_step_arrays(
    config: EnvironmentConfig,
    levels: LevelSet,
    num_envs: int,
    autoreset: int,
    slots: int,
    *,
    pictures: PictureArrays | None = None,
    with_events: bool = False,
) -> StepArrays:
    """Allocate the arrays of environments before their first episode.

    Args:
        levels: levels to play, equally often until the weights change.
        autoreset: ``NEXT_STEP``, ``SAME_STEP`` or ``DISABLED``.
        pictures: of the same levels and configuration; made if None.
        with_events: whether to record events for a custom reward function.
    """
    episodes = np.zeros(num_envs, EPISODE)
    episodes["next_level"] = episodes["own_level"] = episodes["start"] = -1
    return StepArrays(
        **level_arrays(config, levels, pictures),
        settings=make_settings(config, autoreset),
        thresholds=equal_thresholds(len(levels.levels)),
        starts=no_starts(len(levels.levels)),
        worlds=make_worlds(num_envs, levels, config.max_frames),
        episodes=episodes,
        actions=np.zeros(num_envs, np.int64),
        results=np.zeros(num_envs, RESULT),
        events=np.zeros(num_envs, EVENT) if with_events else _NO_EVENTS,
        canvas=make_canvas(config, num_envs, slots),
    )


def level_arrays(config: EnvironmentConfig, levels: LevelSet, pictures: PictureArrays | None = None) -> dict[str, Any]:
    """Return the fields of ``StepArrays`` that follow from the levels alone; pictures are made if None."""
    return {
        "levels": levels.arrays,
        "paths": paths_with_doors(levels) if config.paths == "doors" else levels.paths,
        "pictures": pictures or picture_arrays(config, levels.arrays, levels),
    }


def make_canvas(config: EnvironmentConfig, num_envs: int, slots: int) -> Canvas:
    """Return the canvas of environments.

    Where the pictures of a step are larger than the caches, each is drawn in a canvas, which stays in the cache, and
    streamed to its array past the caches. Drawn in the array itself, its memory would be read before it is written.
    """
    shapes = {spec.name: spec.shape for spec in frame_specs(config) if spec.name in Canvas._fields}
    if num_envs * sum(map(math.prod, shapes.values())) < STREAMED_BYTES:
        return _NO_CANVAS
    return _NO_CANVAS._replace(**{name: np.zeros((slots, *shape), np.uint8) for name, shape in shapes.items()})
