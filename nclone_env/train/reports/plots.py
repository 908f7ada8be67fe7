"""What is written of runs: of one its learning curve and evaluation, of several their comparison, with plots."""

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nclone_env._files import unless_it_fails, write_file
from nclone_env.errors import ConfigError, optional_module
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import SILENT, OnLevel
from nclone_env.train.loop import TrainResult
from nclone_env.train.reports.comparison import (
    RunGroup,
    by_levels,
    comparison_table,
    differences,
    level_table,
    read_runs,
    selected,
    shown,
    statistics_table,
    write_csv,
)
from nclone_env.train.reports.report import MOST_LEVELS, evaluate_and_report, mean_success

_SUCCESS, _RETURN = "success of recent episodes", "mean return of recent episodes"
_COLUMNS = {
    "success_rate": "mean over levels",
    "min_success_rate": "worst level",
    "held_out_success": "held-out levels",
    "held_out_any": "held-out levels, any attempt",
}
"""Column of the learning curve to the label of its line; not every row has all of them."""
_GREY = "0.45"
_DASHED = {"color": _GREY, "linestyle": "--", "linewidth": 0.9}
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""They differ for people who see red and green alike (Okabe and Ito, 2008)."""
_MARKS = {"sampled": "o", "argmax": "D"}
_LONGEST = 60  # characters of the levels in a title
_APART = 0.09  # of the height: between two labels at the right edge


def write_learning_curve(
    rows: Sequence[Mapping[str, float]],
    path: Path,
    config: TrainConfig,
    random: float | None = None,
    evaluated: Mapping[str, float] | None = None,
) -> None:
    """Plot success rate, that on held-out levels, and mean return over timesteps as PNG.

    The success rate of random actions is a line, that of the evaluation at the end by mode, ``sampled`` and ``argmax``,
    a mark.
    """
    title = f"{_cut(shown(config.environment.levels))} · seed {config.seed} · {config.num_envs} environments"
    figure, ((upper,), (lower,)) = _panels(1, height=6)
    upper.set_title(title, parse_math=False)
    timesteps = [row["timesteps"] for row in rows]
    labels = _draw_columns(upper, rows)
    for mode, rate in (evaluated or {}).items():
        upper.plot(timesteps[-1:], [rate], _MARKS[mode], color="black", markersize=6, clip_on=False, zorder=5)
        labels.append((rate, f"evaluated, {mode}: {rate:.1%}", "black"))
    if random is not None:
        upper.axhline(random, **_DASHED)
        labels.append((random, f"random actions: {random:.1%}", _GREY))
    known = [row["timesteps"] for row in rows if not math.isnan(row["success_rate"])]
    if rows and (not known or known[0] > timesteps[0]):
        until = known[0] if known else timesteps[-1]
        upper.axvspan(0, until, color="0.94", linewidth=0)
        upper.text(until / 2, 0.5, "no episode\nhad ended yet", ha="center", va="center", color=_GREY, fontsize="small")
    lower.plot(timesteps, [row["mean_return"] for row in rows], color=_COLOURS[0])
    upper.set_xlim(0, timesteps[-1] if rows else 1)
    _label_at_the_edge(upper, labels)
    write_file(path, _png(figure))


def _cut(levels: str) -> str:
    """Return names of levels that have room in a title."""
    return levels if len(levels) <= _LONGEST else f"{levels[:_LONGEST]}..."


def _draw_columns(axes: Any, rows: Sequence[Mapping[str, float]]) -> list[tuple[float, str, str]]:
    """Draw a line for each column that there is; return value at its end, label and colour of each."""
    labels = []
    for (name, label), colour in zip(_COLUMNS.items(), _COLOURS):
        measured = [row for row in rows if not math.isnan(row.get(name, math.nan))]
        if measured:
            thin = name == "min_success_rate"
            mark = "." if len(measured) < len(rows) / 2 else ""
            times, values = [row["timesteps"] for row in measured], [row[name] for row in measured]
            axes.plot(times, values, color=colour, linewidth=0.8 if thin else 1.6, marker=mark)
            labels.append((values[-1], f"{label}: {values[-1]:.1%}", colour))
    return labels


def _label_at_the_edge(axes: Any, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write labels right of the axes at their values, apart from one another."""
    places: list[float] = []
    ordered = sorted(labels, key=lambda label: label[0])
    for value, _, _ in ordered:
        places.append(max(value, places[-1] + _APART) if places else value)
    over = max(0.0, (places[-1] if places else 0.0) - 1.0)
    beside = axes.get_yaxis_transform()
    for place, (value, text, colour) in zip(places, ordered, strict=True):
        line = (1.005, 1.025), (value, place - over)
        axes.plot(*line, transform=beside, color=colour, linewidth=0.6, clip_on=False, scalex=False, scaley=False)
        axes.text(
            1.03, place - over, text, transform=beside, color=colour, fontsize="small", va="center", parse_math=False
        )


