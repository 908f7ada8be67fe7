"""What entities look like: the one table that the grey observations and the colour pictures are made from.

A :class:`Look` says how a type appears in its states, facing right, and how it turns. An :class:`Appearance` is one
of those pictures: equal appearances are drawn alike. Doors are looked up under their own type where they lie, their
switches under the types of the switch records; everything has its size from physics 02, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nclone_env import constants as c
from nclone_env.render import figures
from nclone_env.render.arrays import FACES_LEFT, ROCKET_FLIES
from nclone_env.render.figures import Layers
from nclone_env.render.postures import POSTURES, ninja_layers
from nclone_env.render.shapes import turned

DOOR_STANDS, DOOR_LIES = 0, 2  # an orientation of each, and the turn
_GAUSS_WARNS, _GAUSS_RECOVERS = 182, 197  # first states of a gauss turret's phases after aiming


def _state(orientation: int, state: int) -> int:
    return state


def _only(orientation: int, state: int) -> int:
    return 0


def _phase_of_shooting(orientation: int, state: int) -> int:
    """Patrolling and recovering drones look alike; then warning and firing (bits 2 and 3 of the state)."""
    return (0, 1, 2, 0)[state >> 2 & 3]


def _phase_of_rocket(orientation: int, state: int) -> int:
    return int(state >= 1) + int(state >= ROCKET_FLIES)


def _phase_of_gauss(orientation: int, state: int) -> int:
    return int(state >= 1) + int(state >= _GAUSS_WARNS) - 2 * int(state >= _GAUSS_RECOVERS)


def _two_bits(orientation: int, state: int) -> int:
    return state & 3


def _is_set(orientation: int, state: int) -> int:
    return int(state != 0)


def _is_late(orientation: int, state: int) -> int:
    return int(state & 3 >= 2)


def _is_chasing(orientation: int, state: int) -> int:
    return int(state & 4 != 0)


def _posture(orientation: int, state: int) -> int:
    return state + len(POSTURES) * (orientation == FACES_LEFT)


def _orientation(orientation: int, state: int) -> int:
    return orientation


def _heading(orientation: int, state: int) -> int:
    """Turn of a drone: quarters, in the lowest bits of its state."""
    return 2 * (state & 3)


def _charge(orientation: int, state: int) -> int:
    """Turn of a thwump, whose odd orientations mean up (physics 02, section 6.17)."""
    return orientation if orientation in (0, 2, 4) else 6


def _across(orientation: int, state: int) -> int:
    """Turn of a door: upright where the orientation is right or left (physics 02, section 6.5)."""
    return DOOR_STANDS if orientation in (0, 4) else DOOR_LIES


class Look(NamedTuple):
    """How a type looks.

    Attributes:
        variants: layers, facing right.
        variant: orientation and state to a number of ``variants``; a number beyond them is not drawn.
        turn: orientation and state to eighths of a turn, clockwise.
    """

    variants: Sequence[Layers]
    variant: Callable[[int, int], int] = _state
    turn: Callable[[int, int], int] = _only


class Appearance(NamedTuple):
    """One picture of an entity or of the ninja."""

    type: int
    variant: int
    turn: int


def appearance(entity_type: int, orientation: int, state: int) -> Appearance | None:
    """Return how something looks, None if it is not drawn.

    Args:
        entity_type: 0..28; of a door its own type, of the switch of a locked or trap door the switch's type.
        orientation: that of the record, 0..7; of the ninja ``FACES_RIGHT`` or ``FACES_LEFT``.
        state: the state byte of the entity, of the door's entity, or the state of the ninja.
    """
    look = LOOKS.get(entity_type)
    if look is None:
        return None
    number = look.variant(orientation, state)
    if number >= len(look.variants):
        return None
    return Appearance(entity_type, number, look.turn(orientation, state))


@lru_cache(maxsize=512)
def layers_of(shown: Appearance) -> Layers:
    """Return the layers of an appearance, lowest first, relative to its centre."""
    return turned(LOOKS[shown.type].variants[shown.variant], shown.turn)


def first_state(entity_type: int, orientation: int) -> int:
    """Return the state byte at the start of an episode."""
    if entity_type in _DRONES:
        return orientation >> 1
    return int(entity_type == c.TOGGLE_MINE)


_DRONES = (c.CHAINGUN_DRONE, c.LASER_DRONE, c.ZAP_DRONE, c.CHASER_DRONE, c.MINI_DRONE)
_NINJA = tuple(ninja_layers(state, facing) for facing in (1, -1) for state in sorted(POSTURES))

LOOKS: Mapping[int, Look] = {
    c.NINJA: Look(_NINJA, _posture),
    c.MINE: Look(figures.MINE),
    c.GOLD: Look(figures.GOLD),
    c.EXIT: Look(figures.EXIT),
    c.EXIT_SWITCH: Look(figures.EXIT_SWITCH),
    c.REGULAR_DOOR: Look(figures.REGULAR_DOOR, _is_set, _across),
    c.LOCKED_DOOR: Look(figures.LOCKED_DOOR, _is_set, _across),
    c.LOCKED_DOOR_SWITCH: Look(figures.LOCKED_DOOR_SWITCH),
    c.TRAP_DOOR: Look(figures.TRAP_DOOR, _is_set, _across),
    c.TRAP_DOOR_SWITCH: Look(figures.TRAP_DOOR_SWITCH),
    c.LAUNCH_PAD: Look(figures.LAUNCH_PAD, _only, _orientation),
    c.ONE_WAY: Look(figures.ONE_WAY, _only, _orientation),
    c.CHAINGUN_DRONE: Look(figures.CHAINGUN_DRONE, _phase_of_shooting, _heading),
    c.LASER_DRONE: Look(figures.LASER_DRONE, _phase_of_shooting, _heading),
    c.ZAP_DRONE: Look(figures.ZAP_DRONE, _only, _heading),
    c.CHASER_DRONE: Look(figures.CHASER_DRONE, _is_chasing, _heading),
    c.FLOOR_GUARD: Look(figures.FLOOR_GUARD),
    c.BOUNCE_BLOCK: Look(figures.BOUNCE_BLOCK, _only),
    c.ROCKET_TURRET: Look(figures.ROCKET_TURRET, _phase_of_rocket),
    c.GAUSS_TURRET: Look(figures.GAUSS_TURRET, _phase_of_gauss),
    c.THWUMP: Look(figures.THWUMP, _state, _charge),
    c.TOGGLE_MINE: Look(figures.MINE),
    c.EVIL_NINJA: Look(figures.EVIL_NINJA, _is_late),
    c.LASER_TURRET: Look(figures.LASER_TURRET, _only, _orientation),
    c.BOOST_PAD: Look(figures.BOOST_PAD, _is_set),
    c.DEATH_BALL: Look(figures.DEATH_BALL, _only),
    c.MINI_DRONE: Look(figures.MINI_DRONE, _only, _heading),
    c.SHOVE_THWUMP: Look(figures.SHOVE_THWUMP, _two_bits),
}
"""Entity type to look. A type that is missing (27 does nothing) is not drawn."""
