"""Start states: worlds in which episodes begin instead of at the start of their level.

A world is as large as the largest level of a set needs; of a start state only what its own level uses is stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import ConfigError, shortened
from nclone_env.level import LevelArrays, LevelSet, content_digest
from nclone_env.memory import MemoryNode, array_group
from nclone_env.sim import MOVER, NINJA_RECORD, RANDOM_BITS

START = np.dtype(
    [("bound", "u8"), ("first_entity", "i8"), ("first_mover", "i8"), ("first_trail", "i8")]
    + [(name, "i4") for name in ("entity_count", "mover_count", "trail_count", "number")],
    align=True,
)
"""A start state: the bound below which a 63-bit random number selects it among those of its level, its rows of the
packed arrays, and its number in the list that was set."""

_ROUNDING = 1e-9


class StartArrays(NamedTuple):
    """K start states, those of a level one after another.

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


class StartState(NamedTuple):
    """A world in which episodes can begin, as copies of the rows that its level uses."""

    ninja: Any
    entity_states: np.ndarray
    movers: np.ndarray
    trail: np.ndarray


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


def start_state(levels: LevelArrays, rows: Mapping[str, np.ndarray], index: int) -> StartState:
    """Return a start state from the worlds of environments or of a snapshot, (n, ...) by name."""
    ninja = rows["ninjas"][index]
    header = levels.header[ninja["level"]]
    trail = rows["trail"][index]
    remembered = np.flatnonzero(trail.view(np.uint64))
    return StartState(
        ninja.copy(),
        rows["entity_states"][index, : header["entity_count"]].copy(),
        rows["movers"][index, : header["mover_count"]].copy(),
        trail[: remembered[-1] // trail.shape[1] + 1 if len(remembered) else 0].copy(),
    )


@lru_cache(maxsize=64)
def no_starts(level_count: int) -> StartArrays:
    """Return no start states of a number of levels; all environments share them."""
    return _packed(level_count, [])


def pack_starts(levels: LevelSet, states: Iterable[StartState]) -> PackedStarts:
    """Return start states on levels; they are numbered in this order."""
    return PackedStarts(content_digest(levels.levels), _packed(len(levels.levels), states))


def _packed(level_count: int, states: Iterable[StartState]) -> StartArrays:
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
