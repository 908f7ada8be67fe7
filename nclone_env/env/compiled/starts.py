"""Where episodes begin: on which level, and in which world, if not at the start of their level."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import ConfigError, shortened
from nclone_env.jit import kernel
from nclone_env.level import LevelSet, content_digest
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import MOVER, NINJA_RECORD, RANDOM_BITS, World, copy_mover, copy_ninja, mover_of, random_bits

START = np.dtype(
    [("bound", "u8"), ("first_entity", "i8"), ("first_mover", "i8"), ("first_trail", "i8")]
    + [(name, "i4") for name in ("entity_count", "mover_count", "trail_count", "number")],
    align=True,
)
"""A start state: the bound below which a 63-bit random number selects it among those of its level, its rows of the
packed arrays, and its number in the list that was set."""

_ROUNDING = 1e-9
_STREAM = np.uint64(0x6A09E667F3BCC908)  # any constant: start states are drawn independently of levels


class StartArrays(NamedTuple):
    """K start states, those of a level one after another.

    Attributes:
        starts: (K,) ``START``; the bounds ascend within a level.
        first: (L + 1,) int64; the states of level l are ``first[l]`` to ``first[l + 1] - 1``.
        ninjas: (K,) ``NINJA_RECORD``.
        entity_states: uint8; those of all states.
        movers: ``MOVER`` records of all states.
        trail: (R, 2) float64; past positions of all states.
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


@dataclass(frozen=True, eq=False)
class PackedStarts:
    """Start states of environments with the same levels, which share their arrays.

    Attributes:
        digest: of the contents of the levels (``level.content_digest``).
        arrays: the start states, all with probability 0.
    """

    digest: str
    arrays: StartArrays

    def __len__(self) -> int:
        return len(self.arrays.starts)


@lru_cache(maxsize=64)
def no_starts(level_count: int) -> StartArrays:
    """Return no start states of a number of levels; all environments share them."""
    return _packed(level_count, [])


def pack_starts(levels: LevelSet, states: Iterable[World]) -> PackedStarts:
    """Return start states on levels; they are numbered in this order."""
    return PackedStarts(content_digest(levels.levels), _packed(len(levels.levels), states))


def _packed(level_count: int, states: Iterable[World]) -> StartArrays:
    numbered = sorted(enumerate(states), key=lambda item: int(item[1].ninja["level"]))
    numbers, parts = [number for number, _ in numbered], [part for _, part in numbered]
    starts = np.zeros(len(parts), START)
    starts["number"] = numbers
    for name, field in (("entity", "entity_states"), ("mover", "movers"), ("trail", "trail")):
        counts = starts[f"{name}_count"] = [len(getattr(part, field)) for part in parts]
        starts[f"first_{name}"] = np.cumsum(counts) - counts
    played = [int(part.ninja["level"]) for part in parts]
    return StartArrays(
        starts=starts,
        first=np.searchsorted(played, np.arange(level_count + 1)).astype(np.int64),
        ninjas=np.array([part.ninja for part in parts], NINJA_RECORD),
        entity_states=np.concatenate([np.zeros(0, np.uint8), *(part.entity_states for part in parts)]),
        movers=np.concatenate([np.zeros(0, MOVER), *(part.movers for part in parts)]),
        trail=np.concatenate([np.zeros((0, 2)), *(part.trail for part in parts)]),
    )


def set_shares(arrays: StartArrays, share: Any) -> None:
    """Set the probabilities of the start states; if they are wrong, nothing is changed.

    One number is divided evenly among the states of each level; (K,) are in the order in which the states were set.
    """
    ordered = _checked_shares(share, arrays)[arrays.starts["number"]]
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    within = sums[1:] - np.repeat(sums[arrays.first[:-1]], np.diff(arrays.first))
    within[within > 1.0 - _ROUNDING] = 1.0
    arrays.starts["bound"] = (within * 2.0**RANDOM_BITS).astype(np.uint64)


def _checked_shares(share: Any, arrays: StartArrays) -> np.ndarray:
    """Return the probability of each start state, (K,) float64, in the order in which the states were set."""
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
def next_start(arrays, index):
    """Return (level, place): where the next episode of an environment begins.

    It is the requested level, else the assigned one, else a random one. Without a request it may be a start state of
    the level, at a place in ``arrays.starts``; else the place is -1.
    """
    episode = arrays.episodes[index]
    level = np.int64(episode["next_level"])
    if level >= 0:
        return level, -1
    level = np.int64(episode["own_level"])
    if level < 0:
        level = draw(episode["seed"], episode["number"], arrays.thresholds)
    return level, draw_start(arrays.starts, episode["seed"], episode["number"], level)


@kernel
def draw(seed, number, thresholds):
    """Return a random level that depends only on seed, episode number and weights: the first with a bound above z."""
    z = random_bits(seed, number)
    low, high = 0, thresholds.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if z < thresholds[middle]:
            high = middle
        else:
            low = middle + 1
    return low


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
    """Put a world that is at the start of the level of start state ``place`` into that state."""
    state, room = arrays.starts[place], worlds.rooms[index]
    copy_ninja(arrays.ninjas[place], worlds.ninjas[index])
    for slot in range(state["entity_count"]):
        worlds.entity_states[room["entities"]["first"] + slot] = arrays.entity_states[state["first_entity"] + slot]
    for number in range(state["mover_count"]):
        copy_mover(arrays.movers[state["first_mover"] + number], mover_of(worlds, index, number))
    for row in range(state["trail_count"]):
        for axis in range(2):
            worlds.trail[room["trail"]["first"] + row, axis] = arrays.trail[state["first_trail"] + row, axis]
    if state["trail_count"] > 0:
        room["trail_begin"] = worlds.ninjas[index]["frame"] - state["trail_count"]
