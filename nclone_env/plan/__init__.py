"""Searches on the exact simulator: inputs that complete a level, and the parts to write other searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the names below, for type checkers and the reference
    from nclone_env.level.routes.guide import make_guide
    from nclone_env.plan.remaining import path_remaining
    from nclone_env.plan.solver import Solution, solve
    from nclone_env.plan.successors import copy_rows, expand
    from nclone_env.plan.table import find_place, make_table
    from nclone_env.plan.values import StateValues, state_values

__all__ = [
    "Solution",
    "StateValues",
    "copy_rows",
    "expand",
    "find_place",
    "make_guide",
    "make_table",
    "path_remaining",
    "solve",
    "state_values",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "nclone_env.level.routes.guide": ("make_guide",),
        "nclone_env.plan.remaining": ("path_remaining",),
        "nclone_env.plan.solver": ("Solution", "solve"),
        "nclone_env.plan.successors": ("copy_rows", "expand"),
        "nclone_env.plan.table": ("find_place", "make_table"),
        "nclone_env.plan.values": ("StateValues", "state_values"),
    },
)