def report_run(
    config: TrainConfig,
    result: TrainResult,
    episodes: int | None,
    video: bool,
    on_level: OnLevel = SILENT.on_level,
    say: Callable[[str], object] = str,
) -> None:
    """Plot the learning curve of a complete run, evaluate its policy, and add random actions to the plot.

    Arguments as of ``evaluate_and_report``. Without ``episodes`` a sample is played of thousands of levels.
    """
    folder = result.checkpoint.parent

    def plot(**known: Any) -> None:
        path = folder / "learning_curve.png"
        with unless_it_fails(path):
            write_learning_curve(result.curve, path, config, **known)

    plot()  # before the evaluation, which may be interrupted
    of_run = (config.evaluation.attempts, result.held_out, result.counters.timesteps)
    results = evaluate_and_report(
        result.policy, config.evaluated_environment, folder, episodes, config.seed, video, *of_run,
        most=MOST_LEVELS if episodes is None else None, num_threads=config.num_threads, on_level=on_level, say=say,
    )  # fmt: skip
    evaluated = {mode: mean_success(results[mode]) for mode in ("sampled", "argmax")}
    plot(random=mean_success(results["random"]), evaluated=evaluated)


def compare_runs(
    folders: Iterable[Path], where: Sequence[str], output: Path, csv: Path | None = None, rate: float = 0.9
) -> tuple[str, list[str], list[Path]]:
    """Compare runs: write all values to ``csv``, plot their learning curves to ``output``.

    Args:
        where: only runs with these options, each as OPTION=VALUE.
        rate: success rate for which timesteps and seconds of training are counted.

    Returns:
        Tables, as text, then what else differs between the runs; why folders were left out; and what was written:
        without the plot if it cannot be made.
    """
    found, reasons = read_runs(folders)
    if not found:
        raise ConfigError(f"runs: expected at least one run to compare, got none: {'; '.join(reasons)}")
    chosen = selected(found, where)
    if not chosen:
        raise ConfigError(
            f"where: expected options that a run has, got {' '.join(where)}, which none of {len(found)} has"
        )
    sets = by_levels(chosen)
    written = []
    with unless_it_fails(output):
        picture = comparison(sets)
        written = [output]
    if written:  # what cannot be written is an error
        write_file(output, picture)
    if csv is not None:
        write_csv(sets, csv)
        written.append(csv)
    parts = []
    for title, groups in sets:
        tables = filter(None, (level_table(groups), comparison_table(groups), statistics_table(groups, rate)))
        parts.append("\n\n".join([*([title] if len(sets) > 1 else []), *tables]))
    return "\n\n".join(filter(None, (*parts, differences(chosen)))), reasons, written


def comparison(sets: Sequence[tuple[str, Sequence[RunGroup]]]) -> bytes:
    """Plot success rate and mean return of groups over timesteps as PNG: the mean over seeds, and their range.

    Each set, what its runs have in common and their groups, has panels of its own, and its legend below them.
    """
    most = max(len(groups) for _, groups in sets)
    figure, axes = _panels(len(sets), 6 + 0.22 * math.ceil(most / 2))
    for (title, groups), upper, lower in zip(sets, *axes, strict=True):
        known = [spread.mean for group in groups if (spread := group.success("random"))]
        upper.set_title(_cut(title), parse_math=False)
        if known:
            rate = sum(known) / len(known)
            upper.axhline(rate, label=f"random actions, {rate:.1%}", **_DASHED)
        for group, colour in zip(groups, _colours(len(groups)), strict=True):
            count = len(group.runs)
            label = f"{group.label} ({count} seed{'s' if count > 1 else ''})"
            for panel, column in ((upper, "success_rate"), (lower, "mean_return")):
                band = group.band(column)
                panel.plot(band.timesteps, band.mean, label=label, color=colour)
                panel.fill_between(band.timesteps, band.least, band.most, color=colour, alpha=0.2, linewidth=0)
        upper.set_xlim(left=0)
        _put_legend_below(upper, lower)
    return _png(figure)


def _colours(count: int) -> list[Any]:
    """Return a colour for each of some lines: of many, those of a scale from dark to bright."""
    if count <= len(_COLOURS):
        return list(_COLOURS[:count])
    scale = optional_module("matplotlib", "train").colormaps["viridis"]
    return [scale(0.92 * number / (count - 1)) for number in range(count)]


def _put_legend_below(upper: Any, lower: Any) -> None:
    """Put the legend of the upper panel below the lower one."""
    handles, labels = upper.get_legend_handles_labels()
    columns = 2 if len(labels) > 3 and max(map(len, labels)) < 60 else 1
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": columns}
    legend = lower.legend(handles, labels, fontsize="small", frameon=False, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)  # names of files may contain dollar signs


def _panels(columns: int, height: float) -> tuple[Any, Any]:
    """Return a figure and its panels, [success rate, mean return][column]."""
    size = (8 if columns == 1 else 7 * columns, height)
    figure = optional_module("matplotlib.figure", "train").Figure(figsize=size, layout="constrained")
    ticker = optional_module("matplotlib.ticker", "train")
    axes = figure.subplots(2, columns, sharex="col", squeeze=False)
    for upper, lower in axes.T:
        upper.set(ylabel=_SUCCESS, ylim=(-0.02, 1.02))
        upper.yaxis.set_major_formatter(ticker.PercentFormatter(1.0))
        lower.set(xlabel="timesteps", ylabel=_RETURN)
        lower.xaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
        for panel in (upper, lower):
            panel.grid(alpha=0.3)
    return figure, axes


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
