"""Worlds read from bytes, and whether they can be played: kernels follow the numbers in them without checks.

What is refused here could make them read or write outside of their arrays. What is accepted need not be a state that
play can reach.
"""

import functools
import operator
from typing import Any, NamedTuple

import numpy as np

from nclone_env.errors import SnapshotError
from nclone_env.game import CELLS, DISABLED, KINDS, LASER_TURRET, ROCKET_TURRET, Kind, bits
from nclone_env.jit import each, kernel
from nclone_env.level import LevelSet
from nclone_env.sim.entities.drone import PATROL, PHASE
from nclone_env.sim.entities.hunters import first_touch
from nclone_env.sim.entities.laser.motion import motion_segment, turns_for_ever
from nclone_env.sim.entities.turrets import LAST_STATE
from nclone_env.sim.state import MOVER, NINJA_RECORD, NO_CELL, World

FARTHEST = 2.0**29
"""Largest number allowed in a world, in pixels or any other unit: the computation of cells uses 32-bit integers."""
_HEADINGS = 3  # bits 0 and 1
_LONGEST = 1 << 30  # frames, and numbers of entries into cells
_FLAGS = ("airborne", "walled", "jump_held")
_SHOOTING_DRONES = bits(kind for kind in KINDS if kind.has_heading and kind.shoots)


class WorldFault(NamedTuple):
    """What is wrong in a world."""

    where: str
    """Array and field."""
    expected: str
    got: str


_FLOATS = f"finite numbers from -{FARTHEST:g} to {FARTHEST:g}"
_FAULTS = (
    WorldFault("ninjas.frame", f"a number from 0 to {_LONGEST}", "another"),
    WorldFault("ninjas.next_order", f"a number from 0 to {_LONGEST}", "another"),
    WorldFault("ninjas.state", f"a state from 0 to {DISABLED}", "another"),
    WorldFault("ninjas", f"{_FLOATS}, 0 or 1 for {', '.join(_FLAGS)}, -1, 0 or 1 for facing", "others"),
    WorldFault("trail", _FLOATS, "others"),
    WorldFault("movers", _FLOATS, "others"),
    WorldFault("movers.cell", f"cells from {NO_CELL} to {CELLS - 1}", "another"),
    WorldFault("movers", "lasers that move along segments of the levels", "others"),
    WorldFault("entity_states", "states that the entities of the level have", "others"),
)
_FRAME, _ORDER, _STATE, _NINJA, _TRAIL, _MOVER, _CELL, _LASER, _ENTITY = range(len(_FAULTS))
_NONE = -1


def _largest_state(kind: Kind) -> int:
    """Return the largest state of a kind that kernels look something up by; 255 if they only compare it.

    Drones that shoot use further bits, but not on patrol.
    """
    if kind.number == ROCKET_TURRET:
        return LAST_STATE
    if kind.has_heading:
        return _HEADINGS if kind.shoots else functools.reduce(operator.or_, kind.states.values())
    return len(kind.radii) - 1 if len(kind.radii) > 1 else 255


_LARGEST_STATES = tuple(map(_largest_state, KINDS))


def read_world(data: Any, levels: LevelSet, most_rows: int, source: str) -> World:
    """Return the world of the bytes of a ``World``, as a copy; its trail has at most so many rows."""
    least = NINJA_RECORD.itemsize
    if len(data) < least:
        raise SnapshotError(source, "size", f"at least {least} bytes", f"{len(data)}")
    ninja = np.frombuffer(data, NINJA_RECORD, 1)[0].copy()
    count = len(levels.levels)
    if not 0 <= ninja["level"] < count:
        raise SnapshotError(source, "ninjas.level", f"a level from 0 to {count - 1}", str(ninja["level"]))
    header = levels.arrays.header[ninja["level"]]
    sizes = int(header["entity_count"]), int(header["mover_count"])
    place, size = least + sizes[0], least + sizes[0] + sizes[1] * MOVER.itemsize
    if len(data) < size:
        raise SnapshotError(source, "size", f"at least {size} bytes", f"{len(data)}")
    states, movers = np.frombuffer(data, np.uint8, sizes[0], least), np.frombuffer(data, MOVER, sizes[1], place)
    rows = trail_length(levels, ninja, states, movers)
    if len(data) != size + 16 * rows:
        raise SnapshotError(source, "size", f"{size + 16 * rows} bytes", f"{len(data)}")
    if rows > most_rows:
        raise SnapshotError(source, "trail", f"at most {most_rows} positions, as of this max_frames", f"{rows}")
    trail = np.frombuffer(data, np.float64, 2 * rows, size).reshape(rows, 2)
    return checked_world(World(ninja, states.copy(), movers.copy(), trail.copy()), levels, source)


