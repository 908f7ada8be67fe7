"""Start states: worlds, taken from snapshots, in which episodes begin instead of at the start of their level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import ConfigError, shortened
from nclone_env.jit import kernel
from nclone_env.level import LevelSet
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import MOVER, NINJA_RECORD, RANDOM_BITS, copy_mover, copy_ninja, random_bits

START = np.dtype(
    [("bound", "u8"), ("first_entity", "i8"), ("first_mover", "i8"), ("first_trail", "i8")]
    + [(name, "i4") for name in ("entity_count", "mover_count", "trail_count", "number")],
    align=True,
)
"""A start state: the bound below which a 63-bit random number selects it among those of its level, its rows of the
packed arrays, and its number in the list that was set."""

_STREAM = np.uint64(0x6A09E667F3BCC908)  # any constant: start states are drawn independently of levels
_ROUNDING = 1e-9


class StartArrays(NamedTuple):
    """K start states, those of a level one after another.

    A world is as large as the largest level of a set needs; of a start state only what its own level uses is stored.

    Attributes:
        starts: (K,) ``START``; the bounds ascend within a level.
        first: (L + 1,) int64; the states of level l are ``first[l]`` to ``first[l + 1] - 1``.
        ninjas: (K,) ``NINJA_RECORD``.
        entity_states: uint8; those of all states.
        movers: ``MOVER`` records of all states.
        trail: (R, 2) float64; past positions of all states, each up to the last that is not zero.
    """

    starts: np.ndarray
    first: np.ndarray
    ninjas: np.ndarray
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the start states."""
        return array_group("start states", self._asdict(), shared=True)


def make_starts(levels: LevelSet, states: Iterable[Mapping[str, np.ndarray]]) -> StartArrays:
    """Return start states, all with probability 0.

    Args:
        states: for each state the rows of a snapshot by array name, (1, ...) each; taken one after another.
    """
    return _packed(len(levels.levels), [_used_rows(levels, number, rows) for number, rows in enumerate(states)])


@lru_cache(maxsize=64)
def no_starts(level_count: int) -> StartArrays:
    """Return no start states of a number of levels; all environments share them."""
    return _packed(level_count, [])


def _packed(level_count: int, parts: list[_Part]) -> StartArrays:
    parts.sort(key=_level_of)
    starts = np.array([part.start for part in parts], START)
    for name in ("entity", "mover", "trail"):
        counts = starts[f"{name}_count"]
        starts[f"first_{name}"] = np.cumsum(counts) - counts
    played = [_level_of(part) for part in parts]
    return StartArrays(
        starts=starts,
        first=np.searchsorted(played, np.arange(level_count + 1)).astype(np.int64),
        ninjas=np.array([part.ninja for part in parts], NINJA_RECORD),
        entity_states=np.concatenate([np.zeros(0, np.uint8), *(part.entity_states for part in parts)]),
        movers=np.concatenate([np.zeros(0, MOVER), *(part.movers for part in parts)]),
        trail=np.concatenate([np.zeros((0, 2)), *(part.trail for part in parts)]),
    )


class _Part(NamedTuple):
    """One start state: its record, and copies of the rows that its level uses."""

    start: Any
    ninja: Any
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray


def _used_rows(levels: LevelSet, number: int, rows: Mapping[str, np.ndarray]) -> _Part:
    ninja = rows["ninjas"][0]
    header = levels.arrays.header[ninja["level"]]
    trail = rows["trail"][0]
    remembered = np.flatnonzero(trail.view(np.uint64).any(axis=1))
    start = np.zeros((), START)
    start["number"], start["trail_count"] = number, remembered[-1] + 1 if len(remembered) else 0
    start["entity_count"], start["mover_count"] = header["entity_count"], header["mover_count"]
    return _Part(
        start[()],
        ninja.copy(),
        rows["entity_states"][0, : start["entity_count"]].copy(),
        rows["movers"][0, : start["mover_count"]].copy(),
        trail[: start["trail_count"]].copy(),
    )


def _level_of(part: _Part) -> int:
    return int(part.ninja["level"])


def set_shares(arrays: StartArrays, shares: np.ndarray) -> None:
    """Set the probabilities of the start states.

    Args:
        arrays: the start states, changed.
        shares: (K,) float64 in the order in which the states were set, checked by :func:`check_shares`.
    """
    ordered = shares[arrays.starts["number"]]
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    within = sums[1:] - np.repeat(sums[arrays.first[:-1]], np.diff(arrays.first))
    within[within > 1.0 - _ROUNDING] = 1.0
    arrays.starts["bound"] = (within * 2.0**RANDOM_BITS).astype(np.uint64)


def check_shares(share: Any, arrays: StartArrays) -> np.ndarray:
    """Return the probability of each start state, (K,) float64, in the order in which the states were set.

    Args:
        share: one number, divided evenly among the states of each level; or (K,) numbers.

    Raises:
        ConfigError: if the shape is wrong, a number is no probability, or those of a level exceed 1.
    """
    counts, size = np.diff(arrays.first), len(arrays.starts)
    expected = f"one number, or one for each of the {size} start states"
    try:
        given = np.asarray(share)
    except ValueError as error:  # nested lists of unequal lengths
        raise ConfigError(f"share: expected {expected}, got {shortened(share)}") from error
    if given.dtype.kind not in "iuf" or given.shape not in ((), (size,)):
        raise ConfigError(f"share: expected {expected}, got {given.dtype} of shape {given.shape}")
    wrong = ~((given >= 0.0) & (given <= 1.0))
    if wrong.any():
        raise ConfigError(f"share: expected probabilities from 0 to 1, got {given[wrong].ravel()[0]}")
    levels = np.empty(size, dtype=np.int64)
    levels[arrays.starts["number"]] = np.repeat(np.arange(len(counts)), counts)
    shares = given / counts[levels] if given.ndim == 0 else given.astype(np.float64)
    sums = np.bincount(levels, weights=shares, minlength=len(counts))
    if sums.max() > 1.0 + _ROUNDING:
        got = f"{sums.max():.6g} for level {sums.argmax()}"
        raise ConfigError(f"share: expected at most 1 for the states of a level together, got {got}")
    return shares


@kernel
def draw_start(arrays, seed, number, level):
    """Return the place of a random start state of a level, -1 for the start of the level.

    It depends only on seed, episode number and shares, as the level does.
    """
    low, high = arrays.first[level], arrays.first[level + 1] - 1
    if high < low:
        return -1
    z = random_bits(np.uint64(seed) ^ _STREAM, number)
    if z >= arrays.starts[high]["bound"]:
        return -1
    while low < high:
        middle = (low + high) // 2
        if z < arrays.starts[middle]["bound"]:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def place_start(arrays, place, worlds, index):
    """Put a world that is at the start of the level of a start state into that state.

    Args:
        place: index of the start state.
        worlds: ``WorldArrays``, changed in place.
    """
    state = arrays.starts[place]
    copy_ninja(arrays.ninjas[place], worlds.ninjas[index])
    for slot in range(state["entity_count"]):
        worlds.entity_states[index, slot] = arrays.entity_states[state["first_entity"] + slot]
    for number in range(state["mover_count"]):
        copy_mover(arrays.movers[state["first_mover"] + number], worlds.movers[index, number])
    for row in range(state["trail_count"]):
        for axis in range(2):
            worlds.trail[index, row, axis] = arrays.trail[state["first_trail"] + row, axis]
