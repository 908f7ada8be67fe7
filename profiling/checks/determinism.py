"""One hash for what environments do and one for what they see, however they are run.

    python -m profiling.checks.determinism [--python python3.13 ...] [--processor x86-64-v2 ...]
    python -m profiling.checks.determinism --short-steps 1000000

Twelve environments play 300 steps of random actions on levels with every kind of entity, in each autoreset mode. The
rows of the table differ in threads, batches, processes, contracts and snapshots; all must have the hashes of the first
row. The last rows are controls, which must not. ``--python`` names interpreters that have the package's dependencies,
``--processor`` what kernels are compiled for, as LLVM names it.
``--short-steps`` makes so many steps of 14 environments with 1, 2, 4 and 7 threads, and prints a checksum of each:
steps so short that threads meet in every order.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env import NPlusPlusVectorEnv
from nclone_env.level.build import everything, moving
from nclone_env.sim.state import MOVER, NO_CELL, world_at
from profiling.measure import compiled_for

ENVS, STEPS, SEED = 12, 300, 100
FIELDS: dict[str, Any] = {
    "levels": (everything(), moving((70, 44), "other"), "first-steps", "jumps", "hazards"),
    "observations": ("game_state", "locals", "entity_states", "reachability", "action_mask", "graph", "player_frame"),
    "max_frames": 240,
}
MODES = tuple(mode.value for mode in AutoresetMode)


class Hashes(NamedTuple):
    """SHA-256 of the worlds, rewards and ends of all steps, and of all observations; 16 hexadecimal digits each."""

    trajectory: str
    observations: str


class Way(NamedTuple):
    """A way to run the environments."""

    batches: tuple[int, ...] = (ENVS,)
    threads: int = 1
    contract: str = "default"
    snapshot_at: int | None = None
    """Step before which every environment is carried over to others by a snapshot."""
    seed: int = SEED
    action_seed: int = 0
    flushes: bool = False
    """Whether denormal numbers are off in the calling thread, and so in those that it starts."""


WAYS = {
    "1 thread": Way(),
    "2 threads": Way(threads=2),
    "4 threads": Way(threads=4),
    "7 threads": Way(threads=7),
    "batches of 5 and 7": Way(batches=(5, 7), threads=2),
    "twelve batches of 1": Way(batches=(1,) * ENVS),
    "out=": Way(contract="out", threads=2),
    "snapshots in mid-run": Way(snapshot_at=137),
    "snapshots, 2 threads": Way(snapshot_at=61, threads=2, contract="out"),
    "no denormals, 2 threads": Way(threads=2, flushes=True),
}
CONTROLS = {"another seed": Way(seed=SEED + 1), "one other action": Way(action_seed=1)}


def hashes(way: Way, mode: str) -> Hashes:
    """Run the environments and return their hashes."""
    with _flushing() if way.flushes else nullcontext():
        return _hashes(way, mode)


@contextmanager
def _flushing() -> Iterator[None]:
    import torch  # which the other ways do not need

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _hashes(way: Way, mode: str) -> Hashes:
    trajectory, seen = hashlib.sha256(), hashlib.sha256()
    firsts = np.cumsum((0, *way.batches[:-1])).tolist()
    parts = [list(_run(way, mode, first, size)) for first, size in zip(firsts, way.batches)]
    for rows in zip(*parts):
        for target, number in ((trajectory, 0), (seen, 1)):
            for name in rows[0][number]:
                target.update(np.concatenate([row[number][name] for row in rows]))
    return Hashes(trajectory.hexdigest()[:16], seen.hexdigest()[:16])


def actions_of(way: Way) -> np.ndarray:
    """Return (STEPS, ENVS) actions."""
    actions = np.random.default_rng(5).integers(0, 6, (STEPS, ENVS))
    actions[STEPS // 2, 0] = (actions[STEPS // 2, 0] + way.action_seed) % 6
    return actions


def _run(way: Way, mode: str, first: int, size: int) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield the arrays of the worlds and results after each step, and the observations."""
    envs = _make(way, mode, size)
    observations, _ = envs.reset(seed=way.seed + first)
    yield _copies(_worlds(envs)), _copies(observations)
    out = {name: np.empty_like(array) for name, array in observations.items()}
    for step, actions in enumerate(actions_of(way)[:, first : first + size]):
        if step == way.snapshot_at:
            envs = _carried_over(envs, _make(way, mode, size))
        given = {"out": out} if way.contract == "out" else {}
        observations, rewards, terminations, truncations, _ = envs.step(actions, **given)
        results = {"rewards": rewards, "terminations": terminations, "truncations": truncations}
        yield _copies({**_worlds(envs), **results}), _copies(observations)
        if mode == "Disabled" and (terminations | truncations).any():
            envs.reset(options={"reset_mask": terminations | truncations})
    envs.close()


