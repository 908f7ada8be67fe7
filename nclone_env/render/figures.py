"""The figures of all entities, facing right, around their centre; sizes as physics 02, section 11, has them.

Each constant is a tuple of variants, most often by state; :mod:`nclone_env.render.looks` says which is shown when.
"""

from __future__ import annotations

from nclone_env.constants import EXIT_RADIUS, GOLD_RADIUS, MINE_RADII, SWITCH_RADIUS
from nclone_env.render.shapes import Layer, box, circle, limb, polygon, square, star

Layers = tuple[Layer, ...]

_ARMED, _SAFE, _STEPPED = MINE_RADII
MINE: tuple[Layers, ...] = (  # armed, safe, stepped on
    (Layer("mine", (star(_ARMED + 2.5, _ARMED - 0.5, 8),)), Layer("mine_core", (circle(1.6),))),
    (Layer("safe_mine", (circle(_SAFE + 1.0), circle(_SAFE - 2.0))),),
    (Layer("stepped_mine", (circle(_STEPPED + 0.5), circle(_STEPPED - 2.5))),),
)
GOLD: tuple[Layers, ...] = (
    (Layer("gold_edge", (square(GOLD_RADIUS - 1),)), Layer("gold", (square(GOLD_RADIUS - 2),))),
)
_CROSS = (box(-1.5, -9, 1.5, 9), box(-9, -1.5, 9, 1.5), square(1.5))
EXIT: tuple[Layers, ...] = (  # closed, open
    (Layer("exit", (square(EXIT_RADIUS),)), Layer("exit_inside", (square(9),)), Layer("exit", _CROSS)),
    (Layer("open_exit", (square(EXIT_RADIUS),)), Layer("open_inside", (square(9),))),
)
EXIT_SWITCH: tuple[Layers, ...] = (  # there, taken
    (Layer("switch", (square(SWITCH_RADIUS),)), Layer("switch_light", (circle(3.2, corners=4),))),
    (Layer("taken_switch", (square(6), square(4.5))),),
)

# Doors stand upright: a segment of length 24 through the centre. Of an open one only the ends are left.
_BAR = box(-2.5, -12, 2.5, 12)
_ENDS = (box(-2.5, -12, 2.5, -8), box(-2.5, 8, 2.5, 12))
REGULAR_DOOR: tuple[Layers, ...] = (  # shut, open
    (Layer("door", (_BAR,)), Layer("open_door", (box(-0.5, -9, 0.5, 9),))),
    (Layer("open_door", _ENDS),),
)
LOCKED_DOOR: tuple[Layers, ...] = (  # shut, open
    (Layer("locked_door", (_BAR,)), Layer("locked_door", (square(4.5),)), Layer("lock", (square(2.5),))),
    (Layer("locked_door", _ENDS),),
)
_STUDS = tuple(circle(1.6, 0, y, 4) for y in (-7.5, -2.5, 2.5, 7.5))
TRAP_DOOR: tuple[Layers, ...] = (  # open, shut
    (Layer("trap_door", _ENDS), Layer("trap_door", _STUDS[1:3])),
    (Layer("trap_door", (_BAR,)), Layer("trap_light", _STUDS)),
)
LOCKED_DOOR_SWITCH: tuple[Layers, ...] = (  # only while untouched
    (Layer("locked_door", (circle(5.5),)), Layer("lock", (circle(3.5), circle(1.5)))),
)
TRAP_DOOR_SWITCH: tuple[Layers, ...] = (  # only while untouched
    (Layer("trap_door", (polygon((-6, 5), (6, 5), (0, -6)),)), Layer("trap_light", (circle(2.0, 0, 1.2),))),
)

