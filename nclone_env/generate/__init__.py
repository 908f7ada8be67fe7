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

if TYPE_CHECKING:  # for other rooms
    from nclone_env.generate.collection import TABLE_SUFFIX as TABLE_SUFFIX
    from nclone_env.generate.collection import CollectionFiles as CollectionFiles
    from nclone_env.generate.collection import Order as Order
    from nclone_env.generate.collection import PackEntry as PackEntry
    from nclone_env.generate.collection import write_collection as write_collection
    from nclone_env.generate.difficulty import LEAST_DIFFICULTY as LEAST_DIFFICULTY
    from nclone_env.generate.difficulty import MOST_DIFFICULTY as MOST_DIFFICULTY
    from nclone_env.generate.difficulty import read_range as read_range
    from nclone_env.generate.families import DEFAULT_FAMILIES as DEFAULT_FAMILIES
    from nclone_env.generate.families import FAMILY_NAMES as FAMILY_NAMES
    from nclone_env.generate.families.table import FAMILIES as FAMILIES
    from nclone_env.generate.levels import ATTEMPTS as ATTEMPTS
    from nclone_env.generate.levels import check_generation as check_generation
    from nclone_env.generate.splits import HELD_OUT_SPLIT as HELD_OUT_SPLIT
    from nclone_env.generate.splits import TRAIN_SPLIT as TRAIN_SPLIT

__all__, __getattr__, __dir__ = face(__name__)
