"""Targets of the memory profiler: environments in every form, training runs, scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.profiler.environments import AsyncTarget as AsyncTarget
    from nclone_env.profiler.environments import Contract as Contract
    from nclone_env.profiler.environments import GymTarget as GymTarget
    from nclone_env.profiler.environments import Mode as Mode
    from nclone_env.profiler.environments import SingleTarget as SingleTarget
    from nclone_env.profiler.environments import StableBaselinesTarget as StableBaselinesTarget
    from nclone_env.profiler.environments import SyncTarget as SyncTarget
    from nclone_env.profiler.environments import VectorTarget as VectorTarget
    from nclone_env.profiler.script import Program as Program
    from nclone_env.profiler.training import TrainingTarget as TrainingTarget

__all__, __getattr__, __dir__ = face(__name__)
