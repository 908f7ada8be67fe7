"""Targets of the memory profiler: environments in every form, and training runs."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.profiler.environments import Contract, EnvironmentTarget, Form, Mode, compile_kernels
    from nclone_env.profiler.training import TrainingTarget

__getattr__, __dir__ = face(__name__)
