"""What level weights and evaluations on held-out levels cost an update, in processor time.

The levels are copies of the built-in ones that differ by a piece of gold, so that they can be as many as wanted. Runs
with few and with many levels take turns, update by update.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from profiling.measure import describe, timed
from profiling.training.speed import prepared_run

_GOLD = 2


def write_levels(folder: Path, count: int) -> Path:
    """Write ``count`` different levels to a new folder and return it."""
    from nclone_env.level.catalog import basic_sets
    from nclone_env.level.formats.map_bytes import write_map
    from nclone_env.level.load import load_level

    folder.mkdir()
    names = [name for names in basic_sets().values() for name in names]
    bases = [load_level(name).raw for name in names]
    for number in range(count):
        base, place = bases[number % len(bases)], number // len(bases)
        gold = np.array([[_GOLD, 8 + place % 150, 8 + place // 150, 0, 0]], base.records.dtype)
        changed = replace(base, records=np.concatenate([base.records, gold]))
        (folder / f"{number:05}.map").write_bytes(write_map(changed))
    return folder


def one_update(run: Any) -> dict[str, float]:
    """Make an update; return the processor seconds of all of it and of what depends on the number of levels."""
    from nclone_env.train.runs import steps

    taken: dict[str, float] = {}

    def measured(name: str, call: Callable[[], Any]) -> Any:
        result, taken[name] = timed(call, time.process_time)
        return result

    update = run.selection.update
    run.selection.update = lambda episodes: measured("selection", lambda: update(episodes))
    started = time.process_time()
    steps.collect_rollout(run)
    steps.compute_returns(run)
    steps.update_policy(run)
    measured("summary", run.statistics.summary)
    taken["update"] = time.process_time() - started
    run.selection.update = update
    return taken


def main(levels: int = 2000, updates: int = 40, num_envs: int = 256, held_out: int = 29) -> None:
    """Print the medians over updates.

    Args:
        levels: many levels.
        updates: updates of each run.
        num_envs: environments of each run.
        held_out: number of held-out levels, played 16 times each.
    """
    print(describe())
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        few, many = (write_levels(Path(folder, f"{count}"), count) for count in (16, levels))
        evaluated = write_levels(Path(folder, "evaluated"), 2 * held_out)
        cases = {
            "16 levels, uniform": (few, {}),
            f"{levels:,} levels, uniform": (many, {}),
            f"{levels:,} levels, progress": (many, {"curriculum": "progress"}),
            f"{held_out} levels and {held_out} held out": (evaluated, {"held_out": 0.5}),
        }
        runs = {
            name: stack.enter_context(prepared_run((str(path),), num_envs=num_envs, **fields))
            for name, (path, fields) in cases.items()
        }
        taken = [{name: one_update(run) for name, run in runs.items()} for _ in range(updates)]
        print(f"{'medians':<32}{'update':>12}{'selection':>12}{'summary':>12}")
        for name in cases:
            parts = ("update", "selection", "summary")
            medians = [1e6 * float(np.median([turn[name][part] for turn in taken])) for part in parts]
            print(f"{name:<32}" + "".join(f"{median:>9,.0f} us" for median in medians))
        run = runs[next(reversed(cases))]
        cost = [timed(partial(run.held_out.play, run.workers, n), time.process_time)[1] for n in range(3)]
        update = float(np.median([turn[next(reversed(cases))]["update"] for turn in taken]))
        print(f"one evaluation: {np.median(cost):.2f} s, as much as {np.median(cost) / update:.1f} updates")


if __name__ == "__main__":
    tyro.cli(main)
