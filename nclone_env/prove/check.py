"""Checks of certificates (``prove.proof``), with as little in common with the search as possible.

What a check trusts: the simulator (``tick``), and for halls the lower bounds of ``prove.bounds``. A search is repeated
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
from nclone_env.level import LevelSet, LevelSource, load_level, pack
from nclone_env.prove.bounds import lower_bound
from nclone_env.prove.exhaustive import Reach, can_win, make_reach, reach_bytes
from nclone_env.prove.proof import Certificate
from nclone_env.sim import Session, WorldArrays, make_worlds, play_worlds, start_worlds

CHECK_MEMORY = 4_000_000_000
_UNREAD = ("gold", "facing", "finish_fraction")
_ALL_INPUTS = np.arange(8, dtype=np.uint8)
"""Every input byte but those with suicide."""
_AT_ONCE = 512
"""States of a layer that are played on together."""
_COPIES = 3  # of what is played together: worlds, and rows of bytes twice
_ROW_BYTES = 33 + 100
"""Bytes of a row in a set, apart from its own: the head of the object, and its places while the set grows."""


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


def check_certificate(certificate: Certificate, level: LevelSource, memory: int = CHECK_MEMORY) -> Check:
    """Check that a certificate holds for a level.

    Args:
        certificate: the certificate, of any origin: a false one does not hold, whatever is in it.
        level: the level, in any form that ``load_level`` accepts.
        memory: bytes of the states of a search, at most; a certificate that needs more does not hold.

    Raises:
        LevelFormatError, UnknownLevelError: if the level cannot be loaded.
    """
    loaded = load_level(level)
    if loaded.raw.digest != certificate.digest:
        return Check(False, f"it is of another level than {loaded.name!r}: the digests differ")
    levels = pack([loaded])
    if len(certificate.inputs) != certificate.frames or not _wins(levels, certificate.inputs):
        return Check(False, f"its inputs do not win in frame {certificate.frames}")
    if certificate.method == "bound":
        bound = lower_bound(levels, certificate.bound.width or 1e-2)
        if bound.frames < certificate.frames:
            return Check(False, f"the lower bound is {bound.frames} frames, not {certificate.frames}")
        return Check(True)
    return _search(levels, certificate.frames, memory)


def _wins(levels: LevelSet, inputs: bytes) -> bool:
    """Return whether inputs win in their last frame; there may be millions, so that states are not recorded."""
    session = Session(levels, max_frames=max(len(inputs), 1))
    session.play(inputs[:-1])
    before = session.ninja["state"]
    session.play(inputs[-1:])
    return bool(before != CELEBRATING and session.ninja["state"] == CELEBRATING)


def _search(levels: LevelSet, frames: int, memory: int) -> Check:
    """Visit all states of fewer than ``frames`` frames."""
    too_much = Check(False, f"it needs more than {memory:,} bytes of memory; give more with --memory, or 'memory'")
    worlds = make_worlds(1, levels, frames)
    size = sum(array.nbytes for array in worlds)
    fixed = reach_bytes(levels, frames)
    if fixed + size > memory:
        return too_much
    reach = make_reach(levels, frames)
    start_worlds(levels.arrays, worlds, np.zeros(1, np.int64))
    names = [*_UNREAD] if (levels.entities_of(0)["type"] == EVIL_NINJA).any() else [*_UNREAD, "frame"]
    seen = set(_rows(worlds, names))
    for frame in range(1, frames):
        layer: list[WorldArrays] = []
        before, count = len(worlds.ninjas), 0
        for first in range(0, before, _AT_ONCE):
            after = _played(levels, worlds, slice(first, first + _AT_ONCE))
            if (after.ninjas["state"] == CELEBRATING).any():
                return Check(False, f"other inputs win in frame {frame}", len(seen))
            possible = np.zeros(len(after.ninjas), np.bool_)
            mark_possible(levels.arrays, after, reach, frames - 1 - frame, possible)
            layer.append(_unseen(after, possible, names, seen))
            count += len(layer[-1].ninjas)
            played = _COPIES * len(after.ninjas)
            if fixed + len(seen) * (size + _ROW_BYTES) + (before + 2 * count + played) * size > memory:
                return too_much
        if not count:
            break
        worlds = WorldArrays(*(np.concatenate(arrays) for arrays in zip(*layer)))
    return Check(True, "", len(seen))


def _played(levels: LevelSet, worlds: WorldArrays, rows: slice) -> WorldArrays:
    """Return what the worlds of some rows become by every input, each for one frame."""
    after = WorldArrays(*(np.repeat(array[rows], len(_ALL_INPUTS), axis=0) for array in worlds))
    play_worlds(levels.arrays, after, np.tile(_ALL_INPUTS, len(worlds.ninjas[rows]))[np.newaxis])
    return after


def _unseen(worlds: WorldArrays, possible: np.ndarray, names: list[str], seen: set[bytes]) -> WorldArrays:
    """Return the worlds that can still win and are new, and add them to what was seen."""
    chosen = []
    for place, row in enumerate(_rows(worlds, names)):
        if possible[place] and row not in seen:
            seen.add(row)
            chosen.append(place)
    return WorldArrays(*(array[chosen] for array in worlds))


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
