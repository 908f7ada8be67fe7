"""Actions: what the numbers mean, and the check of what users send."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import gymnasium
import numpy as np

from nclone_env.constants import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT
from nclone_env.errors import ActionError


class Action(IntEnum):
    """The actions of the ``discrete`` space: 3 * jump + direction."""

    NONE = 0
    LEFT = 1
    RIGHT = 2
    JUMP = 3
    JUMP_LEFT = 4
    JUMP_RIGHT = 5


INPUT_OF_ACTION = (0, INPUT_LEFT, INPUT_RIGHT, INPUT_JUMP, INPUT_JUMP | INPUT_LEFT, INPUT_JUMP | INPUT_RIGHT)
"""Input byte of the simulator for each :class:`Action`."""


def action_space(kind: str) -> gymnasium.Space:
    """Return the single action space: ``discrete`` or ``multi_discrete`` ([direction, jump])."""
    return gymnasium.spaces.Discrete(6) if kind == "discrete" else gymnasium.spaces.MultiDiscrete([3, 2])


def check_actions(actions: Any, kind: str, out: np.ndarray) -> None:
    """Write checked actions as numbers 0..5 into ``out``.

    Args:
        actions: (n,) for ``discrete``, (n, 2) for ``multi_discrete``; any integer dtype.
        kind: name of the action space.
        out: (n,) int64; for one environment ().

    Raises:
        ActionError: if dtype, shape or range is wrong.
    """
    try:
        array = np.asarray(actions)
    except ValueError as error:  # lists of different lengths
        raise ActionError(f"action: expected an array of integers, got {actions!r}") from error
    shape = out.shape if kind == "discrete" else (*out.shape, 2)
    if array.dtype.kind not in "iu":
        raise ActionError(
            f"action: expected an integer dtype, got {array.dtype}; sample from the action space or convert with "
            f".astype(np.int64)"
        )
    if array.shape != shape:
        one = "a single number" if shape == () else f"shape {shape}"
        raise ActionError(f"action: expected {one} for the {kind} space, got shape {array.shape}")
    if kind == "discrete":
        _check_range(array, 6, array, "0..5")
        out[...] = array
    else:
        _check_range(array[..., 0], 3, array, "[direction 0..2, jump 0..1]")
        _check_range(array[..., 1], 2, array, "[direction 0..2, jump 0..1]")
        np.multiply(array[..., 1], 3, out=out, casting="unsafe")
        out += array[..., 0].astype(np.int64, copy=False)


def _check_range(part: np.ndarray, limit: int, actions: np.ndarray, valid: str) -> None:
    """Refuse numbers below 0 or from the limit on; ``argmin`` allocates next to nothing, unlike ``min``."""
    if part.item(part.argmin()) >= 0 and part.item(part.argmax()) < limit:
        return
    first = tuple(np.argwhere((part < 0) | (part >= limit))[0])
    where = f" in environment {first[0]}" if first else ""
    raise ActionError(f"action: expected {valid}, got {actions[first]}{where}")
