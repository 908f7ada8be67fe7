"""Recipes by name: the options that learn on each kind of levels, files that ship with the package.

They are those of the bundled policies of the same names, and ``defaults``. ``train`` without ``--config`` takes the one
of its levels' kind. The first line of a file says in a comment what it is for.
"""

from collections.abc import Iterable
from pathlib import Path

from nclone_env.generate import is_generated_title
from nclone_env.level import LevelRef, OpenedPacks, resolve

DEFAULTS = "defaults"
"""The recipe of the built-in levels, and of others that are text: no option differs from its default."""
_OF_PLAYERS, _OF_GENERATOR = "game-lookahead", "generated"
_RECIPES = Path(__file__).parents[2] / "recipes"
_SUFFIX = ".toml"


def recipe_names() -> tuple[str, ...]:
    """Return the names of the recipes that ship with the package, in alphabetical order."""
    return tuple(sorted(path.stem for path in _RECIPES.glob(f"*{_SUFFIX}")))


def named_recipe(name: str) -> Path | None:
    """Return the file of a recipe that ships with the package; None if there is none of this name."""
    return _RECIPES / f"{name}{_SUFFIX}" if name in recipe_names() else None


def purpose(name: str) -> str:
    """Return what a recipe that ships with the package is for, in a line."""
    first, *_ = (_RECIPES / f"{name}{_SUFFIX}").read_text(encoding="utf-8").splitlines()
    return first.removeprefix("# ").rstrip(".")


def recipe_for(levels: Iterable[str]) -> str:
    """Return the name of the recipe for levels, as ``train --levels`` takes them: that of the hardest kind among them.

    Packs and map files are levels by players, unless the titles of a pack are those that the generator gives.
    """
    packs: OpenedPacks = {}
    kinds = {_kind(ref) for name in levels for ref in resolve(name, packs)}
    return next((kind for kind in (_OF_PLAYERS, _OF_GENERATOR) if kind in kinds), DEFAULTS)


def _kind(ref: LevelRef) -> str:
    if ref.make is not None or is_generated_title(ref.title):
        return _OF_GENERATOR
    return DEFAULTS if ref.is_text else _OF_PLAYERS
