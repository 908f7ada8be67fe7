"""Families of generated levels, one a file: each module's ``sketch`` draws a level for an aim, 0 easy to 100 hard."""

DEFAULT_FAMILIES = ("rooms", "caves", "shafts", "mazes", "minefields", "patrols", "turrets", "pads", "slopes")
"""The families of a collection that names none, in their order. They stay: level n of a seed belongs to one of them."""
FAMILY_NAMES = (*DEFAULT_FAMILIES, "motifs")
"""The names of all families, without what draws them (:mod:`nclone_env.generate.families.table`)."""
