"""Gymnasium spaces of observations and actions, and the check of the actions passed to ``step``."""

import itertools
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from nclone_env.errors import ActionError, as_array
from nclone_env.game import DIRECTION_INPUTS, JUMP_INPUTS, KEYS, NUM_ACTIONS, NUM_DIRECTIONS
from nclone_env.obs import ObservationSpec

_KEY_CODES = {"right": 0x4000004F, "left": 0x40000050, "up": 0x40000052, "space": ord(" ")}
_PAIR = (NUM_DIRECTIONS, len(JUMP_INPUTS))
_NUMBERS = (int, np.int64)  # the types of nearly all single actions
_DISCRETE_RANGE = f"0..{NUM_ACTIONS - 1}"
_PAIR_RANGE = f"[direction 0..{_PAIR[0] - 1}, jump 0..{_PAIR[1] - 1}]"


def observation_space(specs: Sequence[ObservationSpec], only: str | None = None, *batch: int) -> gymnasium.Space:
    """Return the observation space: a Dict with one Box per array, or the Box of the array named ``only``.

    With a number of environments it equals Gymnasium's ``batch_space``.
    """
    boxes: dict[str, gymnasium.Space] = {spec.name: _box(spec, (*batch, *spec.shape)) for spec in specs}
    return gymnasium.spaces.Dict(boxes) if only is None else boxes[only]


def _box(spec: ObservationSpec, shape: tuple[int, ...]) -> gymnasium.spaces.Box:
    """Return a Box whose bounds are views of one element.

    Gymnasium stores two bounds and two masks per element, four times the bytes of a picture.
    """
    box = gymnasium.spaces.Box(spec.low, spec.high, (1,) * len(shape), spec.dtype.type)
    for name in ("low", "high", "bounded_below", "bounded_above"):
        setattr(box, name, np.broadcast_to(getattr(box, name), shape))
    box._shape = shape
    return box


def action_space(kind: str) -> gymnasium.Space:
    """Return the single action space: ``discrete`` or ``multi_discrete`` ([direction, jump])."""
    return gymnasium.spaces.Discrete(NUM_ACTIONS) if kind == "discrete" else gymnasium.spaces.MultiDiscrete(list(_PAIR))


def flat_masks(masks: np.ndarray, kind: str) -> np.ndarray:
    """Return action masks, (..., 6), as ``MaskablePPO`` takes them.

    These are bool; for ``multi_discrete`` (..., 5), the directions and the two of jump that any action uses.
    """
    allowed = masks.astype(np.bool_)
    if kind == "discrete":
        return allowed
    pairs = allowed.reshape(*allowed.shape[:-1], len(JUMP_INPUTS), NUM_DIRECTIONS)
    return np.concatenate([pairs.any(axis=-2), pairs.any(axis=-1)], axis=-1)


def keys_to_action(kind: str) -> dict[tuple[int, ...], Any]:
    """Return the action for each combination of held keys: one of those of ``KEYS`` for the direction, one to jump.

    Keys are codes of SDL, as pygame reports them.
    """
    table: dict[tuple[int, ...], Any] = {}
    codes: dict[int, list[int]] = {}
    for name, bit in KEYS.items():
        codes.setdefault(bit, []).append(_KEY_CODES.get(name) or ord(name))
    for (direction, side), (jump, jumping) in itertools.product(enumerate(DIRECTION_INPUTS), enumerate(JUMP_INPUTS)):
        action = jump * NUM_DIRECTIONS + direction
        for held in itertools.product(*(codes[bit] for bit in (side, jumping) if bit)):
            if held:
                table[held] = action if kind == "discrete" else np.array([direction, jump])
    return table


def check_actions(actions: Any, kind: str, out: np.ndarray) -> None:
    """Check actions, (n,) or (n, 2) of any integer dtype, and write them as numbers 0..5 into ``out``, (n,) int64.

    For one environment there is no first axis.
    """
    if type(actions) in _NUMBERS and out.shape == () and kind == "discrete" and 0 <= actions < NUM_ACTIONS:
        out[...] = actions  # the rest takes five times as long
        return
    array = as_array(actions, ActionError, "action: expected an array of integers")
    shape = out.shape if kind == "discrete" else (*out.shape, len(_PAIR))
    if array.dtype.kind not in "iu":
        raise ActionError(
            f"action: expected an integer dtype, got {array.dtype}; sample from the action space or convert with "
            f".astype(np.int64)"
        )
    if array.shape != shape:
        one = "a single number" if shape == () else f"shape {shape}"
        raise ActionError(f"action: expected {one} for the {kind} space, got shape {array.shape}")
    if kind == "discrete":
        _check_range(array, NUM_ACTIONS, array, _DISCRETE_RANGE)
        out[...] = array
    else:
        direction, jump = array[..., 0], array[..., 1]
        _check_range(direction, _PAIR[0], array, _PAIR_RANGE)
        _check_range(jump, _PAIR[1], array, _PAIR_RANGE)
        np.multiply(jump, NUM_DIRECTIONS, out=out, casting="unsafe")
        out += direction.astype(np.int64, copy=False)


def _check_range(part: np.ndarray, limit: int, actions: np.ndarray, valid: str) -> None:
    """Reject numbers outside 0..limit - 1; ``argmin`` allocates next to nothing, unlike ``min``."""
    if part.item(part.argmin()) >= 0 and part.item(part.argmax()) < limit:
        return
    wrong = tuple(np.argwhere((part < 0) | (part >= limit))[0])
    where = f" in environment {wrong[0]}" if wrong else ""
    raise ActionError(f"action: expected {valid}, got {actions[wrong]}{where}")
