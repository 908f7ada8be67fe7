"""Memory of each further environment: growth of the process between few and many environments.

The kernels are compiled first (``nclone-env warmup``). Every figure is the median of several pairs of fresh processes:
PSS without file pages, which other processes would disturb. The time limit ends every episode after 49 steps, begun one
after another, so that at least 2 % of them end in each step. The second column is the memory that the environments
report, with the caller's arrays; the trees show its owners. Last comes the memory (RSS) of one process with 10,000
environments.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

import numpy as np
import tyro
from gymnasium.vector import AutoresetMode

from nclone_env import EnvironmentConfig, MemoryNode
from nclone_env.config import DEFAULT_OBSERVATIONS
from nclone_env.memory.measure.process import resident_bytes
from profiling.contracts import CONTRACTS, LEVELS, STATE, begin, random_actions
from profiling.measure import describe, in_fresh_process

STEPS = 260  # over five episodes
EPISODE_STEPS = 49
RUNS = 3
CROWD = 10_000


class Case(NamedTuple):
    """The environments of a process."""

    contract: str
    mode: str
    observations: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'state' if self.observations == STATE else 'state + frames'}, {self.contract}, {self.mode}"


class Usage(NamedTuple):
    """Bytes of a process (``data``: without file pages), the report of its environments, the caller's arrays."""

    rss: int
    pss: int
    data: int
    tree: MemoryNode
    callers: int


def usage(case: Case, levels: tuple[str, ...], num_envs: int, steps: int) -> Usage:
    """Play in this process and return its memory."""
    config = EnvironmentConfig(levels=levels, observations=case.observations)
    config = config.replace(max_frames=EPISODE_STEPS * config.frame_skip)
    env, arguments = begin(case.contract, config, num_envs, autoreset_mode=case.mode)
    actions, turns = random_actions(num_envs, rows=7), np.arange(num_envs) % EPISODE_STEPS
    for step in range(EPISODE_STEPS + steps):
        env.step(actions[step % len(actions)], **arguments)
        if step < EPISODE_STEPS:
            env.reset(options={"reset_mask": turns == step}, **arguments)
    del actions, turns
    resident = resident_bytes()
    callers = sum(array.nbytes for array in arguments.get("out", {}).values())
    tree = env.memory()
    env.close()
    return Usage(resident.rss, resident.pss, resident.data, tree, callers)


def growth(case: Case, levels: tuple[str, ...], few: int, many: int) -> tuple[float, Usage]:
    """Return the bytes of each further environment, and the usage with many environments."""
    found = []
    for _ in range(RUNS):
        small = in_fresh_process(usage, case, levels, few, STEPS)
        large = in_fresh_process(usage, case, levels, many, STEPS)
        found.append((large.data - small.data) / (many - few))
    return statistics.median(found), large


def print_tree(usage: Usage, num_envs: int) -> None:
    """Print the owners of bytes that grow with the number of environments."""
    print(f"    {'arrays of the caller':<44}{usage.callers / num_envs:>12,.1f}")
    for depth, node in usage.tree.walk():
        if own := node.bytes_where(shared=False):
            print(f"    {'  ' * depth + node.name:<44}{own / num_envs:>12,.1f}")


def cases() -> list[Case]:
    """Return the cases: ``out=`` in each mode, the other contracts in the default one."""
    next_step = AutoresetMode.NEXT_STEP.value
    return [
        Case(contract, mode.value, observations)
        for observations in (STATE, DEFAULT_OBSERVATIONS)
        for contract in CONTRACTS
        for mode in AutoresetMode
        if mode is not AutoresetMode.DISABLED and (contract == "out=" or mode.value == next_step)
    ]


def main(levels: tuple[str, ...] = LEVELS, few: int = 256, many: int = 2048) -> None:
    """Print growth, trees and the crowd.

    Args:
        levels: levels to play.
        few: the smaller number of environments.
        many: the larger number of environments.
    """
    print(describe())
    print(f"levels {', '.join(levels)}; growth from {few} to {many} environments, bytes per environment")
    trees = []
    print(f"  {'':<44}{'measured':>12}{'reported':>12}{'no owner':>12}")
    for case in cases():
        measured, large = growth(case, levels, few, many)
        reported = (large.tree.bytes_where(shared=False) + large.callers) / many
        print(f"  {case!s:<44}{measured:>12,.0f}{reported:>12,.0f}{measured - reported:>12,.0f}", flush=True)
        trees.append((case, large))
    for case, large in trees:
        if case.contract == "out=":
            print(f"  {case}: bytes per environment by owner")
            print_tree(large, many)
    crowd = in_fresh_process(usage, Case("out=", AutoresetMode.SAME_STEP.value, STATE), levels, CROWD, STEPS)
    print(f"  {CROWD:,} environments, state, out=: RSS {crowd.rss / 1e6:.1f} MB, PSS {crowd.pss / 1e6:.1f} MB")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
