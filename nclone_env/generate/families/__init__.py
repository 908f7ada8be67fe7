"""Families of generated levels, one a file: each module's ``sketch`` draws the level of a seed."""
