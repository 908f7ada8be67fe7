"""Levels made by seed, each with a verified recording that completes it."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.generate.levels import GeneratedLevel as GeneratedLevel
    from nclone_env.generate.levels import generate_level as generate_level
    from nclone_env.generate.levels import generated_levels as generated_levels

if TYPE_CHECKING:  # for other rooms
    from nclone_env.generate.candidate import HELD_OUT_SPLIT, TRAIN_SPLIT
    from nclone_env.generate.difficulty import LEAST_DIFFICULTY, MOST_DIFFICULTY, read_range
    from nclone_env.generate.families import DEFAULT_FAMILIES, FAMILY_NAMES
    from nclone_env.generate.levels import (
        CollectionFiles,
        PackEntry,
        check_generation,
        compile_kernels,
        entry_of,
        is_generated_title,
        write_collection,
    )

__getattr__, __dir__ = face(__name__)
