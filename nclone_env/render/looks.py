"""The look of every kind of entity: the one table behind the grey observations and the colour pictures.

A :class:`Look` gives the figures of a kind in its states, facing right, and its turn. An :class:`Appearance` is one of
those pictures: equal appearances are drawn alike. A door is looked up under its own kind, its switch under the kind of
the switch; sizes are those of physics 02, section 11.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nclone_env import game
from nclone_env.game import KINDS
from nclone_env.render.arrays import FACES_LEFT
from nclone_env.render.shapes import Layer, Layers, box, circle, limb, polygon, square, star, turned

DOOR_UPRIGHT, DOOR_LIES = 0, 2  # an orientation of each, and the turn
_DRONE, _ROCKETS, _GAUSS, _EVIL = (
    KINDS[kind].states for kind in (game.LASER_DRONE, game.ROCKET_TURRET, game.GAUSS_TURRET, game.EVIL_NINJA)
)
_CHASING, _HEADING, _SHOOTING = KINDS[game.CHASER_DRONE].states["chasing"], 3, _DRONE["recovering"]
_SHOVING = KINDS[game.SHOVE_THWUMP].states["returning"]
"""Bits of the state: whether a drone chases, its heading and its phase; the phase of a shove thwump."""


def _state(orientation: int, state: int) -> int:
    return state


def _only(orientation: int, state: int) -> int:
    return 0


def _is_set(orientation: int, state: int) -> int:
    return int(state != 0)


def _orientation(orientation: int, state: int) -> int:
    return orientation


def _phase_of_shooting(orientation: int, state: int) -> int:
    """Patrolling and recovering drones look alike; then warning and firing."""
    return {_DRONE["warning"]: 1, _DRONE["firing"]: 2}.get(state & _SHOOTING, 0)


def _phase_of_gauss(orientation: int, state: int) -> int:
    if state >= _GAUSS["recovering"]:
        return 0
    return int(state >= _GAUSS["aiming"]) + int(state >= _GAUSS["warning"])


def _phase_of_rocket(orientation: int, state: int) -> int:
    return int(state >= _ROCKETS["warning"]) + int(state >= _ROCKETS["flying"])


def _heading(orientation: int, state: int) -> int:
    """Turn of a drone, quarters."""
    return 2 * (state & _HEADING)


def _charge(orientation: int, state: int) -> int:
    """Turn of a thwump, whose odd orientations mean up (physics 02, section 6.17)."""
    return orientation if orientation in (0, 2, 4) else 6


def _across(orientation: int, state: int) -> int:
    """Turn of a door: upright where the orientation is right or left (physics 02, section 6.5)."""
    return DOOR_UPRIGHT if orientation in (0, 4) else DOOR_LIES


class Look(NamedTuple):
    """The look of a kind.

    Attributes:
        variants: layers, facing right.
        variant: orientation and state to an index of ``variants``; an index beyond them is not drawn.
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
    """Return the appearance of an entity or of the ninja, None if it is not drawn.

    The switch of a locked or trap door has a type of its own, and a door the state byte of its entity. The orientation
    of the ninja is ``FACES_RIGHT`` or ``FACES_LEFT``.
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


# The figures, facing right, around their centre: variants by state.
_GOLD_HALF, _EXIT_HALF, _SWITCH_HALF = (KINDS[kind].radii[0] for kind in (game.GOLD, game.EXIT, game.EXIT_SWITCH))
_ARMED, _SAFE, _STEPPED = KINDS[game.MINE].radii
_MINE: tuple[Layers, ...] = (  # armed, safe, stepped on
    (Layer("mine", (star(_ARMED + 2.5, _ARMED - 0.5, 8),)), Layer("mine_core", (circle(1.6),))),
    (Layer("safe_mine", (circle(_SAFE + 1.0), circle(_SAFE - 2.0))),),
    (Layer("stepped_mine", (circle(_STEPPED + 0.5), circle(_STEPPED - 2.5))),),
)
_GOLD: tuple[Layers, ...] = ((Layer("gold_edge", (square(_GOLD_HALF - 1),)), Layer("gold", (square(_GOLD_HALF - 2),))),)
_CROSS = (box(-1.5, -9, 1.5, 9), box(-9, -1.5, 9, 1.5), square(1.5))
_EXIT: tuple[Layers, ...] = (  # closed, open
    (Layer("exit", (square(_EXIT_HALF),)), Layer("exit_inside", (square(9),)), Layer("exit", _CROSS)),
    (Layer("open_exit", (square(_EXIT_HALF),)), Layer("open_inside", (square(9),))),
)
_EXIT_SWITCH: tuple[Layers, ...] = (  # present, taken
    (Layer("switch", (square(_SWITCH_HALF),)), Layer("switch_light", (circle(3.2, corners=4),))),
    (Layer("taken_switch", (square(6), square(4.5))),),
)

# Doors are upright: a segment of length 24 through the centre. Only the ends of an open door remain.
_BAR = box(-2.5, -12, 2.5, 12)
_ENDS = (box(-2.5, -12, 2.5, -8), box(-2.5, 8, 2.5, 12))
_REGULAR_DOOR: tuple[Layers, ...] = (  # closed, open
    (Layer("door", (_BAR,)), Layer("open_door", (box(-0.5, -9, 0.5, 9),))),
    (Layer("open_door", _ENDS),),
)
_LOCKED_DOOR: tuple[Layers, ...] = (  # closed, open
    (Layer("locked_door", (_BAR,)), Layer("locked_door", (square(4.5),)), Layer("lock", (square(2.5),))),
    (Layer("locked_door", _ENDS),),
)
_STUDS = tuple(circle(1.6, 0, y, 4) for y in (-7.5, -2.5, 2.5, 7.5))
_TRAP_DOOR: tuple[Layers, ...] = (  # open, closed
    (Layer("trap_door", _ENDS), Layer("trap_door", _STUDS[1:3])),
    (Layer("trap_door", (_BAR,)), Layer("trap_light", _STUDS)),
)
_LOCKED_DOOR_SWITCH: tuple[Layers, ...] = (  # only while untouched
    (Layer("locked_door", (circle(5.5),)), Layer("lock", (circle(3.5), circle(1.5)))),
)
_TRAP_DOOR_SWITCH: tuple[Layers, ...] = (  # only while untouched
    (Layer("trap_door", (polygon((-6, 5), (6, 5), (0, -6)),)), Layer("trap_light", (circle(2.0, 0, 1.2),))),
)

# Pads and platforms face right; the surface that acts lies at the centre.
_LAUNCH_PAD: tuple[Layers, ...] = (
    (
        Layer("launch_pad", (box(-2.5, -7.5, 1, 7.5),)),
        Layer("launch_front", (polygon((1, -6.5), (3.5, -5), (5, -1.5), (5, 1.5), (3.5, 5), (1, 6.5)),)),
    ),
)
_ONE_WAY: tuple[Layers, ...] = (
    (
        Layer("one_way", (box(-4, -12, 0, 12),)),
        Layer("one_way", tuple(polygon((-8, y - 2.5), (-4, y), (-8, y + 2.5)) for y in (-6, 0, 6))),
        Layer("one_way_front", (box(-1.5, -12, 0.5, 12),)),
    ),
)
_BOOST_PAD: tuple[Layers, ...] = (  # alone, touched
    (Layer("boost_pad", (circle(6.5), circle(4.0))), Layer("boost_pad", (circle(2.2, corners=4),))),
    (Layer("boost_light", (circle(6.5), circle(4.0))), Layer("boost_light", (circle(3.2, corners=4),))),
)

# Drones face right; the eye has a paint of its own.
_ZAP_DRONE: tuple[Layers, ...] = (
    (Layer("shell", (circle(7.5),)), Layer("zap_eye", (circle(5.8), circle(4.6))), Layer("zap_eye", (circle(2.4, 3),))),
)
_PRONGS = polygon((-7.5, 0), (-5, -5.5), (2, -7.5), (8, -4), (5, 0), (8, 4), (2, 7.5), (-5, 5.5))
_CHASER_DRONE: tuple[Layers, ...] = (  # on patrol, chasing
    (Layer("shell", (_PRONGS,)), Layer("chaser_eye", (circle(2.2, 1.5),))),
    (Layer("chaser_eye", (_PRONGS,)), Layer("shell", (circle(2.6, 1.5),))),
)
_BARRELS = (box(0, -4.5, 8.5, -1.5), box(0, 1.5, 8.5, 4.5))
_GUN_BODY = (Layer("shell", _BARRELS), Layer("shell", (circle(7, -1.5, corners=8),)))
_CHAINGUN_DRONE: tuple[Layers, ...] = (  # calm, warning, firing
    (*_GUN_BODY, Layer("chaingun_eye", (box(-3, -3.5, 3, -1.5), box(-3, 1.5, 3, 3.5)))),
    (*_GUN_BODY, Layer("chaingun_eye", (box(-5, -4, 5, -1), box(-5, 1, 5, 4)))),
    (*_GUN_BODY, Layer("chaingun_eye", _BARRELS), Layer("chaingun_eye", (circle(4.5, -1.5, corners=8),))),
)
_DIAMOND = Layer("shell", (circle(8, corners=4),))
_LASER_DRONE: tuple[Layers, ...] = (  # calm, warning, firing
    (_DIAMOND, Layer("laser_eye", (circle(2.6, 2.5),)), Layer("laser_eye", (box(4, -0.8, 10, 0.8),))),
    (_DIAMOND, Layer("laser_eye", (circle(4.5), circle(2.5))), Layer("laser_eye", (box(4, -0.8, 10, 0.8),))),
    (_DIAMOND, Layer("laser_eye", (circle(6, corners=4),)), Layer("laser_eye", (box(4, -1.5, 11, 1.5),))),
)
_MINI_DRONE: tuple[Layers, ...] = ((Layer("shell", (circle(4.2),)), Layer("mini_eye", (circle(1.6, 1.6),))),)


def _guard(look: float) -> Layers:
    dome = polygon((-6, 6), (-6, 0), (-4.5, -4), (-1.8, -6), (1.8, -6), (4.5, -4), (6, 0), (6, 6))
    return Layer("guard", (dome,)), Layer(
        "guard_eye", (box(look - 3.5, -2.5, look - 1, 1), box(look + 1, -2.5, look + 3.5, 1))
    )


_FLOOR_GUARD: tuple[Layers, ...] = (_guard(0.0), _guard(2.0), _guard(-2.0))  # waits, runs right, runs left
_DEATH_BALL: tuple[Layers, ...] = (
    (Layer("ball", (star(6.5, 4.5, 12),)), Layer("ball_core", (circle(2.6), circle(1.0)))),
)
_EVIL_NINJA: tuple[Layers, ...] = (  # waits, hunts
    (Layer("evil", (circle(10), circle(8.5))), Layer("evil", (circle(4),)), Layer("evil_eye", (box(0, -1.2, 4, 0.8),))),
    (
        Layer("evil", (circle(6),)),
        Layer("evil", (limb((-3, 4), (-5, 10), 3), limb((3, 4), (5, 10), 3))),
        Layer("evil_eye", (polygon((-4, -3), (-0.8, -0.8), (-4, 0.6)), polygon((4, -3), (0.8, -0.8), (4, 0.6)))),
    ),
)

# Blocks.
_BOUNCE_BLOCK: tuple[Layers, ...] = (
    (Layer("block_edge", (square(9),)), Layer("block", (square(8),)), Layer("block_edge", (square(4.5), square(3.5)))),
)
_THWUMP_BODY = (
    Layer("thwump", (square(9),)),
    Layer("thwump_face", (polygon((6, -9), (9, -9), (11, -7), (11, 7), (9, 9), (6, 9)),)),
)
_THWUMP: tuple[Layers, ...] = (  # waits, charges, returns
    (*_THWUMP_BODY, Layer("thwump_eye", (box(-2, -3.5, 0, 3.5),))),
    (*_THWUMP_BODY, Layer("thwump_eye", (box(-4, -4, 4, 4),))),
    (*_THWUMP_BODY, Layer("thwump_eye", (box(-6, -4, -1, 4), box(-4.5, -2.5, -2.5, 2.5)))),
)
_SHELL = (square(12), square(9.5))
_CORNERS = tuple(
    box(12 * i - 5 * (i > 0), 12 * j - 5 * (j > 0), 12 * i + 5 * (i < 0), 12 * j + 5 * (j < 0))
    for i in (-1, 1)
    for j in (-1, 1)
)
_SHOVE_THWUMP: tuple[Layers, ...] = (  # idle, pressed, launched, returning: the core kills in the last two
    (Layer("shove", (square(12),)), Layer("shove_core", (square(6), square(4)))),
    (Layer("shove", (square(12),)), Layer("shove_core", (square(8),)), Layer("shove", (square(4),))),
    (Layer("shove", _SHELL), Layer("shove_danger", (circle(8),)), Layer("shove_core", (circle(3),))),
    (Layer("shove", _CORNERS), Layer("shove_danger", (circle(8),)), Layer("shove_core", (circle(4.5), circle(2.5)))),
)

# Turrets.
_ROCKET = Layer("rocket", (polygon((-2.5, 3), (0, -4), (2.5, 3)),))
_ROCKET_TURRET: tuple[Layers, ...] = (  # idle, warning, flying rocket
    (Layer("turret", (circle(7), circle(4.5))), _ROCKET),
    (Layer("rocket", (circle(7),)), Layer("gauss", (circle(4.5),)), _ROCKET),
    (Layer("rocket", (circle(4.5),)), Layer("gauss", (circle(2.2),))),
)
_SIGHT = (box(-9, -0.9, -4, 0.9), box(4, -0.9, 9, 0.9), box(-0.9, -9, 0.9, -4), box(-0.9, 4, 0.9, 9))
_SCOPE = (Layer("turret", (circle(6), circle(4))), Layer("turret", _SIGHT))
_GAUSS_TURRET: tuple[Layers, ...] = (  # idle and recovering, aiming, warning
    (*_SCOPE, Layer("turret", (circle(1.8),))),
    (*_SCOPE, Layer("gauss", (circle(2.8),))),
    (Layer("turret", (circle(6),)), Layer("gauss", _SIGHT), Layer("gauss", (circle(4.2),))),
)
_LASER_TURRET: tuple[Layers, ...] = (
    (
        Layer("laser", (polygon((0, -4), (9, -1.2), (9, 1.2), (0, 4)),)),
        Layer("laser", (circle(5.9),)),
        Layer("laser_light", (circle(2.8),)),
    ),
)


class Posture(NamedTuple):
    """Joints of the ninja facing right, pixels from the centre: head, hip, two hands, two feet."""

    head: tuple[float, float]
    hip: tuple[float, float]
    hands: tuple[tuple[float, float], tuple[float, float]]
    feet: tuple[tuple[float, float], tuple[float, float]]


_SPRAWLED = Posture((-5.0, 5.0), (1.5, 6.0), ((-2.0, 8.5), (1.5, 1.0)), ((8.5, 3.5), (8.0, 6.5)))
POSTURES: Mapping[int, Posture] = {
    game.IMMOBILE: Posture((0.0, -5.5), (0.0, 2.5), ((-3.5, 2.5), (3.5, 2.5)), ((-2.5, 9.5), (2.5, 9.5))),
    game.RUNNING: Posture((3.0, -5.0), (-1.0, 2.0), ((-5.5, -0.5), (6.5, 1.0)), ((-8.0, 5.5), (5.0, 8.5))),
    game.SLIDING: Posture((-3.5, -4.0), (0.0, 3.5), ((-8.5, 1.5), (4.5, -1.5)), ((4.0, 9.0), (9.0, 4.5))),
    game.JUMPING: Posture((1.0, -5.0), (-0.5, 2.5), ((-4.0, -8.0), (6.5, -7.0)), ((-4.5, 8.5), (3.0, 5.5))),
    game.FALLING: Posture((0.0, -5.0), (0.0, 2.0), ((-8.5, -3.0), (8.5, -3.0)), ((-5.5, 8.0), (5.5, 8.0))),
    game.WALL_SLIDING: Posture((2.5, -5.5), (2.0, 2.5), ((8.5, -4.5), (8.5, 1.0)), ((8.0, 5.5), (1.0, 9.5))),
    game.DEAD: _SPRAWLED,
    game.DYING: _SPRAWLED,
    game.CELEBRATING: Posture((0.0, -4.0), (0.0, 3.0), ((-6.0, -8.0), (6.0, -8.0)), ((-4.5, 9.0), (4.5, 9.0))),
    game.DISABLED: _SPRAWLED,
}
"""Ninja state to posture: standing, running, sliding, jumping, falling, on a wall, dead, celebrating."""


def ninja_layers(state: int, facing: int) -> tuple[Layer, ...]:
    """Return the layers of the ninja: a black figure within radius 10 whose light headband marks its front.

    The state is 0..9 (physics 01, section 5); ``facing`` is negative for left, otherwise right.
    """
    posture = POSTURES[state]
    head, hip = posture.head, posture.hip
    shoulder = (head[0] * 0.6 + hip[0] * 0.4, head[1] * 0.6 + hip[1] * 0.4)
    parts = [circle(4.0, *head, corners=20), limb(shoulder, hip, 6.0), circle(3.0, *hip, corners=16)]
    parts += [limb(shoulder, hand, 2.8) for hand in posture.hands]
    parts += [limb(hip, foot, 3.4) for foot in posture.feet]
    band = box(head[0] - 0.5, head[1] - 1.2, head[0] + 3.8, head[1] + 1.0)
    if facing < 0:
        parts, band = [part * (-1.0, 1.0) for part in parts], band * (-1.0, 1.0)
    # One layer a part: overlapping outlines within one layer would cancel out.
    return (*(Layer("ninja", (part,)) for part in parts), Layer("headband", (band,)))


_NINJA = tuple(ninja_layers(state, facing) for facing in (1, -1) for state in sorted(POSTURES))

LOOKS: Mapping[int, Look] = {
    game.NINJA: Look(_NINJA, lambda facing, state: state + len(POSTURES) * (facing == FACES_LEFT)),
    game.MINE: Look(_MINE),
    game.GOLD: Look(_GOLD),
    game.EXIT: Look(_EXIT),
    game.EXIT_SWITCH: Look(_EXIT_SWITCH),
    game.REGULAR_DOOR: Look(_REGULAR_DOOR, _is_set, _across),
    game.LOCKED_DOOR: Look(_LOCKED_DOOR, _is_set, _across),
    game.LOCKED_DOOR_SWITCH: Look(_LOCKED_DOOR_SWITCH),
    game.TRAP_DOOR: Look(_TRAP_DOOR, _is_set, _across),
    game.TRAP_DOOR_SWITCH: Look(_TRAP_DOOR_SWITCH),
    game.LAUNCH_PAD: Look(_LAUNCH_PAD, _only, _orientation),
    game.ONE_WAY: Look(_ONE_WAY, _only, _orientation),
    game.CHAINGUN_DRONE: Look(_CHAINGUN_DRONE, _phase_of_shooting, _heading),
    game.LASER_DRONE: Look(_LASER_DRONE, _phase_of_shooting, _heading),
    game.ZAP_DRONE: Look(_ZAP_DRONE, _only, _heading),
    game.CHASER_DRONE: Look(_CHASER_DRONE, lambda _, state: int(state & _CHASING != 0), _heading),
    game.FLOOR_GUARD: Look(_FLOOR_GUARD),
    game.BOUNCE_BLOCK: Look(_BOUNCE_BLOCK, _only),
    game.ROCKET_TURRET: Look(_ROCKET_TURRET, _phase_of_rocket),
    game.GAUSS_TURRET: Look(_GAUSS_TURRET, _phase_of_gauss),
    game.THWUMP: Look(_THWUMP, _state, _charge),
    game.TOGGLE_MINE: Look(_MINE),
    game.EVIL_NINJA: Look(_EVIL_NINJA, lambda _, state: int(state & _EVIL["active"] >= _EVIL["charging"])),
    game.LASER_TURRET: Look(_LASER_TURRET, _only, _orientation),
    game.BOOST_PAD: Look(_BOOST_PAD, _is_set),
    game.DEATH_BALL: Look(_DEATH_BALL, _only),
    game.MINI_DRONE: Look(_MINI_DRONE, _only, _heading),
    game.SHOVE_THWUMP: Look(_SHOVE_THWUMP, lambda _, state: state & _SHOVING),
}
"""Entity type to look. A missing type (27 does nothing) is not drawn."""
