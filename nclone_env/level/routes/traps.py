"""Trap doors that must stay open: from where there is no way to the next landmarks once they are closed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nclone_env.game import TRAP_DOOR
from nclone_env.jit import kernel
from nclone_env.level.routes.lattice import SPACING

_MOST_TRAPS = 64
"""Doors that are told apart: the bits of a word."""


class TrapGuide(NamedTuple):
    """The trap doors of a level for kernels; no slots if they do not count.

    Attributes:
        slots: (S,) int16; the entities that close doors.
        doors: (S,) uint64; the door that each closes, a bit.
        needed: (K + 1, 101, 177) uint64; the doors that must be open from each node on, by the landmarks taken; without
            slots (0, 1, 1).
    """

    slots: np.ndarray
    doors: np.ndarray
    needed: np.ndarray


def no_traps() -> TrapGuide:
    """Return the guide of searches for which trap doors are open."""
    return TrapGuide(np.zeros(0, np.int16), np.zeros(0, np.uint64), np.zeros((0, 1, 1), np.uint64))


def trap_doors(doors: np.ndarray) -> list[list[np.void]]:
    """Return the trap doors of a level, ``DOOR``; those in the same place, closed by several switches, are one."""
    places: dict[tuple[float, float, bool], list[np.void]] = {}
    for door in doors[doors["type"] == TRAP_DOOR]:
        places.setdefault((float(door["x"]), float(door["y"]), bool(door["vertical"])), []).append(door)
    return list(places.values())[:_MOST_TRAPS]


def trap_guide(doors: Sequence[Sequence[np.void]], needed: np.ndarray) -> TrapGuide:
    """Return the guide of :func:`trap_doors`, without those that are needed nowhere."""
    pairs = [
        (int(door["owner"]), np.uint64(1 << number))
        for number, same in enumerate(doors)
        for door in same
        if (needed & np.uint64(1 << number)).any()
    ]
    slots, bits = ([pair[place] for pair in pairs] for place in (0, 1))
    return TrapGuide(np.array(slots, np.int16), np.array(bits, np.uint64), needed)


@kernel
def is_trapped(guide, worlds, index, step):
    """Return whether a trap door is closed without which there is no way on from where the ninja is.

    ``guide`` is a ``TrapGuide``, ``step`` the landmarks taken.
    """
    closed, first = np.uint64(0), worlds.rooms[index]["entities"]["first"]
    for place in range(guide.slots.shape[0]):
        if worlds.entity_states[first + guide.slots[place]] != 0:
            closed |= guide.doors[place]
    if closed == 0:
        return False
    ninja, needed = worlds.ninjas[index], guide.needed
    i, j = int((ninja["x"] + 0.5 * SPACING) / SPACING), int((ninja["y"] + 0.5 * SPACING) / SPACING)
    inside = j >= 0 and j < needed.shape[1] and i >= 0 and i < needed.shape[2]
    return inside and needed[step, j, i] & closed != 0
