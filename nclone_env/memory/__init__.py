"""The memory profiler: collect a Measurements, compute Stats, write reports; or watch a block of one's own code."""

from nclone_env.memory.watch import Watch, profile

__all__ = ["Watch", "profile"]