# Pads and platforms face right; the surface that acts lies at the centre.
LAUNCH_PAD: tuple[Layers, ...] = (
    (
        Layer("launch_pad", (box(-2.5, -7.5, 1, 7.5),)),
        Layer("launch_front", (polygon((1, -6.5), (3.5, -5), (5, -1.5), (5, 1.5), (3.5, 5), (1, 6.5)),)),
    ),
)
ONE_WAY: tuple[Layers, ...] = (
    (
        Layer("one_way", (box(-4, -12, 0, 12),)),
        Layer("one_way", tuple(polygon((-8, y - 2.5), (-4, y), (-8, y + 2.5)) for y in (-6, 0, 6))),
        Layer("one_way_front", (box(-1.5, -12, 0.5, 12),)),
    ),
)
BOOST_PAD: tuple[Layers, ...] = (  # alone, touched
    (Layer("boost_pad", (circle(6.5), circle(4.0))), Layer("boost_pad", (circle(2.2, corners=4),))),
    (Layer("boost_light", (circle(6.5), circle(4.0))), Layer("boost_light", (circle(3.2, corners=4),))),
)

# Drones look ahead with an eye of their own paint.
ZAP_DRONE: tuple[Layers, ...] = (
    (Layer("shell", (circle(7.5),)), Layer("zap_eye", (circle(5.8), circle(4.6))), Layer("zap_eye", (circle(2.4, 3),))),
)
_PRONGS = polygon((-7.5, 0), (-5, -5.5), (2, -7.5), (8, -4), (5, 0), (8, 4), (2, 7.5), (-5, 5.5))
CHASER_DRONE: tuple[Layers, ...] = (  # on patrol, chasing
    (Layer("shell", (_PRONGS,)), Layer("chaser_eye", (circle(2.2, 1.5),))),
    (Layer("chaser_eye", (_PRONGS,)), Layer("shell", (circle(2.6, 1.5),))),
)
_BARRELS = (box(0, -4.5, 8.5, -1.5), box(0, 1.5, 8.5, 4.5))
_GUN = (Layer("shell", _BARRELS), Layer("shell", (circle(7, -1.5, corners=8),)))
CHAINGUN_DRONE: tuple[Layers, ...] = (  # calm, warning, firing
    (*_GUN, Layer("chaingun_eye", (box(-3, -3.5, 3, -1.5), box(-3, 1.5, 3, 3.5)))),
    (*_GUN, Layer("chaingun_eye", (box(-5, -4, 5, -1), box(-5, 1, 5, 4)))),
    (*_GUN, Layer("chaingun_eye", _BARRELS), Layer("chaingun_eye", (circle(4.5, -1.5, corners=8),))),
)
_DIAMOND = Layer("shell", (circle(8, corners=4),))
LASER_DRONE: tuple[Layers, ...] = (  # calm, warning, firing
    (_DIAMOND, Layer("laser_eye", (circle(2.6, 2.5),)), Layer("laser_eye", (box(4, -0.8, 10, 0.8),))),
    (_DIAMOND, Layer("laser_eye", (circle(4.5), circle(2.5))), Layer("laser_eye", (box(4, -0.8, 10, 0.8),))),
    (_DIAMOND, Layer("laser_eye", (circle(6, corners=4),)), Layer("laser_eye", (box(4, -1.5, 11, 1.5),))),
)
MINI_DRONE: tuple[Layers, ...] = ((Layer("shell", (circle(4.2),)), Layer("mini_eye", (circle(1.6, 1.6),))),)


def _guard(look: float) -> Layers:
    dome = polygon((-6, 6), (-6, 0), (-4.5, -4), (-1.8, -6), (1.8, -6), (4.5, -4), (6, 0), (6, 6))
    return Layer("guard", (dome,)), Layer(
        "guard_eye", (box(look - 3.5, -2.5, look - 1, 1), box(look + 1, -2.5, look + 3.5, 1))
    )


