"""The memory profiler: collect a Measurements, compute Stats, write reports; or watch a block of one's own code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # the public names, each imported on first use
    from nclone_env.memory.watch import Watch as Watch
    from nclone_env.memory.watch import profile as profile

__all__, __getattr__, __dir__ = face(__name__)
