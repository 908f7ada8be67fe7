"""Generated levels that several tests look at; each is made once."""

from functools import cache

from nclone_env.generate.families import FAMILIES
from nclone_env.generate.levels import GeneratedLevel, generate_level

CASES = [(family, number) for family in FAMILIES for number in range(2)]
"""Family and number."""


@cache
def made(family: str, number: int, seed: int = 3, split: str = "train") -> GeneratedLevel:
    return generate_level(family, seed, number, split=split)