def checked_world(world: World, levels: LevelSet, source: str) -> World:
    """Return a world of a level of the set if it can be played; errors as of :func:`read_world`."""
    fault = world_fault(world, levels)
    if fault is not None:
        raise SnapshotError(source, *fault)
    return world


def trail_length(levels: LevelSet, ninja: Any, states: np.ndarray, movers: np.ndarray) -> int:
    """Return the number of positions that the trail of a world has: from the frame after the first touch on."""
    ring = int(levels.arrays.header[ninja["level"]]["trail_count"])
    if ring == 0:  # no evil ninja
        return 0
    return min(max(int(ninja["frame"]) - first_touch(levels.entities_of(ninja["level"]), states, movers) - 1, 0), ring)


def world_fault(world: World, levels: LevelSet) -> WorldFault | None:
    """Return the first reason why a world cannot be played, None if it can; its parts are of the sizes of its level."""
    fault = find_fault(levels.arrays, np.array(world.ninja).reshape(1), *world[1:])
    return None if fault == _NONE else _with_value(_FAULTS[fault], world)


def _with_value(fault: WorldFault, world: World) -> WorldFault:
    """Return a fault of a field with what the field holds: a number, or the least and the largest of several."""
    name, _, field = fault.where.partition(".")
    if not field:
        return fault
    values = (world.ninja if name == "ninjas" else world.movers)[field]
    least, most = values.min(), values.max()
    return fault._replace(got=str(least) if least == most else f"{least} to {most}")


def _floats_check(record: np.dtype) -> Any:
    """Return a kernel: whether all floating-point numbers of such a record are finite and not huge."""
    names = tuple(name for name in record.names or () if record[name].kind == "f")

    @kernel
    def has_floats(values):
        fine = True
        for name in each(names):
            fine = fine and abs(values[name]) <= FARTHEST
        return fine

    return has_floats


_ninja_has_floats, _mover_has_floats = _floats_check(NINJA_RECORD), _floats_check(MOVER)


@kernel
def _has_flags(ninja):
    """Return whether all flags of a ninja are 0 or 1."""
    fine = True
    for name in each(_FLAGS):
        fine = fine and 0 <= ninja[name] <= 1
    return fine


@kernel
def find_fault(levels, ninjas, states, movers, trail):
    """Return the number of the first fault of a world, of (1,) ninjas and the parts of ``World``; -1 without one."""
    ninja = ninjas[0]
    if not 0 <= ninja["frame"] <= _LONGEST:
        return _FRAME
    if not 0 <= ninja["next_order"] <= _LONGEST:
        return _ORDER
    if not 0 <= ninja["state"] <= DISABLED:
        return _STATE
    if not (_ninja_has_floats(ninja) and _has_flags(ninja) and -1 <= ninja["facing"] <= 1):
        return _NINJA
    for row in range(len(trail)):
        if not (abs(trail[row, 0]) <= FARTHEST and abs(trail[row, 1]) <= FARTHEST):
            return _TRAIL
    fault = _mover_fault(levels, movers, ninja["level"])
    return fault if fault != _NONE else _state_fault(levels, states, ninja["level"])


@kernel
def _mover_fault(levels, movers, level):
    """Return the number of the first fault of the movers of one world, -1 if there is none."""
    header = levels.header[level]
    for number in range(header["mover_count"]):
        mover = movers[number]
        if not _mover_has_floats(mover):
            return _MOVER
        if not NO_CELL <= mover["cell"] < CELLS:
            return _CELL
    for number in range(header["mover_count"]):
        slot = levels.mover_slots[header["first_mover"] + number]
        if levels.entities[header["first_entity"] + slot]["type"] == LASER_TURRET:
            mover = movers[number]
            if not 0 <= motion_segment(levels, level, mover) < levels.segments.shape[0] or turns_for_ever(mover):
                return _LASER
    return _NONE


@kernel
def _state_fault(levels, states, level):
    """Return the number of the first fault of the entities' states in one world, -1 if there is none."""
    header = levels.header[level]
    for slot in range(header["entity_count"]):
        kind, state = np.int64(levels.entities[header["first_entity"] + slot]["type"]), states[slot]
        is_busy = _SHOOTING_DRONES >> kind & 1 != 0 and state & PHASE != PATROL
        if not is_busy and state > _LARGEST_STATES[kind]:
            return _ENTITY
    return _NONE
