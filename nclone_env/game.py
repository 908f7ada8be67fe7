"""The game in numbers: the world and the ninja, inputs and actions, and every kind of entity.

Each number has the section of the physics specification it comes from: physics 01 covers the world and the ninja,
physics 02 and 03 the entities. Decimal literals are exact to the printed digit: several are deliberately one unit in
the last place below the obvious fraction (physics 01, section 1).

File formats, simulator, observations and pictures derive their facts about entities from one table. To add a kind, add
its name to the list of numbers and its row to :data:`KINDS`; CONTRIBUTING.md names the other files. Numbers and rules
are those of physics 02, section 3, and of physics 03; radii are those of physics 02, section 11.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import IntEnum

# World (physics 01, section 2.1), pixels and cells.
TILE_COLUMNS, TILE_ROWS = 42, 23
COLUMNS, ROWS = 44, 25  # with the ring of full blocks around the playable level
CELLS = COLUMNS * ROWS
CELL_SIZE = 24.0
HALF_CELL = 12.0
WORLD_WIDTH, WORLD_HEIGHT = 1056, 600
MAP_UNIT = 6.0  # pixels per unit of a coordinate byte
MAX_TILE = 37

# Ninja (physics 01, section 1), pixels and frames.
FALL_GRAVITY = 0.06666666666666665
JUMP_GRAVITY = 0.01111111111111111
GROUND_ACCELERATION = 0.06666666666666665
AIR_ACCELERATION = 0.04444444444444444
REGULAR_DRAG = 0.9933221725495059  # 0.99 ** (2 / 3)
SLOW_DRAG = 0.8617738760127536  # 0.80 ** (2 / 3)
GROUND_FRICTION = 0.9459290248857720  # 0.92 ** (2 / 3)
SLOW_GROUND_FRICTION = 0.8617738760127536  # 0.80 ** (2 / 3)
WALL_FRICTION = 0.9113380468927672  # 0.87 ** (2 / 3)
MAX_HORIZONTAL_SPEED = 3.333333333333333
MAX_JUMP_DURATION = 45
MAX_IMPACT = 6.0
RADIUS = 10.0
SWEEP_RADIUS = RADIUS * 0.5
WALL_REACH = RADIUS + 0.1
ARC_RADIUS = 24.0

FRAMES_PER_SECOND = 60

# Ninja states (physics 01, section 5).
IMMOBILE, RUNNING, SLIDING, JUMPING, FALLING, WALL_SLIDING, DEAD, DYING, CELEBRATING, DISABLED = range(10)

EVIL_DELAY = 120  # frames from one evil ninja to the next (physics 03, section 12)

# Unit vectors of the eight orientations, clockwise from right (physics 02, section 4.6).
DIAGONAL = 0.7071067811865476
FACING_X = (1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL, 0.0, DIAGONAL)
FACING_Y = (0.0, DIAGONAL, 1.0, DIAGONAL, 0.0, -DIAGONAL, -1.0, -DIAGONAL)

# Input byte (physics 01, section 14.4).
INPUT_JUMP, INPUT_RIGHT, INPUT_LEFT, INPUT_SUICIDE = 1, 2, 4, 8


class Action(IntEnum):
    """The actions of the ``discrete`` space: 3 * jump + direction."""

    NONE = 0
    LEFT = 1
    RIGHT = 2
    JUMP = 3
    JUMP_LEFT = 4
    JUMP_RIGHT = 5


NUM_ACTIONS = len(Action)

DIRECTION_INPUTS = (0, INPUT_LEFT, INPUT_RIGHT)
"""Input byte of each direction: none, left, right."""
JUMP_INPUTS = (0, INPUT_JUMP)
"""Input byte without and with jump."""
NUM_DIRECTIONS = len(DIRECTION_INPUTS)
KEYS = {
    **dict.fromkeys(("left", "a"), INPUT_LEFT),
    **dict.fromkeys(("right", "d"), INPUT_RIGHT),
    **dict.fromkeys(("space", "z", "up", "w"), INPUT_JUMP),
}
"""Input bit of each key that moves the ninja, by its name in pygame."""

INPUT_OF_ACTION = tuple(jump | direction for jump in JUMP_INPUTS for direction in DIRECTION_INPUTS)
"""Input byte of the simulator for each :class:`Action`."""

ACTION_OF_INPUT = tuple(
    INPUT_OF_ACTION.index(code & ~INPUT_RIGHT if code & INPUT_LEFT else code)
    for code in range(1 + (INPUT_JUMP | INPUT_RIGHT | INPUT_LEFT))
)
"""Action of each input byte 0..7; left wins over right."""

# The number of each kind, the type byte of a record in every file format.
# fmt: off
(
    NINJA, MINE, GOLD, EXIT, EXIT_SWITCH, REGULAR_DOOR, LOCKED_DOOR, LOCKED_DOOR_SWITCH, TRAP_DOOR, TRAP_DOOR_SWITCH,
    LAUNCH_PAD, ONE_WAY, CHAINGUN_DRONE, LASER_DRONE, ZAP_DRONE, CHASER_DRONE, FLOOR_GUARD, BOUNCE_BLOCK, ROCKET_TURRET,
    GAUSS_TURRET, THWUMP, TOGGLE_MINE, EVIL_NINJA, LASER_TURRET, BOOST_PAD, DEATH_BALL, MINI_DRONE, UNKNOWN_27,
    SHOVE_THWUMP,
) = range(29)
# fmt: on

STATE, MOVER, TRAIL = "state", "mover", "trail"
"""The parts of a world that hold an entity: its state byte, its mover record, and the path of the ninja."""
UNLIMITED = 32767
"""The most records of a level, because indices of entities are 16-bit."""


@dataclass(frozen=True)
class Kind:
    """The facts of one kind of entity."""

    number: int
    """Type byte of a record."""
    name: str
    """Name in level files, messages and documents."""
    _: KW_ONLY
    pack: str | None = None
    """Bytes of a record in the game's text packs, in order: x, y, o(rientation), m(ode), X and Y of the switch. None if
    packs have no such record. The records of all other formats have x, y, orientation and mode for every kind."""
    orientations: int = 256
    """Number of orientations; greater ones, which some files have, count modulo this number."""
    modes: int = 256
    """Number of modes; likewise."""
    switch: int | None = None
    """Kind of the switch that belongs to it and has a record of its own."""
    is_door: bool = False
    """Whether a segment and lattice edges come and go with its state."""
    has_entity: bool = True
    """Whether worlds hold its state; the switch of a door is one entity with its door, under the kind of the door."""
    has_mover: bool = False
    """Whether it changes its position or aims, so that a world keeps a mover record of it."""
    starts_in_cell: bool = True
    """Whether its mover is registered in a cell, and can be touched, at the start of an episode."""
    acts: bool = False
    """Whether it moves or thinks in every frame."""
    solid: bool = False
    """Whether it pushes the ninja out."""
    deadly: bool = False
    """Whether touching it can kill."""
    shoots: bool = False
    """Whether it kills from a distance."""
    collectable: bool = False
    """Whether touching it once takes it, or works its exit or door."""
    vanishes: bool = False
    """Whether it is no longer active once its state byte is not 0 (physics 02, section 4.1)."""
    most: int = 4096
    """Most records of it in a level, which bounds the time of a frame and the memory of a world: far more than the
    game's editor allows (physics 02, section 10.9) and than any known level has; ``UNLIMITED`` for those that cost
    little."""
    radii: tuple[float, ...] = (0.0,)
    """Radius or half side, pixels: one for all states, or one for each state byte."""
    states: Mapping[str, int] = field(default_factory=dict)
    """Values of the state byte by name; of kinds that pack several fields into the byte, bits by name."""
    initial: int = 0
    """State byte at the start of an episode, without the heading."""
    has_heading: bool = False
    """Whether bits 0 and 1 of the state are a heading, a quarter turn each, at first that of its orientation."""
    ninja_changes: tuple[str, ...] = ()
    """Parts that the ninja can change, by touching the entity or by being where it is."""
    clock: tuple[str, ...] = ()
    """Parts that change as frames pass even if the ninja never comes near."""


_MINE_STATES = {"armed": 0, "safe": 1, "stepped on": 2}
_MINE_RADII = (4.0, 3.5, 4.5)
_SWITCH_STATES = {"present": 0, "taken": 1}
_HEADINGS = {"right": 0, "down": 1, "left": 2, "up": 3}
# fmt: off
_DRONE = Kind(-1, "", pack="xyom", orientations=8, modes=4, has_mover=True, acts=True, radii=(7.5,),
    states=_HEADINGS, has_heading=True, clock=(STATE, MOVER))
_SHOOTING_DRONE = replace(_DRONE, starts_in_cell=False, shoots=True,
    states={"patrol": 0, "warning": 4, "firing": 8, "recovering": 12}, ninja_changes=(STATE, MOVER))

KINDS: tuple[Kind, ...] = (
    Kind(NINJA, "ninja", pack="xy", most=UNLIMITED, has_entity=False),
    Kind(MINE, "mine", pack="xy", most=UNLIMITED, deadly=True, radii=_MINE_RADII, states=_MINE_STATES,
        ninja_changes=(STATE,)),
    Kind(GOLD, "gold", pack="xy", most=UNLIMITED, collectable=True, vanishes=True, radii=(6.0,), states=_SWITCH_STATES,
        ninja_changes=(STATE,)),
    Kind(EXIT, "exit", pack="xyXY", switch=EXIT_SWITCH, most=64, has_mover=True, starts_in_cell=False, radii=(12.0,),
        states={"closed": 0, "open": 1}, ninja_changes=(STATE, MOVER)),
    Kind(EXIT_SWITCH, "exit_switch", most=64, collectable=True, vanishes=True, radii=(6.0,),
        states=_SWITCH_STATES, ninja_changes=(STATE,)),
    Kind(REGULAR_DOOR, "regular_door", pack="xyo", orientations=8, is_door=True, acts=True, radii=(12.0,),
        states={"closed": 0, "just opened": 1, "last open": 6}, ninja_changes=(STATE,)),
    Kind(LOCKED_DOOR, "locked_door", pack="xyoXY", orientations=8, switch=LOCKED_DOOR_SWITCH, is_door=True,
        vanishes=True, radii=(12.0,), states={"closed": 0, "open": 1}, ninja_changes=(STATE,)),
    Kind(LOCKED_DOOR_SWITCH, "locked_door_switch", has_entity=False, collectable=True, radii=(5.0,)),
    Kind(TRAP_DOOR, "trap_door", pack="xyoXY", orientations=8, switch=TRAP_DOOR_SWITCH, is_door=True, vanishes=True,
        radii=(12.0,), states={"open": 0, "closed": 1}, ninja_changes=(STATE,)),
    Kind(TRAP_DOOR_SWITCH, "trap_door_switch", has_entity=False, collectable=True, radii=(5.0,)),
    Kind(LAUNCH_PAD, "launch_pad", pack="xyo", orientations=8, radii=(6.0,)),
    Kind(ONE_WAY, "one_way", pack="xyo", orientations=8, solid=True, radii=(12.0,)),
    replace(_SHOOTING_DRONE, number=CHAINGUN_DRONE, name="chaingun_drone"),
    replace(_SHOOTING_DRONE, number=LASER_DRONE, name="laser_drone"),
    replace(_DRONE, number=ZAP_DRONE, name="zap_drone", deadly=True),
    replace(_DRONE, number=CHASER_DRONE, name="chaser_drone", deadly=True, states=_HEADINGS | {"chasing": 4},
        ninja_changes=(STATE, MOVER)),
    Kind(FLOOR_GUARD, "floor_guard", pack="xy", has_mover=True, acts=True, deadly=True, radii=(6.0,),
        states={"idle": 0, "runs right": 1, "runs left": 2}, ninja_changes=(STATE, MOVER)),
    Kind(BOUNCE_BLOCK, "bounce_block", pack="xy", has_mover=True, acts=True, solid=True, radii=(9.0,),
        ninja_changes=(MOVER,)),
    Kind(ROCKET_TURRET, "rocket_turret", pack="xy", has_mover=True, starts_in_cell=False, acts=True, deadly=True,
        shoots=True, states={"idle": 0, "warning": 1, "flying": 16}, ninja_changes=(STATE, MOVER)),
    Kind(GAUSS_TURRET, "gauss_turret", pack="xy", has_mover=True, starts_in_cell=False, acts=True, shoots=True,
        states={"idle": 0, "aiming": 1, "warning": 182, "recovering": 197}, ninja_changes=(STATE, MOVER)),
    Kind(THWUMP, "thwump", pack="xyo", has_mover=True, acts=True, solid=True, deadly=True, radii=(9.0,),
        states={"idle": 0, "charging": 1, "returning": 2}, ninja_changes=(STATE, MOVER)),
    Kind(TOGGLE_MINE, "toggle_mine", pack="xy", most=UNLIMITED, acts=True, deadly=True, radii=_MINE_RADII,
        states=_MINE_STATES, initial=_MINE_STATES["safe"], ninja_changes=(STATE,)),
    Kind(EVIL_NINJA, "evil_ninja", pack="xy", most=1024, has_mover=True, acts=True, deadly=True,
        radii=(10.0, 10.0, 10.0, 6.0), states={"waiting": 0, "touched": 1, "charging": 2, "active": 3},
        ninja_changes=(STATE, MOVER, TRAIL)),
    Kind(LASER_TURRET, "laser_turret", pack="xyom", orientations=8, has_mover=True, starts_in_cell=False, acts=True,
        shoots=True, states={"spinner": 0, "clockwise": 1, "counterclockwise": 2}, clock=(STATE, MOVER)),
    Kind(BOOST_PAD, "boost_pad", pack="xy", acts=True, radii=(6.0,), states={"idle": 0, "touched": 1},
        ninja_changes=(STATE,)),
    Kind(DEATH_BALL, "death_ball", pack="xy", most=1024, has_mover=True, acts=True, deadly=True, radii=(5.0,),
        ninja_changes=(MOVER,)),
    replace(_DRONE, number=MINI_DRONE, name="mini_drone", deadly=True, radii=(4.0,)),
    Kind(UNKNOWN_27, "unknown_27", pack="xy", most=UNLIMITED, has_entity=False),
    Kind(SHOVE_THWUMP, "shove_thwump", pack="xy", has_mover=True, acts=True, solid=True, deadly=True, radii=(12.0,),
        states={"idle": 0, "pressed": 1, "launching": 2, "returning": 3}, ninja_changes=(STATE, MOVER)),
)
# fmt: on
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
