"""The ``info`` of single environments, and the form in which Gymnasium's own vector environments gather it.

Their columns have the names and dtypes of the values of single environments: levels and outcomes as names, and
``final_obs`` as an array of objects, one observation for each episode that ended. Entries that no environment set are
0 or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nclone_env.env.arrays.buffers import Buffers, alone
from nclone_env.env.arrays.outputs import Outputs
from nclone_env.env.compiled.records import OUTCOMES

_NUMBERS = ("frames", "gold", "episode_frames", "episode_steps", "episode_return")


def single_info(result: Any, level_names: Sequence[str]) -> dict[str, Any]:
    """Return the ``info`` of one environment from its ``RESULT`` record."""
    return {
        "level": level_names[result["level"]],
        "frames": int(result["frames"]),
        "outcome": OUTCOMES[result["outcome"]],
        "gold": int(result["gold"]),
        "episode_frames": int(result["episode_frames"]),
        "episode_steps": int(result["episode_steps"]),
        "episode_return": float(result["episode_return"]),
    }


def gathered_info(
    outputs: Outputs, ninjas: Any, level_names: Sequence[str], only: str | None, mask: np.ndarray | None = None
) -> dict[str, Any]:
    """Return the info of a call as Gymnasium's ``SyncVectorEnv`` gathers it; all of its arrays are new.

    Args:
        ninjas: (n,) records of the worlds; episodes that began in the same step as another ended are described by them.
        level_names: names of the levels.
        only: name of the array that is the observation; None: a dict of all.
        mask: (n,) bool, the environments that have an info; None: all.
    """
    columns, ended = outputs.columns, outputs.ended
    mask = np.ones(len(ended), dtype=np.bool_) if mask is None else mask
    if outputs.final is None or not outputs.final.length:
        return _gathered(columns, level_names, mask)
    begun = {name: np.where(ended, 0, columns[name]) for name in ("outcome", *_NUMBERS)}
    for name, field in (("level", "level"), ("gold", "gold"), ("episode_frames", "frame")):
        begun[name] = np.where(ended, ninjas[field], columns[name])
    info = _gathered(begun, level_names, mask)
    arrays = {name: outputs.final.view(name) for name in outputs.final.arrays}
    info["final_obs"] = last = np.full(len(ended), None, dtype=object)
    for row, index in enumerate(np.flatnonzero(ended)):
        last[index] = alone({name: array[row].copy() for name, array in arrays.items()}, only)
    info["final_info"] = _gathered(columns, level_names, ended)
    info["_final_obs"], info["_final_info"] = ended.copy(), ended.copy()
    return info


def _gathered(columns: Buffers, level_names: Sequence[str], mask: np.ndarray) -> dict[str, Any]:
    """Return the columns of the environments in ``mask``, (n,) bool."""
    values: Buffers = {
        "level": _names(level_names, columns["level"]),
        "outcome": _names(OUTCOMES, columns["outcome"]),
        **{name: columns[name] for name in _NUMBERS},
    }
    info: dict[str, Any] = {}
    for name, column in values.items():
        empty = None if column.dtype == object else 0
        info[name] = np.full(len(mask), empty, dtype=int if column.dtype.kind == "i" else column.dtype)
        info[name][mask] = column[mask]
        info[f"_{name}"] = mask.copy()
    return info


def _names(names: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    return np.array([names[number] for number in numbers.tolist()], dtype=object)
