"""Human-readable reports of a run: a table of success rates, the same as a file."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env._files import write_rows
from nclone_env._table import table
from nclone_env.train.collect.evaluate import LevelResult
from nclone_env.train.runs.warm_start import WarmStart

RESULT_COLUMNS = (
    *("timesteps", "level", "mode", "episodes"),
    *("success_rate", "death_rate", "mean_return", "mean_frames", "best_frames"),
)
"""Columns of ``evaluation.csv``: timesteps of training, then fields of a :class:`LevelResult`."""


def success_table(
    results: Mapping[Any, Sequence[LevelResult]],
    known_frames: Mapping[str, int],
    attempts: int = 1,
    held_out: Sequence[bool] = (),
) -> str:
    """Format success rates as a text table: one row per level and their mean, one column per mode.

    Further columns are the probability that any of several attempts in the first mode succeeds, the share of its
    episodes that end in a death, their mean frames, and the frames of the fastest win and the shortest known solution.

    Args:
        results: mode to the results of all levels, in the same order for every mode.
        known_frames: frames of the shortest known solution by level name.
        attempts: number of attempts of which any has to succeed, at most the episodes of a level; 1: no such column.
        held_out: for each level whether it was held out in training. These levels are marked and have means of their
            own.
    """
    first, *_ = results.values()
    marks = np.zeros(len(first), np.bool_) if not any(held_out) else np.array(held_out, np.bool_)
    groups = {"mean": np.ones(len(first), np.bool_)}
    if marks.any() and not marks.all():
        groups |= {"mean, trained on": ~marks, "mean, held out": marks}
    any_of = (f"any of {attempts}",) if attempts > 1 else ()
    rows = []
    for same_level, mark in zip(zip(*results.values()), marks):
        wins = [result.best_frames for result in same_level if result.best_frames is not None]
        known = str(known_frames.get(same_level[0].level, "-"))
        frames = (f"{same_level[0].mean_frames:.0f}", str(min(wins, default="-")), known, "held out" if mark else "")
        rows.append((same_level[0].level, *_rates([[result] for result in same_level], attempts), *frames))
    for name, members in groups.items():
        chosen = [list(itertools.compress(each, members)) for each in results.values()]
        rows.append((name, *_rates(chosen, attempts)))
    numbers = (f"{title:>8}" for title in (*results, *any_of, "deaths", "frames", "best win", "known"))
    lines = table(("level", *numbers, ""), rows)
    return "\n".join((*lines, f"{first[0].episodes} episodes per level; deaths and frames of {first[0].mode} ones"))


def _rates(results: Sequence[Sequence[LevelResult]], attempts: int) -> list[str]:
    """Return the cells of the success rate of each mode, then of any attempt and of deaths in the first mode."""
    rates = [mean_success(each) for each in results]
    if attempts > 1:
        rates.append(float(np.mean([result.any_of(attempts) for result in results[0]])))
    rates.append(float(np.mean([result.death_rate for result in results[0]])))
    return [f"{rate:.1%}" for rate in rates]


def mean_success(results: Sequence[LevelResult]) -> float:
    """Return the mean success rate over levels, 0 to 1."""
    return float(np.mean([result.success_rate for result in results]))


def write_results(results: Mapping[Any, Sequence[LevelResult]], timesteps: int, path: Path) -> None:
    """Write success rates after so many timesteps of training as CSV: one row for each mode and level."""
    every = itertools.chain.from_iterable(results.values())
    rows = ((timesteps, *(getattr(result, name) for name in RESULT_COLUMNS[1:])) for result in every)
    write_rows(path, (RESULT_COLUMNS, *rows))


def warm_start_text(started: WarmStart) -> str:
    """Return what a warm start used, and what came of it, as lines of text."""
    cloning, (trajectories, _, skipped) = started.cloning, started.demonstrated
    lines = [f"not used: {source}: {reason}" for source, reason in skipped.items()]
    held_out = "" if np.isnan(cloning.held_out_loss) else f", {cloning.held_out_loss:.3f} on held-out steps"
    lines.append(
        f"cloned {len(trajectories)} demonstrations, {cloning.steps:,} steps, in {cloning.epochs} epochs: "
        f"cross-entropy {cloning.loss:.3f} nats{held_out}, {cloning.accuracy:.1%} of the actions most probable"
    )
    return "\n".join(lines)
