"""Plots of runs: the learning curve of one, the mean and the range over seeds of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nclone_env._files import fill_file
from nclone_env._optional import optional_module
from nclone_env.train.config import TrainConfig
from nclone_env.train.reports.comparison import Band, RunGroup, shown

_SUCCESS, _RETURN = "success rate of recent episodes", "mean return of recent episodes"
_OCCASIONAL = {
    "held_out_success": "held-out levels",
    "held_out_any": "held-out levels, any attempt",
    "new_level_success": "new levels, first episodes",
}
"""Column of the learning curve that not every row has to the label of its line."""
_DASHED = {"color": "0.45", "linestyle": "--", "linewidth": 0.9}


def write_learning_curve(
    rows: Sequence[Mapping[str, float]], path: Path, config: TrainConfig, random: float | None = None
) -> None:
    """Plot success rate, that on held-out levels, and mean return over timesteps as PNG.

    Args:
        rows: rows of the learning curve.
        path: PNG file to write.
        config: configuration of the run, for the title.
        random: success rate of random actions on its levels, drawn as a line; None: not measured.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    title = f"{shown(config.environment.levels)} · seed {config.seed} · {config.num_envs} environments"
    figure, upper, lower = _panels(title, random)
    timesteps = [row["timesteps"] for row in rows]
    upper.plot(timesteps, [row["success_rate"] for row in rows], label="mean over levels")
    upper.plot(timesteps, [row["min_success_rate"] for row in rows], label="worst level", linewidth=0.8)
    for name, label in _OCCASIONAL.items():
        measured = [row for row in rows if name in row]
        if measured:
            upper.plot([row["timesteps"] for row in measured], [row[name] for row in measured], label=label, marker=".")
    lower.plot(timesteps, [row["mean_return"] for row in rows])
    _save(figure, upper, path)


def write_comparison(groups: Sequence[RunGroup], path: Path, title: str) -> None:
    """Plot success rate and mean return of groups over timesteps as PNG: the mean over seeds, and their range.

    Args:
        groups: runs that differ only in their seed, in each.
        path: PNG file to write.
        title: what all runs have in common.

    Raises:
        MissingExtraError: if matplotlib is not installed.
    """
    known = [spread.mean for group in groups if (spread := group.success("random"))]
    figure, upper, lower = _panels(title, sum(known) / len(known) if known else None)
    for group in groups:
        count = len(group.runs)
        label = f"{group.label} ({count} seed{'s' if count > 1 else ''})"
        for axes, column in ((upper, "success_rate"), (lower, "mean_return")):
            _draw_band(axes, group.band(column), label)
    _save(figure, upper, path)


def _draw_band(axes: Any, band: Band, label: str) -> None:
    (line,) = axes.plot(band.timesteps, band.mean, label=label)
    axes.fill_between(band.timesteps, band.least, band.most, color=line.get_color(), alpha=0.2, linewidth=0)


def _panels(title: str, random: float | None) -> tuple[Any, Any, Any]:
    """Return a figure and its panels for success rate and mean return."""
    figure = optional_module("matplotlib.figure", "train").Figure(figsize=(8, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.set_title(title, parse_math=False)
    upper.set(ylabel=_SUCCESS, ylim=(-0.02, 1.02))
    lower.set(xlabel="timesteps", ylabel=_RETURN)
    lower.xaxis.set_major_formatter(optional_module("matplotlib.ticker", "train").EngFormatter(sep=" "))
    if random is not None:
        upper.axhline(random, label=f"random actions, {random:.1%}", **_DASHED)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    return figure, upper, lower


def _save(figure: Any, upper: Any, path: Path) -> None:
    upper.set_xlim(left=0)
    for text in upper.legend(loc="best", fontsize="small").get_texts():
        text.set_parse_math(False)  # names of files may contain dollar signs
    fill_file(path, lambda temporary: figure.savefig(temporary, dpi=120, format="png"))