def _make(way: Way, mode: str, size: int) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(None, size, autoreset_mode=mode, num_threads=way.threads, **FIELDS)


def _carried_over(envs: NPlusPlusVectorEnv, others: NPlusPlusVectorEnv) -> NPlusPlusVectorEnv:
    """Return other environments in the same states."""
    others.reset(seed=1)
    for index in range(envs.num_envs):
        others.set_state(index, envs.get_state(index))
    envs.close()
    return others


def _worlds(envs: NPlusPlusVectorEnv) -> dict[str, np.ndarray]:
    """Return the worlds with room for the largest level each, by name; the hashes were first taken of this form."""
    levels, count = envs.level_set, envs.num_envs
    states = np.zeros((count, -(-levels.max_entities // 8) * 8), np.uint8)
    rows = max(min(levels.max_trail, envs.config.max_frames), 1)
    movers, trail = np.zeros((count, max(levels.max_movers, 1)), MOVER), np.zeros((count, rows, 2))
    movers["cell"] = NO_CELL
    for index in range(count):
        world = world_at(envs.worlds, index)
        states[index, : len(world.entity_states)], movers[index, : len(world.movers)] = world[1:3]
        trail[index, np.arange(world.ninja["frame"] - len(world.trail), world.ninja["frame"]) % rows] = world.trail
    worlds = {"ninjas": envs.worlds.ninjas, "entity_states": states, "movers": movers, "trail": trail}
    return {name: array.view(np.uint8) if array.dtype.names else array for name, array in worlds.items()}


def _copies(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(array).copy() for name, array in arrays.items()}


def spawned(way: Way, mode: str) -> Hashes:
    """Return the hashes of a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(hashes, (way, mode))


def elsewhere(mode: str, python: str = sys.executable, **variables: str) -> Hashes:
    """Return the hashes of a process of an interpreter with additional environment variables."""
    command = [python, "-m", "profiling.checks.determinism", "--one", mode]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Hashes(*done.stdout.split())


def short_steps(threads: int, steps: int) -> int:
    """Return a checksum over the rewards and worlds of so many short steps."""
    envs = NPlusPlusVectorEnv(None, 14, num_threads=threads, levels="hazards", observations="game_state", frame_skip=1)
    observations, _ = envs.reset(seed=0)
    out = {"game_state": np.empty_like(observations["game_state"]), "rewards": np.empty(14)}
    actions, checksum = np.random.default_rng(1).integers(0, 6, (1000, 14)), 0
    for step in range(steps):
        envs.step(actions[step % 1000], out=out)
        checksum = zlib.crc32(out["rewards"], zlib.crc32(out["game_state"], checksum))
    checksum = zlib.crc32(envs.worlds.ninjas.view(np.uint8), checksum)
    envs.close()
    return checksum


def compare_short_steps(steps: int) -> int:
    """Print the checksums for some numbers of threads; return 1 if they differ."""
    found = set()
    for threads in (1, 2, 4, 7):
        began = time.perf_counter()
        found.add(checksum := short_steps(threads, steps))
        print(
            f"{threads} threads: {checksum:08x} after {steps:,} steps, {time.perf_counter() - began:.0f} s", flush=True
        )
    return int(len(found) > 1)


def main() -> int:
    """Print the table; return 1 if a row differs that must not, or a control does not."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", nargs="*", default=[], help="other interpreters")
    parser.add_argument("--processor", nargs="*", default=[], help="other processors")
    parser.add_argument("--one", choices=MODES, help="print the hashes of the first row in one mode alone")
    parser.add_argument("--short-steps", type=int, help="compare so many short steps instead")
    arguments = parser.parse_args()
    if arguments.short_steps:
        return compare_short_steps(arguments.short_steps)
    if arguments.one:
        print(*hashes(Way(), arguments.one))
        return 0
    wrong = 0
    for mode in MODES:
        expected = hashes(Way(), mode)
        print(f"{mode}: trajectory {expected.trajectory}, observations {expected.observations}")
        rows = {name: hashes(way, mode) for name, way in WAYS.items()}
        rows["a spawned process"] = spawned(Way(threads=2), mode)
        rows |= {python: elsewhere(mode, python) for python in arguments.python}
        rows |= {name: elsewhere(mode, **compiled_for(name)) for name in arguments.processor}
        controls = {name: hashes(way, mode) for name, way in CONTROLS.items()}
        for name, found in rows.items():
            wrong += found != expected
            print(f"  {name:<24}{'equal' if found == expected else f'DIFFERS {found}'}", flush=True)
        for name, found in controls.items():
            same = [field for field in Hashes._fields if getattr(found, field) == getattr(expected, field)]
            wrong += bool(same)
            print(f"  {name:<24}{f'EQUAL {same}' if same else 'differs, as it must'}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