FLOOR_GUARD: tuple[Layers, ...] = (_guard(0.0), _guard(2.0), _guard(-2.0))  # waits, runs right, runs left
DEATH_BALL: tuple[Layers, ...] = (
    (Layer("ball", (star(6.5, 4.5, 12),)), Layer("ball_core", (circle(2.6), circle(1.0)))),
)
EVIL_NINJA: tuple[Layers, ...] = (  # waits, hunts
    (Layer("evil", (circle(10), circle(8.5))), Layer("evil", (circle(4),)), Layer("evil_eye", (box(0, -1.2, 4, 0.8),))),
    (
        Layer("evil", (circle(6),)),
        Layer("evil", (limb((-3, 4), (-5, 10), 3), limb((3, 4), (5, 10), 3))),
        Layer("evil_eye", (polygon((-4, -3), (-0.8, -0.8), (-4, 0.6)), polygon((4, -3), (0.8, -0.8), (4, 0.6)))),
    ),
)

# Blocks.
BOUNCE_BLOCK: tuple[Layers, ...] = (
    (Layer("block_edge", (square(9),)), Layer("block", (square(8),)), Layer("block_edge", (square(4.5), square(3.5)))),
)
_THWUMP = (
    Layer("thwump", (square(9),)),
    Layer("thwump_face", (polygon((6, -9), (9, -9), (11, -7), (11, 7), (9, 9), (6, 9)),)),
)
THWUMP: tuple[Layers, ...] = (  # waits, charges, returns
    (*_THWUMP, Layer("thwump_eye", (box(-2, -3.5, 0, 3.5),))),
    (*_THWUMP, Layer("thwump_eye", (box(-4, -4, 4, 4),))),
    (*_THWUMP, Layer("thwump_eye", (box(-6, -4, -1, 4), box(-4.5, -2.5, -2.5, 2.5)))),
)
_SHELL = (square(12), square(9.5))
_CORNERS = tuple(
    box(12 * i - 5 * (i > 0), 12 * j - 5 * (j > 0), 12 * i + 5 * (i < 0), 12 * j + 5 * (j < 0))
    for i in (-1, 1)
    for j in (-1, 1)
)
SHOVE_THWUMP: tuple[Layers, ...] = (  # waits, is pressed, is launched, returns; launched and returning its core kills
    (Layer("shove", (square(12),)), Layer("shove_core", (square(6), square(4)))),
    (Layer("shove", (square(12),)), Layer("shove_core", (square(8),)), Layer("shove", (square(4),))),
    (Layer("shove", _SHELL), Layer("shove_danger", (circle(8),)), Layer("shove_core", (circle(3),))),
    (Layer("shove", _CORNERS), Layer("shove_danger", (circle(8),)), Layer("shove_core", (circle(4.5), circle(2.5)))),
)

# Turrets.
_ROCKET = Layer("rocket", (polygon((-2.5, 3), (0, -4), (2.5, 3)),))
ROCKET_TURRET: tuple[Layers, ...] = (  # idle, warning, the rocket that flies
    (Layer("turret", (circle(7), circle(4.5))), _ROCKET),
    (Layer("rocket", (circle(7),)), Layer("gauss", (circle(4.5),)), _ROCKET),
    (Layer("rocket", (circle(4.5),)), Layer("gauss", (circle(2.2),))),
)
_SIGHT = (box(-9, -0.9, -4, 0.9), box(4, -0.9, 9, 0.9), box(-0.9, -9, 0.9, -4), box(-0.9, 4, 0.9, 9))
_SCOPE = (Layer("turret", (circle(6), circle(4))), Layer("turret", _SIGHT))
GAUSS_TURRET: tuple[Layers, ...] = (  # idle and recovering, aiming, warning
    (*_SCOPE, Layer("turret", (circle(1.8),))),
    (*_SCOPE, Layer("gauss", (circle(2.8),))),
    (Layer("turret", (circle(6),)), Layer("gauss", _SIGHT), Layer("gauss", (circle(4.2),))),
)
LASER_TURRET: tuple[Layers, ...] = (
    (
        Layer("laser", (polygon((0, -4), (9, -1.2), (9, 1.2), (0, 4)),)),
        Layer("laser", (circle(5.9),)),
        Layer("laser_light", (circle(2.8),)),
    ),
)
