"""Checks of certificates (``plan.proof``), with as little in common with the search as possible.

What a check trusts: the simulator (``tick``), and for halls the lower bounds of ``plan.bounds``. A search is repeated
without hashes, without a table and without kernels of its own: the states of a layer are rows of bytes in a Python set,
less only the fields that no rule reads (gold, the side the ninja faces, the fraction of the last frame) and, if there
is no evil ninja, the frame counter. That keeps apart more states than the search does, so a check takes more time and
memory, and shows in particular that no two states with different futures were mistaken for one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nclone_env.constants import CELEBRATING, DEAD
from nclone_env.jit import kernel
from nclone_env.kinds import EVIL_NINJA
from nclone_env.level.level_set import LevelSet, pack
from nclone_env.level.load import LevelSource, load_level
from nclone_env.plan.bounds import lower_bound
from nclone_env.plan.exhaustive import Reach, can_win, make_reach
from nclone_env.plan.proof import Certificate
from nclone_env.sim.session import play_worlds, start_worlds
from nclone_env.sim.simulate import simulate
from nclone_env.sim.state import WorldArrays, make_worlds

_UNREAD = ("gold", "facing", "finish_fraction")
_ALL_INPUTS = np.arange(8, dtype=np.uint8)
"""Every input byte but those with suicide."""


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Attributes:
        holds: whether the certificate holds.
        reason: why it does not; empty if it does.
        states: states that were visited.
    """

    holds: bool
    reason: str = ""
    states: int = 0


def check_certificate(certificate: Certificate, level: LevelSource) -> Check:
    """Check that a certificate holds for a level.

    Args:
        certificate: the certificate.
        level: the level, in any form that ``load_level`` accepts.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
    """
    loaded = load_level(level)
    if loaded.raw.digest != certificate.digest:
        return Check(False, f"it is of another level than {loaded.name!r}: the digests differ")
    states = simulate(loaded, certificate.inputs).state if certificate.inputs else np.zeros(1, np.int8)
    if len(certificate.inputs) != certificate.frames or states[-1] != CELEBRATING or (states[:-1] == CELEBRATING).any():
        return Check(False, f"its inputs do not win in frame {certificate.frames}")
    levels = pack([loaded])
    if certificate.method == "bound":
        bound = lower_bound(levels, certificate.bound.width or 1e-2)
        if bound.frames < certificate.frames:
            return Check(False, f"the lower bound is {bound.frames} frames, not {certificate.frames}")
        return Check(True)
    return _search(levels, certificate.frames)


def _search(levels: LevelSet, frames: int) -> Check:
    """Visit all states of fewer than ``frames`` frames."""
    reach = make_reach(levels, frames)
    worlds = make_worlds(1, levels, frames)
    start_worlds(levels.arrays, worlds, np.zeros(1, np.int64))
    names = [*_UNREAD] if (levels.entities_of(0)["type"] == EVIL_NINJA).any() else [*_UNREAD, "frame"]
    seen = set(_rows(worlds, names))
    for frame in range(1, frames):
        count = len(worlds.ninjas)
        worlds = WorldArrays(*(np.repeat(array, len(_ALL_INPUTS), axis=0) for array in worlds))
        play_worlds(levels.arrays, worlds, np.tile(_ALL_INPUTS, count)[np.newaxis])
        if (worlds.ninjas["state"] == CELEBRATING).any():
            return Check(False, f"other inputs win in frame {frame}", len(seen))
        possible = np.zeros(len(worlds.ninjas), np.bool_)
        mark_possible(levels.arrays, worlds, reach, frames - 1 - frame, possible)
        chosen = []
        for place, row in enumerate(_rows(worlds, names)):
            if possible[place] and row not in seen:
                seen.add(row)
                chosen.append(place)
        if not chosen:
            break
        worlds = WorldArrays(*(array[chosen] for array in worlds))
    return Check(True, "", len(seen))


def _rows(worlds: WorldArrays, names: list[str]) -> list[bytes]:
    """Return the bytes of each world without some fields of the ninja."""
    ninjas = worlds.ninjas.copy()
    for name in names:
        ninjas[name] = 0
    arrays = (ninjas, *worlds[1:])
    parts = [np.ascontiguousarray(array).reshape(len(array), -1).view(np.uint8) for array in arrays]
    return [row.tobytes() for row in np.concatenate(parts, axis=1)]


@kernel
def mark_possible(levels, worlds, reach: Reach, left, possible):
    """Write of each living world whether it can still win within so many frames."""
    for index in range(possible.shape[0]):
        possible[index] = worlds.ninjas[index]["state"] < DEAD and can_win(levels, worlds, index, reach, left)
