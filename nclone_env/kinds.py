"""Every kind of entity: one row each, from which file formats, simulator, observations and pictures derive their facts.

To add a kind, add its name to the list of numbers and its row to :data:`KINDS`; CONTRIBUTING.md names the other files.
Numbers and rules are those of physics 02, section 3, and of physics 03; radii are those of physics 02, section 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nclone_env.kind import MOVER, STATE, TRAIL, UNLIMITED, Kind

# The number of each kind, the type byte of a record in every file format.
(
    NINJA,
    MINE,
    GOLD,
    EXIT,
    EXIT_SWITCH,
    REGULAR_DOOR,
    LOCKED_DOOR,
    LOCKED_DOOR_SWITCH,
    TRAP_DOOR,
    TRAP_DOOR_SWITCH,
    LAUNCH_PAD,
    ONE_WAY,
    CHAINGUN_DRONE,
    LASER_DRONE,
    ZAP_DRONE,
    CHASER_DRONE,
    FLOOR_GUARD,
    BOUNCE_BLOCK,
    ROCKET_TURRET,
    GAUSS_TURRET,
    THWUMP,
    TOGGLE_MINE,
    EVIL_NINJA,
    LASER_TURRET,
    BOOST_PAD,
    DEATH_BALL,
    MINI_DRONE,
    UNKNOWN_27,
    SHOVE_THWUMP,
) = range(29)

_MINE_STATES = {"armed": 0, "safe": 1, "stepped on": 2}
_MINE_RADII = (4.0, 3.5, 4.5)
_SWITCH_STATES = {"present": 0, "taken": 1}
_HEADINGS = {"right": 0, "down": 1, "left": 2, "up": 3}
_DRONE = Kind(
    number=-1,
    name="",
    module="drone",
    pack="xyom",
    orientations=8,
    modes=4,
    has_mover=True,
    acts=True,
    radii=(7.5,),
    states=_HEADINGS,
    has_heading=True,
    clock=(STATE, MOVER),
)
_SHOOTING_DRONE = replace(
    _DRONE,
    module="shooting_drone",
    starts_in_cell=False,
    shoots=True,
    states={"patrol": 0, "warning": 4, "firing": 8, "recovering": 12},
    ninja_changes=(STATE, MOVER),
)

KINDS: tuple[Kind, ...] = (
    Kind(number=NINJA, name="ninja", most=UNLIMITED, has_entity=False),
    Kind(
        number=MINE,
        name="mine",
        most=UNLIMITED,
        module="mine",
        deadly=True,
        radii=_MINE_RADII,
        states=_MINE_STATES,
        ninja_changes=(STATE,),
    ),
    Kind(
        number=GOLD,
        name="gold",
        most=UNLIMITED,
        module="gold",
        collectable=True,
        vanishes=True,
        radii=(6.0,),
        states=_SWITCH_STATES,
        ninja_changes=(STATE,),
    ),
    Kind(
        number=EXIT,
        name="exit",
        most=64,
        module="exit",
        pack="xyXY",
        switch=EXIT_SWITCH,
        has_mover=True,
        starts_in_cell=False,
        radii=(12.0,),
        states={"closed": 0, "open": 1},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=EXIT_SWITCH,
        name="exit_switch",
        most=64,
        pack=None,
        module="exit",
        collectable=True,
        vanishes=True,
        radii=(6.0,),
        states=_SWITCH_STATES,
        ninja_changes=(STATE,),
    ),
    Kind(
        number=REGULAR_DOOR,
        name="regular_door",
        module="door",
        pack="xyo",
        orientations=8,
        is_door=True,
        acts=True,
        radii=(12.0,),
        states={"closed": 0, "just opened": 1, "last open": 6},
        ninja_changes=(STATE,),
    ),
    Kind(
        number=LOCKED_DOOR,
        name="locked_door",
        module="door",
        pack="xyoXY",
        orientations=8,
        switch=LOCKED_DOOR_SWITCH,
        is_door=True,
        vanishes=True,
        radii=(12.0,),
        states={"closed": 0, "open": 1},
        ninja_changes=(STATE,),
    ),
    Kind(
        number=LOCKED_DOOR_SWITCH,
        name="locked_door_switch",
        pack=None,
        module="door",
        has_entity=False,
        collectable=True,
        radii=(5.0,),
    ),
    Kind(
        number=TRAP_DOOR,
        name="trap_door",
        module="door",
        pack="xyoXY",
        orientations=8,
        switch=TRAP_DOOR_SWITCH,
        is_door=True,
        vanishes=True,
        radii=(12.0,),
        states={"open": 0, "closed": 1},
        ninja_changes=(STATE,),
    ),
    Kind(
        number=TRAP_DOOR_SWITCH,
        name="trap_door_switch",
        pack=None,
        module="door",
        has_entity=False,
        collectable=True,
        radii=(5.0,),
    ),
    Kind(number=LAUNCH_PAD, name="launch_pad", module="launch_pad", pack="xyo", orientations=8, radii=(6.0,)),
    Kind(
        number=ONE_WAY,
        name="one_way",
        module="one_way",
        pack="xyo",
        orientations=8,
        solid=True,
        radii=(12.0,),
    ),
    replace(_SHOOTING_DRONE, number=CHAINGUN_DRONE, name="chaingun_drone"),
    replace(_SHOOTING_DRONE, number=LASER_DRONE, name="laser_drone"),
    replace(_DRONE, number=ZAP_DRONE, name="zap_drone", deadly=True),
    replace(
        _DRONE,
        number=CHASER_DRONE,
        name="chaser_drone",
        module="chaser_drone",
        deadly=True,
        states=_HEADINGS | {"chasing": 4},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=FLOOR_GUARD,
        name="floor_guard",
        module="floor_guard",
        has_mover=True,
        acts=True,
        deadly=True,
        radii=(6.0,),
        states={"idle": 0, "runs right": 1, "runs left": 2},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=BOUNCE_BLOCK,
        name="bounce_block",
        module="bounce_block",
        has_mover=True,
        acts=True,
        solid=True,
        radii=(9.0,),
        ninja_changes=(MOVER,),
    ),
    Kind(
        number=ROCKET_TURRET,
        name="rocket_turret",
        module="rocket_turret",
        has_mover=True,
        starts_in_cell=False,
        acts=True,
        deadly=True,
        shoots=True,
        states={"idle": 0, "warning": 1, "flying": 16},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=GAUSS_TURRET,
        name="gauss_turret",
        module="gauss_turret",
        has_mover=True,
        starts_in_cell=False,
        acts=True,
        shoots=True,
        states={"idle": 0, "aiming": 1, "warning": 182, "recovering": 197},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=THWUMP,
        name="thwump",
        module="thwump",
        pack="xyo",
        has_mover=True,
        acts=True,
        solid=True,
        deadly=True,
        radii=(9.0,),
        states={"idle": 0, "charging": 1, "returning": 2},
        ninja_changes=(STATE, MOVER),
    ),
    Kind(
        number=TOGGLE_MINE,
        name="toggle_mine",
        most=UNLIMITED,
        module="mine",
        acts=True,
        deadly=True,
        radii=_MINE_RADII,
        states=_MINE_STATES,
        initial=_MINE_STATES["safe"],
        ninja_changes=(STATE,),
    ),
    Kind(
        number=EVIL_NINJA,
        name="evil_ninja",
        most=1024,
        module="evil_ninja",
        has_mover=True,
        acts=True,
        deadly=True,
        radii=(10.0, 10.0, 10.0, 6.0),
        states={"waiting": 0, "touched": 1, "charging": 2, "active": 3},
        ninja_changes=(STATE, MOVER, TRAIL),
    ),
    Kind(
        number=LASER_TURRET,
        name="laser_turret",
        module="laser",
        pack="xyom",
        orientations=8,
        has_mover=True,
        starts_in_cell=False,
        acts=True,
        shoots=True,
        states={"spinner": 0, "clockwise": 1, "counterclockwise": 2},
        clock=(STATE, MOVER),
    ),
    Kind(
        number=BOOST_PAD,
        name="boost_pad",
        module="boost_pad",
        acts=True,
        radii=(6.0,),
        states={"idle": 0, "touched": 1},
        ninja_changes=(STATE,),
    ),
    Kind(
        number=DEATH_BALL,
        name="death_ball",
        most=1024,
        module="death_ball",
        has_mover=True,
        acts=True,
        deadly=True,
        radii=(5.0,),
        ninja_changes=(MOVER,),
    ),
    replace(_DRONE, number=MINI_DRONE, name="mini_drone", deadly=True, radii=(4.0,)),
    Kind(number=UNKNOWN_27, name="unknown_27", most=UNLIMITED, has_entity=False),
    Kind(
        number=SHOVE_THWUMP,
        name="shove_thwump",
        module="shove_thwump",
        has_mover=True,
        acts=True,
        solid=True,
        deadly=True,
        radii=(12.0,),
        states={"idle": 0, "pressed": 1, "launching": 2, "returning": 3},
        ninja_changes=(STATE, MOVER),
    ),
)
"""The kinds by number."""


def kind_name(number: int) -> str:
    """Return the name of a kind by its number, ``type_N`` if it has none."""
    return KINDS[number].name if number < len(KINDS) else f"type_{number}"


def initial_state(number: int, orientation: int) -> int:
    """Return the state byte of an entity at the start of an episode, by its kind and the orientation of its record."""
    if number >= len(KINDS):
        return 0
    kind = KINDS[number]
    return kind.initial + (orientation >> 1 if kind.has_heading else 0)


def bits(kinds: Iterable[Kind]) -> int:
    """Return a number with one bit set for each kind, for kernels: ``BITS >> number & 1``."""
    return sum(1 << kind.number for kind in kinds)


SWITCH_OF: Mapping[int, int] = {kind.number: kind.switch for kind in KINDS if kind.switch is not None}
"""Kind of the switch of each kind that has one."""
DOOR_SWITCHES: Mapping[int, int] = {door: SWITCH_OF[door] for door in SWITCH_OF if KINDS[door].is_door}
"""Kind of the switch of each kind of door that has one."""
