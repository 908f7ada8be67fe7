"""Levels that show every kind of entity, for tests, measurements and demonstrations."""

from __future__ import annotations

import numpy as np

from nclone_env.constants import ENTITY_NAMES
from nclone_env.level.build import build_level, hall_tiles
from nclone_env.level.level import Level

_HALL = ((2, 40), (5, 16))  # columns and rows; the floor is at y = 408 pixels
_MOVING = """
gold 30 66
exit 150 66
exit_switch 62 66
regular_door 56 64
locked_door 110 64
locked_door_switch 74 66
trap_door 130 64
trap_door_switch 90 66
launch_pad 84 68 6
zap_drone 50 34
zap_drone 90 38 2 2
floor_guard 140 67
bounce_block 40 62
bounce_block 100 58
thwump 66 30 2
thwump 24 40
toggle_mine 46 66
boost_pad 36 64
death_ball 120 40
death_ball 122 44
mini_drone 80 30 4 1
shove_thwump 54 50
"""
_SHOOTING = """
one_way 60 62 4
chaingun_drone 100 34
laser_drone 60 38 2 1
chaser_drone 120 34
rocket_turret 150 30
gauss_turret 20 30
evil_ninja 34 67
laser_turret 90 26 2
laser_turret 104 67 6 1
shove_thwump 48 66
"""


def moving(spawn: tuple[int, int] = (26, 66), title: str = "moving") -> Level:
    """Return a hall of 39 by 12 cells with doors, pads and entities that move, but none that shoot."""
    return build_level(_MOVING, tiles=hall_tiles(*_HALL), spawn=spawn, title=title)


def everything(spawn: tuple[int, int] = (26, 66)) -> Level:
    """Return the same hall with an entity of every kind that moves, shoots or is touched, sorted by type."""
    lines = [line for line in (_MOVING + _SHOOTING).splitlines() if line]
    lines.sort(key=lambda line: ENTITY_NAMES.index(line.split()[0]))
    return build_level(*lines, tiles=hall_tiles(*_HALL), spawn=spawn, title="everything")


def mine_field(count: int = 700) -> Level:
    """Return an empty level with an exit and many mines in random places."""
    draw = np.random.default_rng(2)
    xs, ys = draw.integers(8, 168, count), draw.integers(8, 92, count)
    mines = [f"mine {x} {y}" for x, y in zip(xs, ys)]
    return build_level(*mines, "exit 20 90", "exit_switch 150 90", spawn=(84, 50), title="mine field")
