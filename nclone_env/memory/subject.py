"""What can be profiled: a target makes subjects of any size, a subject repeats steps."""

from collections.abc import Sequence
from typing import Protocol

from nclone_env.memory.measurements import Advice, OwnedNode, PhaseTime
from nclone_env.memory.tree import MemoryNode


class Subject(Protocol):
    """Something that repeats steps and reports the memory it owns."""

    def step(self) -> object:
        """Do what is repeated, once."""

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        ...

    def close(self) -> object:
        """Release all resources."""


class Target(Protocol):
    """Makes subjects. It must be picklable, since fresh processes make subjects of several sizes."""

    @property
    def name(self) -> str:
        """What is profiled, for the reports."""
        ...

    @property
    def unit(self) -> str:
        """What a step is, for example "vector step" or "update"."""
        ...

    @property
    def most_envs(self) -> int:
        """The largest number of environments that a fresh process should make."""
        ...

    @property
    def traced_floor(self) -> int:
        """Bytes by which traced memory may vary over a run without anything growing."""
        ...

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return (name, value) of what a reader must know to compare two reports, such as mode and observations."""
        ...

    def env_steps(self, num_envs: int) -> int:
        """Return the environment steps of a step."""
        ...

    def estimate(self, num_envs: int) -> MemoryNode:
        """Return the tree that a subject will report, without allocating it."""
        ...

    def advice(self, owners: Sequence[OwnedNode], num_envs: int, unreported: float) -> tuple[Advice, ...]:
        """Return what would save memory, given the tree and the bytes of Python of each environment beside it."""
        ...

    def phases(self, num_envs: int, steps: int) -> tuple[PhaseTime, ...]:
        """Return the time of a whole step and then of its parts; nothing if they cannot be timed."""
        ...

    def make(self, num_envs: int) -> Subject:
        """Make a subject that is ready to step."""
        ...
