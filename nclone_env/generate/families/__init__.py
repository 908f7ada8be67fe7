"""Families of generated levels, one a file: each module's ``sketch`` draws a level for an aim, 0 easy to 100 hard."""

from collections.abc import Callable, Mapping

from nclone_env.generate.draws import Draws
from nclone_env.generate.families import caves, mazes, minefields, motifs, pads, patrols, rooms, shafts, slopes, turrets
from nclone_env.generate.sketch import Sketch

FAMILIES: Mapping[str, Callable[[Draws, int], Sketch]] = {
    module.__name__.rpartition(".")[2]: module.sketch
    for module in (rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes, motifs)
}
"""The function of each family that draws a level: from random choices and an aim, 0 easy to 100 hard."""
FAMILY_NAMES = tuple(FAMILIES)
DEFAULT_FAMILIES = tuple(name for name in FAMILIES if name != "motifs")
"""The families of a collection that names none, in their order. They stay: level n of a seed belongs to one of them."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "mazes": ("locked_door", "trap_door"),
    "patrols": ("zap_drone", "chaser_drone", "mini_drone", "floor_guard", "thwump"),
    "turrets": ("gauss_turret", "rocket_turret", "laser_turret", "death_ball", "laser_drone", "chaingun_drone"),
    "pads": ("launch_pad", "boost_pad", "bounce_block"),
}
"""The kinds of which a level of a family must have one that matters."""
BY_KIND = ("motifs",)
"""Families of whose levels all entities of a kind matter or do not: they are set pieces."""
MOST_FRAMES: Mapping[str, int] = {**dict.fromkeys(FAMILIES, 150_000), "motifs": 400_000}
"""Frames that the search for a first solution of a level may simulate at an aim of 100."""
