"""Does each target of ``nclone-env profile`` take what its owners report, and what was estimated before?

*Measured* is the resident memory of each further environment, fitted to three fresh processes; *estimate* is made from
one and two environments, and stands next to what so many of them report after their first steps.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from typing import get_args

import tyro

from nclone_env._table import table
from nclone_env.memory.formatting import format_bytes
from nclone_env.memory.measurements import ProfileSettings
from nclone_env.memory.sizes import measure_sizes
from nclone_env.memory.stats import per_environment
from nclone_env.memory.subject import Target
from nclone_env.profiler.environments import (
    AsyncTarget,
    Contract,
    GymTarget,
    Mode,
    SingleTarget,
    StableBaselinesTarget,
    SyncTarget,
    VectorTarget,
)
from nclone_env.profiler.training import TrainingTarget
from profiling.measure import describe

_STEPS = 60
_PARTS = ("Python", "workers", "unexplained")


def targets() -> Iterator[tuple[str, Target, int]]:
    """Yield a name, a target, and the number of environments to estimate."""
    for contract, mode in product(get_args(Contract), get_args(Mode)):
        yield f"vector, {contract}, {mode}", VectorTarget(contract=contract, autoreset=mode), 256
    yield "single", SingleTarget(), 64
    yield "gym", GymTarget(), 64
    yield "sync", SyncTarget(), 64
    yield "async", AsyncTarget(), 8
    if importlib.util.find_spec("stable_baselines3"):
        yield "sb3", StableBaselinesTarget(), 256
    yield "train", TrainingTarget(), 256


def row(name: str, target: Target, num_envs: int) -> tuple[str, ...]:
    """Measure one target and return its row of the table."""
    estimate = target.estimate(num_envs).bytes_where(shared=False)
    with closing(target.make(num_envs)) as subject:
        for _ in range(_STEPS if target.unit == "vector step" else 2):
            subject.step()
        used = subject.memory().bytes_where(shared=False)
    found = per_environment(measure_sizes(target, ProfileSettings(num_envs, steps=_STEPS), used / num_envs))
    assert found is not None
    sizes = (found.measured, found.reported, found.python, found.workers, found.unexplained)
    share = f"{found.unexplained / found.measured:+.1%}"
    return name, *map(format_bytes, sizes), share, f"{estimate / max(1, used) - 1:+.1%}"


def main(only: str = "") -> None:
    """Print the table.

    Args:
        only: only targets whose name contains this text.
    """
    print(describe())
    rows = [row(*target) for target in targets() if only in target[0]]
    titles = ("each further environment", "measured", "reported", *_PARTS, "share", "estimate")
    print("\n".join(table(titles, rows)))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
