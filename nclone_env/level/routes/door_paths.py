"""Paths that take the switches of locked doors in order: the guides of the levels of a set."""

from __future__ import annotations

import numpy as np

from nclone_env.kinds import EXIT_SWITCH
from nclone_env.level.array_cache import Arrays
from nclone_env.level.level_set import LEVEL_HEADER, LevelSet
from nclone_env.level.routes.distance import distance_at
from nclone_env.level.routes.guide import make_guide
from nclone_env.level.routes.lattice import FAR
from nclone_env.level.routes.paths import Paths

_LAYOUT = {"header": LEVEL_HEADER, "fields": np.dtype(np.float32), "landmarks": np.dtype(np.int16)}


def paths_with_doors(levels: LevelSet) -> Paths:
    """Return paths by the landmarks of the guides (``level.routes.guide``); computed once per machine.

    Locked doors are closed until their switch is taken, and steps near mines are longer than they are.
    """
    return Paths(**levels.derived("door paths", _LAYOUT, lambda: _joined(levels)))


def _joined(levels: LevelSet) -> Arrays:
    """Return the arrays of ``Paths``."""
    parts = [_level_paths(levels, level) for level in range(len(levels.levels))]
    header = levels.arrays.header.copy()
    header["landmark_count"] = [len(landmarks) for _, landmarks in parts]
    header["first_landmark"] = header["first_field"] = np.cumsum(header["landmark_count"]) - header["landmark_count"]
    for row, (fields, _), level in zip(header, parts, levels.levels, strict=True):
        row["start_distance"] = distance_at(fields, 0, *level.spawn)
    return {
        "header": header,
        "fields": np.concatenate([fields for fields, _ in parts]),
        "landmarks": np.concatenate([landmarks for _, landmarks in parts]),
    }


def _level_paths(levels: LevelSet, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fields of a level and its landmarks, with the exit as the last."""
    guide = make_guide(levels, level)
    switches = guide.landmarks[levels.entities_of(level)["type"][guide.landmarks] == EXIT_SWITCH]
    landmarks = np.append(guide.landmarks, switches[-1] - 1)  # an exit precedes its switch
    fields = guide.fields[:, ::2, ::2]  # every second node of the guide is one of the coarser lattice
    return np.where(fields < FAR, fields, np.float32(np.inf)), landmarks.astype(np.int16)
