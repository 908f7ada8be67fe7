"""Levels made by seed, each with a verified recording that completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the names below, for type checkers and the reference
    from nclone_env.generate.levels import GeneratedLevel, generate_level, generated_levels
    from nclone_env.generate.variants import Variant, make_variant

__all__ = ["GeneratedLevel", "Variant", "generate_level", "generated_levels", "make_variant"]

__getattr__, __dir__ = face(
    __name__,
    {
        "nclone_env.generate.levels": ("GeneratedLevel", "generate_level", "generated_levels"),
        "nclone_env.generate.variants": ("Variant", "make_variant"),
    },
)
