"""The levels of environments: those of a configuration, and their exchange while environments run.

Levels in play stay until their episodes are over.
"""

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import level_thresholds
from nclone_env.env.compiled.starts import no_starts
from nclone_env.env.compiled.step_arrays import StepArrays, level_arrays
from nclone_env.errors import UnsupportedLevelError
from nclone_env.level import Level, LevelSet, count_exits, load_levels, mirrored, shared_level_set
from nclone_env.sim import make_worlds, transfer_world

_GONE = -1


def exchange(config: EnvironmentConfig, old: LevelSet, arrays: StepArrays) -> tuple[LevelSet, StepArrays, int]:
    """Return the levels of a configuration, the state of environments on them, and the number of levels that are drawn.

    Levels of the old set on which episodes are under way and that are not among the new ones follow behind them; no
    episode begins on those. Nothing that is given is changed.

    Raises:
        UnknownLevelError, LevelFormatError, UnsupportedLevelError: if a level cannot be used.
    """
    fresh = playable_levels(config).levels
    known = {_identity(level) for level in fresh}
    playing, begun = arrays.worlds.ninjas["level"], np.flatnonzero(arrays.episodes["number"]).tolist()
    played = [old.levels[number] for number in sorted(set(playing[begun].tolist()))]
    kept = [level for level in played if _identity(level) not in known]
    levels = shared_level_set([*fresh, *kept])
    numbers = {_identity(level): number for number, level in enumerate(levels.levels)}
    renumbered = np.array([numbers.get(_identity(level), _GONE) for level in old.levels])
    worlds = make_worlds(len(arrays.episodes), levels, config.max_frames)
    for index in begun:
        transfer_world(arrays.worlds, index, worlds, index, int(renumbered[playing[index]]))
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
    """Load the levels of a configuration; environments with the same levels share them.

    Raises:
        UnsupportedLevelError: if one has no exit.
    """
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
