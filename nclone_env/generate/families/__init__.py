"""Families of generated levels, one a file: each module's ``sketch`` draws the level of a seed."""

FAMILY_NAMES = ("rooms", "caves", "shafts", "mazes", "minefields", "patrols", "turrets", "pads", "slopes")
"""The names of all families, without what draws them (:mod:`nclone_env.generate.families.table`)."""
