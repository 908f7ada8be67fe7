"""The arrays that one step reads and writes: the argument of the compiled step and of its callees.

Among them are the levels of a configuration, which can be exchanged while environments run, as those in play stay until
their episodes are over.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import EPISODE, EVENT, RESULT, make_settings
from nclone_env.env.compiled.rooms import fit_copies, with_room
from nclone_env.env.compiled.starts import StartArrays, no_starts
from nclone_env.errors import UnsupportedLevelError
from nclone_env.level import (
    Level,
    LevelArrays,
    LevelSet,
    Paths,
    count_exits,
    load_levels,
    mirrored,
    paths_with_doors,
    shared_level_set,
)
from nclone_env.memory import MemoryNode, array_group
from nclone_env.obs import ObservationArrays, frame_specs
from nclone_env.render import PictureArrays, picture_arrays
from nclone_env.sim import (
    MOVER,
    NINJA_RECORD,
    RANDOM_BITS,
    WorldArrays,
    copy_world,
    make_growing_worlds,
    worlds_of,
)

STREAMED_BYTES = 16 * 1024**2
"""Size of the pictures of a step from which on they are streamed. From 24 MB on it pays even if all pictures are read
after each step, up to 12 MB it may not; measured with 32 MB of L3 cache."""
_NO_EVENTS = np.zeros(0, EVENT)
_GONE = -1


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


class FinalArrays(NamedTuple):
    """The last observations of the episodes that end in a step, one row each, as in ``env.arrays.final.FinalRows``.

    Attributes:
        observations: ``ObservationArrays`` of at least as many rows as episodes can end.
        used: (1,) int64, number of rows used.
        places: (n,) int32, the row of each environment whose episode ended.
        worlds: ``WorldArrays`` of n worlds for copies of those that ended; no rows where nothing reads them.
    """

    observations: ObservationArrays
    used: np.ndarray
    places: np.ndarray
    worlds: WorldArrays


_NO_WORLDS = worlds_of(
    np.zeros(0, NINJA_RECORD), np.zeros((0, 0), np.uint8), np.zeros((0, 0), MOVER), np.zeros((0, 0, 2))
)
NO_FINAL_ROWS = np.zeros(1, np.int64), np.zeros(0, np.int32), _NO_WORLDS
"""``used``, ``places`` and ``worlds`` where no last observations are asked for."""


_no_finals: dict[int, FinalArrays] = {}


def no_final(observations: ObservationArrays) -> FinalArrays:
    """Return what a step takes if no last observations are asked for; environments with the default ones share it."""
    if observations.extras is not None:
        return FinalArrays(observations, *NO_FINAL_ROWS)
    return _no_finals.setdefault(id(observations), FinalArrays(observations, *NO_FINAL_ROWS))


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
    """Allocate the arrays of environments before their first episode; levels are drawn equally often at first."""
    episodes = np.zeros(num_envs, EPISODE)
    episodes["next_level"] = episodes["own_level"] = episodes["start"] = -1
    # Before the arrays of the levels, which it completes.
    worlds = make_growing_worlds(num_envs, levels, config.max_frames, config.frame_skip)
    return StepArrays(
        **level_arrays(config, levels, pictures),
        settings=make_settings(config, autoreset),
        thresholds=equal_thresholds(len(levels.levels)),
        starts=no_starts(len(levels.levels)),
        worlds=worlds,
        episodes=episodes,
        actions=np.zeros(num_envs, np.int64),
        results=np.zeros(num_envs, RESULT),
        events=np.zeros(num_envs, EVENT) if with_events else _NO_EVENTS,
        canvas=make_canvas(config, num_envs, slots),
    )


@lru_cache(maxsize=64)
def equal_thresholds(count: int) -> np.ndarray:
    """Return the ``level_thresholds`` of equal weights of ``count`` levels, one array for all environments."""
    return level_thresholds(np.ones(count))


def level_thresholds(weights: np.ndarray) -> np.ndarray:
    """Return the bounds, (L,) uint64, below which a 63-bit random number selects each level.

    The weights are (L,) float64, at least 0, not all 0.
    """
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # largest below 1: the sum is finite, quotients the same
    shares = np.cumsum(weights / weights.sum())
    bounds = np.minimum((shares * 2.0**RANDOM_BITS).astype(np.uint64), np.uint64(2**RANDOM_BITS))
    bounds[np.flatnonzero(weights)[-1] :] = 2**RANDOM_BITS
    return bounds


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


def exchange(config: EnvironmentConfig, old: LevelSet, arrays: StepArrays) -> tuple[LevelSet, StepArrays, int]:
    """Return the levels of a configuration, the state of environments on them, and the number of levels that are drawn.

    Levels of the old set on which episodes are under way and that are not among the new ones follow behind them; no
    episode begins on those. Nothing that is given is changed.
    """
    fresh = playable_levels(config).levels
    known = {_identity(level) for level in fresh}
    playing, begun = arrays.worlds.ninjas["level"], np.flatnonzero(arrays.episodes["number"]).tolist()
    played = [old.levels[number] for number in sorted(set(playing[begun].tolist()))]
    kept = [level for level in played if _identity(level) not in known]
    levels = shared_level_set([*fresh, *kept])
    numbers = {_identity(level): number for number, level in enumerate(levels.levels)}
    renumbered = np.array([numbers.get(_identity(level), _GONE) for level in old.levels])
    sources = np.full(len(playing), -1)
    sources[begun] = begun
    empty = make_growing_worlds(len(playing), levels, config.max_frames, config.frame_skip)
    worlds = with_room(empty, lambda worlds: fit_copies(worlds, arrays.worlds, sources))
    for index in begun:
        copy_world(arrays.worlds, index, worlds, index)
        worlds.ninjas[index]["level"] = renumbered[playing[index]]
    episodes, results = _copied(arrays.episodes), _copied(arrays.results)
    episodes["next_level"] = episodes["own_level"] = -1
    of_results = renumbered[results["level"]]  # in same-step mode also levels of episodes that ended in the last step
    results["level"] = np.where(of_results == _GONE, worlds.ninjas["level"], of_results)
    exchanged = arrays._replace(
        **level_arrays(config, levels),
        thresholds=level_thresholds(np.repeat([1.0, 0.0], [len(fresh), len(kept)])),
        starts=no_starts(len(levels.levels)),
        worlds=worlds,
        episodes=episodes,
        results=results,
    )
    return levels, exchanged, len(fresh)


def _copied(records: np.ndarray) -> np.ndarray:
    """Return a copy with the bytes between the fields, which NumPy leaves undefined and snapshots contain."""
    return records.view(np.uint8).copy().view(records.dtype)


def _identity(level: Level) -> tuple[str, str]:
    return level.name, level.raw.digest


def playable_levels(config: EnvironmentConfig) -> LevelSet:
    """Load the levels of a configuration; environments with the same levels share them."""
    levels = load_levels(config.levels)
    if config.mirrored:
        levels += [mirrored(level) for level in levels]
    for level in levels:
        if not count_exits(level.raw.records):
            raise UnsupportedLevelError(
                f"levels: {level.name!r} has no exit, so no episode could succeed; simulate() plays such levels, "
                f"environments need at least one exit with its switch"
            )
    return shared_level_set(levels)
