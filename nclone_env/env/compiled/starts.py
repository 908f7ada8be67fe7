"""Start states: worlds, taken from snapshots, in which episodes begin instead of at the start of their level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.env.compiled.random_numbers import RANDOM_BITS, random_bits
from nclone_env.errors import ConfigError
from nclone_env.jit import kernel
from nclone_env.level.level_set import LevelSet
from nclone_env.memory_tree import MemoryNode, array_group
from nclone_env.sim.state import WorldArrays, make_worlds

START = np.dtype([("bound", "u8"), ("number", "i4")], align=True)
"""A start state: the bound below which a 63-bit random number selects it among those of its level, and its number in
the list that was set."""

_STREAM = np.uint64(0x6A09E667F3BCC908)  # any constant: start states are drawn independently of levels
_ROUNDING = 1e-9


class StartArrays(NamedTuple):
    """K start states, those of a level one after another.

    Attributes:
        worlds: ``WorldArrays`` of K worlds.
        starts: (K,) ``START``; the bounds ascend within a level.
        first: (L + 1,) int64; the states of level l are ``first[l]`` to ``first[l + 1] - 1``.
    """

    worlds: WorldArrays
    starts: np.ndarray
    first: np.ndarray

    def memory(self) -> MemoryNode:
        """Return the bytes of the start states."""
        return array_group("start states", {**self.worlds._asdict(), "starts": self.starts}, shared=True)


def make_starts(config: EnvironmentConfig, levels: LevelSet, states: list[dict[str, np.ndarray]]) -> StartArrays:
    """Return start states of which none is used yet.

    Args:
        config: configuration of the environments.
        levels: their levels.
        states: the rows of each snapshot by array name, (1, ...) each.
    """
    played = np.array([rows["ninjas"]["level"][0] for rows in states], dtype=np.int64)
    order = np.argsort(played, kind="stable")
    worlds = make_worlds(len(states), levels, config.max_frames)
    for place, number in enumerate(order.tolist()):
        for name, array in worlds._asdict().items():
            array[place : place + 1] = states[number][name]
    starts = np.zeros(len(states), START)
    starts["number"] = order
    return StartArrays(worlds, starts, np.searchsorted(played[order], np.arange(len(levels.levels) + 1)))


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
        arrays: the start states.

    Raises:
        ConfigError: if the shape is wrong, a number is no probability, or those of a level exceed 1.
    """
    given = np.asarray(share)
    counts, size = np.diff(arrays.first), len(arrays.starts)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (size,)):
        expected = f"one number, or one for each of the {size} start states"
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
