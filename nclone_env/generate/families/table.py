"""The families by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nclone_env.generate.draws import Draws
from nclone_env.generate.families import (
    caves,
    mazes,
    minefields,
    motifs,
    pads,
    patrols,
    rooms,
    shafts,
    slopes,
    turrets,
)
from nclone_env.generate.sketch import Sketch
from nclone_env.kinds import (
    BOOST_PAD,
    BOUNCE_BLOCK,
    CHAINGUN_DRONE,
    CHASER_DRONE,
    DEATH_BALL,
    FLOOR_GUARD,
    GAUSS_TURRET,
    LASER_DRONE,
    LASER_TURRET,
    LAUNCH_PAD,
    LOCKED_DOOR,
    MINI_DRONE,
    ROCKET_TURRET,
    THWUMP,
    TRAP_DOOR,
    ZAP_DRONE,
)

FAMILIES: Mapping[str, Callable[[Draws, int], Sketch]] = {
    module.__name__.rpartition(".")[2]: module.sketch
    for module in (rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes, motifs)
}
"""The function of each family that draws a level: from random choices and an aim, 0 easy to 100 hard."""

_DOORS = (LOCKED_DOOR, TRAP_DOOR)
_MOVERS = (ZAP_DRONE, CHASER_DRONE, MINI_DRONE, FLOOR_GUARD, THWUMP)
_SHOOTERS = (GAUSS_TURRET, ROCKET_TURRET, LASER_TURRET, DEATH_BALL, LASER_DRONE, CHAINGUN_DRONE)
_PADS = (LAUNCH_PAD, BOOST_PAD, BOUNCE_BLOCK)
NEEDED: Mapping[str, tuple[int, ...]] = {
    "mazes": _DOORS,
    "patrols": _MOVERS,
    "turrets": _SHOOTERS,
    "pads": _PADS,
}
"""The kinds of which a level of a family must have one that matters."""
BY_KIND = ("motifs",)
"""Families of whose levels all entities of a kind matter or do not: they are set pieces."""
MOST_FRAMES: Mapping[str, int] = {**dict.fromkeys(FAMILIES, 150_000), "motifs": 400_000}
"""Frames that the search for a first solution of a level may simulate at an aim of 100."""
