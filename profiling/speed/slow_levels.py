"""The slowest levels that are accepted: as many entities of a kind as a level may have, in one place and scattered.

    python -m profiling.speed.slow_levels [--seconds 0.5]

Prints the frames a second of each kind, then what a level with the most of every kind costs: bytes of its file, seconds
to read it, to make an environment with each observation, and frames a second. Seconds are processor time of one core.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import nclone_env
from nclone_env.game import EXIT, EXIT_SWITCH, KINDS, MAX_TILE, NINJA, SWITCH_OF, Kind
from nclone_env.level import RawLevel, load_level, read_map, write_map
from nclone_env.level.level import MAX_RECORDS
from nclone_env.sim.trajectory import frames_per_second

START, IN_BOX = (88, 50), (20, 48)
OBSERVATIONS = (
    "game_state",
    "locals",
    "entity_states",
    "reachability",
    "action_outcomes",
    "action_mask",
    "graph",
    "player_frame",
)
CROWDS = tuple(kind for kind in KINDS if kind.number != EXIT_SWITCH and kind.has_entity)


def crowd(kind: Kind, count: int, scattered: bool, random: np.random.Generator) -> list[tuple[int, ...]]:
    """Return the records of many entities of a kind, with their switches."""
    places = random.integers((8, 8), (168, 96), (count, 2)) if scattered else np.tile(START, (count, 1))
    records, switches = [], []
    for number, (x, y) in enumerate(places.tolist()):
        mode = number % min(kind.modes, 4)
        records.append((kind.number, x, y, 2 * number % 8, mode))
        if kind.number in SWITCH_OF:
            (switches if kind.number == EXIT else records).append((SWITCH_OF[kind.number], x, y, 0, 0))
    return records + switches


def level_of(records: list[tuple[int, ...]], tiles: np.ndarray | None = None) -> RawLevel:
    """Return a level, with an exit if it has none."""
    exits = [] if any(record[0] == EXIT for record in records) else [(EXIT, 8, 8, 0, 0), (EXIT_SWITCH, 8, 8, 0, 0)]
    return RawLevel(np.zeros((23, 42)) if tiles is None else tiles, [(NINJA, *START, 0, 0), *exits, *records])


def cost(task: Callable[[], object]) -> str:
    """Return seconds of a task, and what it adds to the peak of the process's memory."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    task()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return f"{time.process_time() - began:.2f} s, +{grown / 1024:.0f} MiB"


def make(raw: RawLevel, observation: str) -> None:
    """Make an environment, reset it and step it once."""
    envs = nclone_env.NPlusPlusVectorEnv(levels=(raw,), observations=(observation,), num_envs=1)
    envs.reset(seed=0)
    envs.step(np.zeros(1, np.int64))
    envs.close()


def everything(random: np.random.Generator) -> RawLevel:
    """Return a level with the most entities of every kind, on random tiles; mines and gold fill up what is left.

    The ninja lives: it is in a box, which no entity is in.
    """
    kinds = sorted(CROWDS, key=lambda kind: (kind.number != EXIT, kind.most))
    records: list[tuple[int, ...]] = []
    for kind in kinds:
        records += crowd(kind, kind.most, True, random)
    tiles = np.where(random.random((23, 42)) < 0.2, random.integers(0, MAX_TILE + 1, (23, 42)), 0)
    tiles[:, :8], tiles[10:12, 2:5] = 1, 0
    apart = [(kind, x if x >= 40 else 40 + 3 * x % 128, *rest) for kind, x, *rest in records[: MAX_RECORDS - 1]]
    return RawLevel(tiles, [(NINJA, *IN_BOX, 0, 0), *apart])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="processor time of each measurement")
    seconds, random = parser.parse_args().seconds, np.random.default_rng(0)
    print(f"{'kind':<16}{'most':>6}{'in one place':>16}{'scattered':>12}   frames/s")
    for kind in CROWDS:
        most = min(kind.most, MAX_RECORDS - 3)  # besides ninja, exit and switch
        one, other = (frames_per_second(level_of(crowd(kind, most, s, random)), seconds) for s in (False, True))
        print(f"{kind.name:<16}{most:>6}{one:>16,.0f}{other:>12,.0f}", flush=True)
    raw = everything(random)
    data = write_map(raw)
    print(f"\nthe most of every kind: {len(raw.records)} records, {len(data)} bytes")
    print(f"read      {cost(lambda: load_level(read_map(data)))}")
    print(f"play      {frames_per_second(raw, seconds):,.0f} frames/s")
    for name in OBSERVATIONS:
        make(load_level("jumps/01-stairs").raw, name)  # compiles
        print(f"{name:<14}{cost(lambda name=name: make(raw, name))}", flush=True)


if __name__ == "__main__":
    main()
