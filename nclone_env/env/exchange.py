"""Other levels for running environments: those that are still played stay until their episodes are over."""

from __future__ import annotations

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.records import level_thresholds
from nclone_env.env.compiled.starts import no_starts
from nclone_env.env.compiled.step_arrays import StepArrays, level_arrays
from nclone_env.env.playable import playable_levels
from nclone_env.level.level import Level
from nclone_env.level.level_set import LevelSet
from nclone_env.level.library import shared_level_set
from nclone_env.sim.copy import transfer_world
from nclone_env.sim.state import make_worlds


def exchange(config: EnvironmentConfig, old: LevelSet, arrays: StepArrays) -> tuple[LevelSet, StepArrays]:
    """Return the levels of a configuration, and the state of environments with worlds on them.

    Levels of the old set that are played now and are not among the new ones follow behind them; no episode begins on
    those. Episodes, results and actions are changed in place, everything else is new.

    Args:
        config: configuration with the new levels.
        old: the levels of the environments until now.
        arrays: the state of the environments.

    Raises:
        UnknownLevelError, LevelFormatError, UnsupportedLevelError: if a level cannot be used; nothing is changed then.
    """
    fresh = playable_levels(config).levels
    known = {_identity(level) for level in fresh}
    played = [old.levels[number] for number in sorted(set(arrays.worlds.ninjas["level"].tolist()))]
    kept = [level for level in played if _identity(level) not in known]
    levels = shared_level_set([*fresh, *kept])
    numbers = {_identity(level): number for number, level in enumerate(levels.levels)}
    renumbered = np.array([numbers.get(_identity(level), 0) for level in old.levels])  # 0: not played any more
    worlds = make_worlds(len(arrays.episodes), levels, config.max_frames)
    for index, level in enumerate(renumbered[arrays.worlds.ninjas["level"]]):
        transfer_world(arrays.worlds, index, worlds, index, int(level))
    arrays.results["level"] = renumbered[arrays.results["level"]]
    arrays.episodes["next_level"] = arrays.episodes["own_level"] = -1
    return levels, arrays._replace(
        **level_arrays(config, levels),
        thresholds=level_thresholds(np.repeat([1.0, 0.0], [len(fresh), len(kept)])),
        starts=no_starts(len(levels.levels)),
        worlds=worlds,
    )


def _identity(level: Level) -> tuple[str, str]:
    return level.name, level.raw.digest
