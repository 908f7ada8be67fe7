"""Does each target of ``nclone-env profile`` take what its owners report, and what was estimated before?

*Measured* is the resident memory of each further environment, fitted to three fresh processes. The last columns compare
the estimate, made from one and two environments, with the memory that 8 and 64 take in a fresh process beside one that
stays: what all environments share exists by then, except in a training run, which makes all of it again.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from itertools import product
from typing import get_args

import tyro

from nclone_env._table import format_bytes, table
from nclone_env.memory.explain.stats import per_environment
from nclone_env.memory.measure.measurements import ProfileSettings
from nclone_env.memory.measure.tree import MemoryNode
from nclone_env.memory.passes import Process, Target, estimated, in_fresh_process, measure_sizes, steps_to_measure
from nclone_env.profiler import Contract, EnvironmentTarget, Mode, TrainingTarget
from profiling.measure import describe

_STEPS = 60
_PARTS = ("Python", "workers", "unexplained")
_ESTIMATED = (8, 64)


def targets() -> Iterator[tuple[str, Target]]:
    """Yield a name and a target."""
    for contract, mode in product(get_args(Contract), get_args(Mode)):
        yield f"vector, {contract}, {mode}", EnvironmentTarget(contract=contract, autoreset=mode)
    yield "single", EnvironmentTarget(form="single")
    yield "gym", EnvironmentTarget(form="gym")
    yield "sync", EnvironmentTarget(form="sync")
    yield "async", EnvironmentTarget(form="async")
    if importlib.util.find_spec("stable_baselines3"):
        yield "sb3", EnvironmentTarget(form="sb3")
    yield "train", TrainingTarget()


def row(name: str, target: Target) -> tuple[str, ...]:
    """Measure one target and return its row of the table."""
    settings = ProfileSettings(_ESTIMATED[0], steps=_STEPS)
    reported = target.estimate(_ESTIMATED[0]).bytes_where(shared=False) / _ESTIMATED[0]
    found = per_environment(measure_sizes(target, settings, reported))
    assert found is not None
    sizes = (found.measured, found.reported, found.python, found.workers)
    share = f"{found.unexplained / found.measured:+.1%}"
    return name, *map(format_bytes, sizes), share, *estimates(target)


def estimates(target: Target) -> Iterator[str]:
    """Yield by how much the estimate of each number of environments differs from what they take."""
    reported, all_of_one = target.estimate(1), estimated(target, 1)
    made_again = target.unit == "update"
    unreported = all_of_one.bytes_where(shared=False) - reported.bytes_where(shared=False)
    unreported_once = _once(all_of_one) - _once(reported)
    for num_envs in _ESTIMATED:
        tree = target.estimate(num_envs)
        expected = tree.bytes_where(shared=False) + num_envs * unreported
        expected += unreported_once + _once(tree) * made_again
        taken = in_fresh_process(Process(target, num_envs, steps_to_measure(target), traced=False))
        yield f"{expected / taken.data_bytes - 1:+.1%}"


def _once(tree: MemoryNode) -> int:
    """Return the bytes that are there once for all environments."""
    return sum(node.own_bytes for _, node in tree.walk() if node.shared and not node.mapped)


def main(only: str = "") -> None:
    """Print the table.

    Args:
        only: only targets whose name begins with this text.
    """
    print(describe())
    rows = [row(*target) for target in targets() if target[0].startswith(only)]
    titles = ("each further environment", "measured", "reported", *_PARTS, *(f"estimate of {n}" for n in _ESTIMATED))
    print("\n".join(table(titles, rows)))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
