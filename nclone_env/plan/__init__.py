"""Searches on the exact simulator: inputs that complete a level, and the parts to write other searches."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.level import make_guide as make_guide
    from nclone_env.plan.kernels import EMPTY as EMPTY
    from nclone_env.plan.kernels import WON as WON
    from nclone_env.plan.kernels import expand as expand
    from nclone_env.plan.kernels import find_place as find_place
    from nclone_env.plan.kernels import make_table as make_table
    from nclone_env.plan.kernels import path_remaining as path_remaining
    from nclone_env.plan.solver import Solution as Solution
    from nclone_env.plan.solver import solve as solve

if TYPE_CHECKING:  # for other rooms
    from nclone_env.plan.kernels import play
    from nclone_env.plan.searches import compile_kernels
    from nclone_env.plan.short import Edits, Found, first_solution, shorter_solution
    from nclone_env.plan.solver import MEMORY
    from nclone_env.plan.task import MOST_FRAMES, Task, make_task, smooth, wins_at_end

__getattr__, __dir__ = face(__name__)
