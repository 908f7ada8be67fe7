"""Solutions spliced together: what one of two solutions does faster, put into the other one.

Searches that begin with the same solution make it shorter in different places. Where both solutions come through the
same state, one can go on with the inputs of the other. Between two such states the faster of both is played; a replay
tells whether the result still wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nclone_env.constants import CELEBRATING
from nclone_env.level import LevelSet
from nclone_env.plan.objective import Replayed, cost_of, states_of
from nclone_env.sim.state import WorldArrays

_SIZE, _SPEED = 0.5, 0.05
"""States are alike if they are in the same squares of positions, pixels, and velocities, pixels per frame."""
_TRIALS = 8
_PLACES = 1 << 16  # values of a coordinate in a key
_LATER = 2
"""Frames that the last input may be held longer."""


class _Part(NamedTuple):
    """A part of the other solution that is faster: frames gained, and the frames before and after it in both."""

    gain: int
    there_first: int
    there_last: int
    first: int
    last: int


def spliced(levels: LevelSet, origin: WorldArrays, best: Replayed, other: Replayed, price: int, hold: int) -> Replayed:
    """Return the best solution with parts of another one that make it cost less; itself if there are none.

    Args:
        levels: level set of one level.
        origin: the world in which solutions begin.
        best: the solution to make shorter.
        other: another solution.
        price: of a piece of gold.
        hold: inputs change only in frames that are multiples of it.
    """
    there, tried = _keys(states_of(levels, origin, other.inputs), hold), set()
    for _ in range(_TRIALS):
        here = _keys(states_of(levels, origin, best.inputs), hold)
        parts = [part for part in _faster_parts(here, there) if part[1:3] not in tried]
        if not parts:
            break
        part = max(parts)
        tried.add(part[1:3])
        middle = other.inputs[part.there_first : part.there_last]
        end = np.repeat(best.inputs[-1:], _LATER)
        inputs = np.concatenate([best.inputs[: part.first], middle, best.inputs[part.last :], end])
        inputs = inputs[: len(best.inputs)]  # with gold, a longer one might cost less
        states = states_of(levels, origin, inputs)
        wins = np.flatnonzero(states["state"] == CELEBRATING)
        if len(wins):
            length, gold = int(wins[0]) + 1, int(states["gold"][wins[0]])
            cost = cost_of(levels, length, gold, price)
            if cost < best.cost:
                best = Replayed(inputs[:length], gold, cost)
    return best


def _keys(states: np.ndarray, hold: int) -> np.ndarray:
    """Return (T,) int64: keys of the states after each frame, equal if they are alike, -1 if the input is held on."""
    keys = np.zeros(len(states), np.int64)
    for name, size in (("x", _SIZE), ("y", _SIZE), ("vx", _SPEED), ("vy", _SPEED)):
        keys = keys * _PLACES + np.floor(states[name] / size + 0.5).astype(np.int64) % _PLACES
    keys[np.arange(1, len(states) + 1) % hold != 0] = -1
    return keys


def _faster_parts(here: np.ndarray, there: np.ndarray) -> list[_Part]:
    """Return the parts of a solution with keys ``there`` that come from and to states of another one, but sooner."""
    names, first_frames = np.unique(here, return_index=True)
    places = np.minimum(np.searchsorted(names, there), len(names) - 1)
    met = np.flatnonzero((names[places] == there) & (there != -1))
    frames = first_frames[places[met]]
    later = met - frames  # frames by which the other solution is later in the same state
    steps = np.diff(later)
    falls = np.flatnonzero(steps < 0)
    rises = np.cumsum(steps > 0)[falls]  # those before each fall: falls between two rises are one part
    firsts = np.flatnonzero(np.diff(rises, prepend=-1))
    begins, ends = falls[firsts], falls[np.append(firsts[1:], len(falls))[: len(firsts)] - 1] + 1
    rows = np.stack([later[begins] - later[ends], met[begins] + 1, met[ends] + 1, frames[begins] + 1, frames[ends] + 1])
    return [_Part(*row) for row in rows.T.tolist() if row[3] <= row[4]]
