"""Whether the bytes of a world can be played: kernels follow the numbers in them without checks.

What is refused here could make them read or write outside of their arrays. What is accepted need not be a state that
play can reach.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np

from nclone_env.constants import CELLS, DISABLED
from nclone_env.kind import Kind
from nclone_env.kinds import KINDS, LASER_TURRET
from nclone_env.level.level_set import LevelSet
from nclone_env.sim.entities.laser.surface_skip import motion_segments
from nclone_env.sim.entities.shooting_drone import PATROL, PHASE
from nclone_env.sim.state import NO_CELL

_FARTHEST = 2.0**29  # pixels, and any other number; cells are computed from 32-bit integers
_HEADINGS = 3  # bits 0 and 1
_LONGEST = 1 << 30  # frames, and numbers of entries into cells
_LIMITS = {
    "frame": (0, _LONGEST),
    "next_order": (0, _LONGEST),
    "state": (0, DISABLED),
    "airborne": (0, 1),
    "walled": (0, 1),
    "facing": (-1, 1),
    "jump_held": (0, 1),
}
"""Least and largest value of fields of the ninja."""


class Fault(NamedTuple):
    """What is wrong in a world."""

    where: str
    """Array and field."""
    expected: str
    got: str


def world_fault(rows: dict[str, np.ndarray], levels: LevelSet) -> Fault | None:
    """Return the first reason why a world cannot be played, None if it can.

    Args:
        rows: the row of the world of each array of ``WorldArrays`` by name, (1, ...); its level is one of the set.
        levels: the levels.
    """
    for name, array in rows.items():
        for field in array.dtype.names or ("",):
            values = array[field] if field else array
            if values.dtype.kind == "f" and not (np.abs(values) <= _FARTHEST).all():
                return Fault(f"{name}.{field}".rstrip("."), f"numbers from -{_FARTHEST:g} to {_FARTHEST:g}", "others")
    for field, (least, most) in _LIMITS.items():
        value = int(rows["ninjas"][field][0])
        if not least <= value <= most:
            return Fault(f"ninjas.{field}", f"a number from {least} to {most}", str(value))
    return _entity_fault(rows["entity_states"][0], rows["movers"][0], int(rows["ninjas"]["level"][0]), levels)


def _largest_state(kind: Kind) -> int:
    """Return the largest state of a kind that kernels look something up by; 255 if they only compare it."""
    if kind.has_heading:
        return _HEADINGS if kind.shoots else functools.reduce(operator.or_, kind.states.values())
    return len(kind.radii) - 1 if len(kind.radii) > 1 else 255


def _looked_up(kind: Kind, states: np.ndarray) -> np.ndarray:
    """Return the states by which kernels look something up: of drones that shoot, those on patrol."""
    return states[states & PHASE == PATROL] if kind.has_heading and kind.shoots else states


def _entity_fault(states: np.ndarray, movers: np.ndarray, level: int, levels: LevelSet) -> Fault | None:
    cells = movers["cell"]
    if not ((cells >= NO_CELL) & (cells < CELLS)).all():
        return Fault("movers.cell", f"cells from {NO_CELL} to {CELLS - 1}", str(cells.max()))
    types = levels.entities_of(level)["type"]
    for kind in KINDS:
        known, most = _looked_up(kind, states[: len(types)][types == kind.number]), _largest_state(kind)
        if len(known) and known.max() > most:
            return Fault("entity_states", f"a {kind.name} in a state from 0 to {most}", str(known.max()))
    slots = levels.mover_slots_of(level)
    lasers = movers[: len(slots)][types[slots] == LASER_TURRET]
    segments = motion_segments(levels.arrays, level, lasers)
    if not ((segments >= 0) & (segments < len(levels.arrays.segments))).all():
        return Fault("movers", "lasers that move along segments of the levels", f"segments {segments.tolist()}")
    return None
