"""Levels made by seed, each with a verified recording that completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.generate.levels import GeneratedLevel as GeneratedLevel
    from nclone_env.generate.levels import generate_level as generate_level
    from nclone_env.generate.levels import generated_levels as generated_levels
    from nclone_env.generate.variants import Variant as Variant
    from nclone_env.generate.variants import make_variant as make_variant

__all__, __getattr__, __dir__ = face(__name__)
