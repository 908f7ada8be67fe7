"""Runs side by side. Runs that differ only in their seed are one group, and its values are means over seeds."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nclone_env._files import open_regular, write_rows
from nclone_env._table import table
from nclone_env.errors import CheckpointError, ConfigError, did_you_mean, plain
from nclone_env.options import flat
from nclone_env.train.policies.checkpoint import check_results, load_checkpoint, restore_config, translated
from nclone_env.train.policies.files import checkpoint_file
from nclone_env.train.reports.report import RESULT_COLUMNS
from nclone_env.train.reports.statistics import interquartile_mean, interval, training_seconds
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.record import MADE_BY, read_recipe

_OF_NO_GROUP = ("seed", "output", "name", "num_threads", "checkpoint_interval", "track")
"""Fields of the configuration that do not say what was tried."""
_POINTS = 400
_MOST_BYTES = 1 << 26  # of a table


@dataclass(frozen=True)
class RunRecord:
    """What is known of a run."""

    folder: Path
    config: Mapping[str, Any]
    """Options of the ``TrainConfig`` by key."""
    curve: Sequence[Mapping[str, float]]
    """Rows of the learning curve."""
    success: Mapping[str, Mapping[str, float]]
    """Success rate by mode and level; empty if the run was not evaluated."""
    made: Mapping[str, str] = field(default_factory=dict)
    """Versions, commit and processor, and the digest of each level; empty without a ``run.toml``."""

    def reached(self, rate: float) -> tuple[float, float] | None:
        """Return timesteps and seconds of training until the recent success was at least a rate; None if it never was.

        It is that on held-out levels if there are any.
        """
        column = "held_out_success" if len(_known(self.curve, "held_out_success")) else "success_rate"
        for row, seconds in zip(self.curve, training_seconds(self.curve)):
            if row.get(column, np.nan) >= rate:
                return row.get("timesteps", np.nan), float(seconds)
        return None


class Spread(NamedTuple):
    """A value of several runs."""

    mean: float
    least: float
    most: float


class Band(NamedTuple):
    """A column of the learning curves of several runs: (k,) float64 arrays."""

    timesteps: np.ndarray
    mean: np.ndarray
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True)
class RunGroup:
    """Runs with the same configuration but for the seed."""

    label: str
    """What distinguishes the group from the others."""
    runs: Sequence[RunRecord]

    @cached_property
    def timesteps(self) -> int:
        """Timesteps of the shortest run."""
        return int(min(run.curve[-1]["timesteps"] for run in self.runs))

    def band(self, column: str) -> Band:
        """Return a column at timesteps that all runs have reached, between the rows of each by linear interpolation.

        Runs without a value, because no episode has ended yet, are left out; without any the arrays are empty.
        """
        curves = [curve for run in self.runs if len(curve := _known(run.curve, column))]
        if not curves:
            return Band(*np.empty((4, 0)))
        first, last = max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves)
        steps = np.linspace(first, max(first, last), _POINTS)
        values = np.array([np.interp(steps, *curve.T) for curve in curves])
        return Band(steps, values.mean(axis=0), values.min(axis=0), values.max(axis=0))

    def last(self, column: str) -> Spread | None:
        """Return the last value of a column of the learning curves; None if a run has none."""
        values = [_known(run.curve, column)[-1:, 1] for run in self.runs]
        return _spread(np.concatenate(values)) if all(map(len, values)) else None

    def success(self, mode: str, level: str | None = None) -> Spread | None:
        """Return the evaluated success rate of the runs that have one, mean over levels or on one; None without any."""
        rates = [run.success.get(mode, {}) for run in self.runs]
        chosen = [list(each.values()) if level is None else [each[level]] if level in each else [] for each in rates]
        means = [np.mean(each) for each in chosen if each]
        return _spread(np.array(means)) if means else None

    def interquartile(self, mode: str) -> Spread | None:
        """Return the interquartile mean of the evaluated success over levels and seeds, with its 95 % interval.

        Of one seed the interval is the mean; None without an evaluation.
        """
        found = [run.success[mode] for run in self.runs if run.success.get(mode)]
        levels = [level for level in found[0] if all(level in each for each in found)] if found else []
        if not levels:
            return None
        rates = np.array([[each[level] for level in levels] for each in found])
        mean = interquartile_mean(rates)
        return Spread(mean, *(interval(rates) if len(rates) > 1 else (mean, mean)))

    def reached(self, rate: float) -> list[tuple[float, float]]:
        """Return ``RunRecord.reached`` of the runs that did."""
        return [found for run in self.runs if (found := run.reached(rate)) is not None]


def read_runs(folders: Iterable[Path]) -> tuple[list[RunRecord], list[str]]:
    """Return what is known of the runs in folders, and why folders were left out."""
    runs: dict[str, RunRecord] = {}
    reasons = []
    for folder in folders:
        try:
            path = checkpoint_file(folder)
            content = load_checkpoint(path)
            config = flat(restore_config(content))
            check_results(content)
            results = _read_results(path.parent / "evaluation.csv", content.counters.get("timesteps", 0))
            with translated(path):
                run = RunRecord(path.parent, config, Rows.of(content.curve), results, _made(path.parent))
        except CheckpointError as error:
            reasons.append(str(error))
            continue
        other = runs.setdefault(repr((run.config["seed"], _tried(run.config))), run) if run.curve else None
        if other is None:
            reasons.append(f"{path}: no update was made yet")
        elif other is not run:
            reasons.append(f"{path}: the same options and seed as {other.folder}")
    return list(runs.values()), reasons


def group_runs(runs: Sequence[RunRecord]) -> tuple[list[RunGroup], str]:
    """Return the groups of runs, in the order of the numbers that distinguish them, and text that names all levels."""
    keys = [_tried(run.config) for run in runs]
    names = dict.fromkeys(name for key in keys for name in key)
    differing = [name for name in names if any(key.get(name) != keys[0].get(name) for key in keys)]
    short = {name: _as_text([key.get(name) for key in keys]) for name in differing}
    groups: dict[str, list[RunRecord]] = {}
    tried = [(run, [key.get(name) for name in differing]) for run, key in zip(runs, keys)]
    tried.sort(key=lambda each: [value if isinstance(value, int | float) else -np.inf for value in each[1]])
    for run, values in tried:
        label = ", ".join(f"{name} {short[name](value)}" for name, value in zip(differing, values))
        groups.setdefault(label or "all runs", []).append(run)
    title = "several level sets" if "levels" in differing else shown(keys[0].get("levels"))
    return [RunGroup(label, members) for label, members in groups.items()], title


def _as_text(values: Sequence[Any]) -> Callable[[Any], str]:
    """Return what writes the values of an option so that different ones differ: short if that is enough."""
    short = len({shown(value) for value in values}) == len({repr(value) for value in values})
    return shown if short else repr


def by_levels(runs: Sequence[RunRecord]) -> list[tuple[str, list[RunGroup]]]:
    """Return the groups of runs on each set of levels, and text that names the levels."""
    parts: dict[str, list[RunRecord]] = {}
    for run in runs:
        parts.setdefault(repr(run.config.get("levels")), []).append(run)
    return [(title, groups) for groups, title in map(group_runs, parts.values())]


def selected(runs: Sequence[RunRecord], conditions: Sequence[str]) -> list[RunRecord]:
    """Return the runs whose options have values, such as ``levels=first-steps`` and ``learning_rate=0.001``."""
    found = list(runs)
    for condition in conditions:
        name, equals, wanted = condition.partition("=")
        name = name.strip().replace("-", "_")
        options = {key for run in runs for key in _tried(run.config)} | {"seed"}
        if not equals or name not in options:
            hint = did_you_mean(name, options)
            raise ConfigError(f"where: expected OPTION=VALUE with an option of these runs, got {condition!r}{hint}")
        found = [run for run in found if wanted.strip() in _spellings({**run.config, **_tried(run.config)}.get(name))]
    return found


def _spellings(value: Any) -> set[str]:
    """Return the texts that stand for a value of an option."""
    if isinstance(value, list | tuple):
        return {",".join(map(str, value)), " ".join(map(str, value)), shown(value), *map(str, value)}
    return {str(value), shown(value)}


def differences(runs: Sequence[RunRecord]) -> str:
    """Return a line for each version, commit, processor or level that is not the same in all runs; empty if all are."""
    lines = []
    for name in dict.fromkeys(name for run in runs for name in run.made):
        folders: dict[str, list[str]] = {}
        for run in runs:
            if name in run.made:
                folders.setdefault(run.made[name], []).append(plain(run.folder))
        if len(folders) > 1:
            said = (f"{plain(value) or 'unknown'} in {' '.join(each)}" for value, each in folders.items())
            lines.append(f"{plain(name)} differs: {', '.join(said)}")
    return "\n".join(lines)


def _made(folder: Path) -> dict[str, str]:
    try:
        made = read_recipe(folder).made
    except ConfigError:  # a run of an earlier version has no record
        return {}
    levels = made.get("levels", {})
    named = {f"level {name}": str(digest)[:8] for name, digest in levels.items()} if isinstance(levels, dict) else {}
    return {**{name: str(made[name]) for name in MADE_BY if name in made}, **named}


def comparison_table(groups: Sequence[RunGroup]) -> str:
    """Format one row for each group: success rates and returns as means over seeds with their range."""
    columns: dict[str, list[str]] = {
        "runs": [group.label for group in groups],
        "seeds": [str(len(group.runs)) for group in groups],
        "timesteps": [f"{group.timesteps:,}" for group in groups],
        **{mode: [_percent(group.success(mode)) for group in groups] for mode in ("sampled", "argmax", "random")},
        "training": [_percent(group.last("success_rate")) for group in groups],
        "held out": [_percent(group.last("held_out_success")) for group in groups],
        "return": [_number(group.last("mean_return")) for group in groups],
        "steps/s": [_rate(group) for group in groups],
    }
    known = {name: cells for name, cells in columns.items() if any(cell != "-" for cell in cells)}
    return "\n".join(table(list(known), zip(*known.values())))


def level_table(groups: Sequence[RunGroup]) -> str:
    """Format the success rate of sampled actions; empty if no level was evaluated.

    A row is one of the levels, a column one of the groups, or the other way round if these are more.
    """
    names = dict.fromkeys(name for group in groups for run in group.runs for name in run.success.get("sampled", {}))
    if not names:
        return ""
    rows = [("level", *(group.label for group in groups))]
    rows += [(name, *(_percent(group.success("sampled", name)) for group in groups)) for name in names]
    if len(groups) > len(names):
        rows = [("runs", *names), *list(zip(*rows))[1:]]
    return "\n".join(table(rows[0], rows[1:]))


def statistics_table(groups: Sequence[RunGroup], rate: float) -> str:
    """Format one row for each group: interquartile means with their intervals, and what training to a rate took."""
    reached = [group.reached(rate) for group in groups]
    columns: dict[str, list[str]] = {
        "runs": [group.label for group in groups],
        **{f"{mode}, iqm": [_percent(group.interquartile(mode)) for group in groups] for mode in ("sampled", "argmax")},
        f"reached {rate:.0%}": [f"{len(found)} of {len(group.runs)}" for found, group in zip(reached, groups)],
        "timesteps": [_mean_of([steps for steps, _ in found], 0) for found in reached],
        "seconds": [_mean_of([seconds for _, seconds in found], 1) for found in reached],
    }
    return "\n".join(table(list(columns), zip(*columns.values())))


def _mean_of(values: Sequence[float], digits: int) -> str:
    mean = np.mean(values) if values else np.nan
    return f"{mean:,.{digits}f}" if np.isfinite(mean) else "-"


def write_csv(sets: Sequence[tuple[str, Sequence[RunGroup]]], path: Path) -> None:
    """Write a row for each group and column: mean, least and most over seeds, with all digits."""
    rows: list[tuple[Any, ...]] = [("levels", "runs", "seeds", "timesteps", "column", "mean", "least", "most")]
    for title, groups in sets:
        for group in groups:
            spreads = {mode: group.success(mode) for mode in ("sampled", "argmax", "random")}
            spreads |= {f"{mode} iqm": group.interquartile(mode) for mode in ("sampled", "argmax")}
            spreads |= {column: group.last(column) for column in ("success_rate", "held_out_success", "mean_return")}
            for column, spread in spreads.items():
                if spread is not None:
                    rows.append((title, group.label, len(group.runs), group.timesteps, column, *spread))
    write_rows(path, rows)


def _read_results(path: Path, timesteps: int) -> dict[str, dict[str, float]]:
    """Return success rates after so many timesteps, of no other evaluation, by mode and level; empty without any."""
    results: dict[str, dict[str, float]] = {}
    if path.exists():
        try:
            with open_regular(path, _MOST_BYTES) as file:
                text = file.read().decode()
            for row in csv.DictReader(text.splitlines()):
                if int(row["timesteps"]) != timesteps:
                    continue
                rate = float(row["success_rate"])
                if not 0 <= rate <= 1:
                    raise ValueError(f"a success rate of {rate}")
                results.setdefault(plain(row["mode"]), {})[plain(row["level"])] = rate
        except OSError as error:
            raise CheckpointError(f"{path}: expected a table of results, got {error.strerror}") from error
        except (ValueError, TypeError, KeyError, csv.Error) as error:  # UnicodeDecodeError is a ValueError
            expected = f"a table with the columns {', '.join(RESULT_COLUMNS)}"
            raise CheckpointError(f"{path}: expected {expected}, got another; evaluate the run again") from error
    return results


def _known(curve: Sequence[Mapping[str, float]], column: str) -> np.ndarray:
    """Return (k, 2): timesteps and values of the rows that have a column."""
    rows = [(row["timesteps"], row[column]) for row in curve if not np.isnan(row.get(column, np.nan))]
    return np.array(rows, np.float64).reshape(-1, 2)


def _spread(values: np.ndarray) -> Spread:
    return Spread(float(values.mean()), float(values.min()), float(values.max()))


def _tried(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration that say what was tried; those of the reward are named on their own."""
    fields = {name: value for name, value in config.items() if name not in _OF_NO_GROUP}
    reward = fields.pop("reward", {})
    return fields | reward


def shown(value: Any) -> str:
    """Return the value of an option as text, a float with at most three digits."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return plain(f"{value:.3g}" if isinstance(value, float) and value != round(value, 1) else text)


def _percent(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    same = spread.least == spread.most
    return f"{spread.mean:.1%}" if same else f"{spread.mean:.1%} ({spread.least:.1%}-{spread.most:.1%})"


def _number(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.mean:.2f}"


def _rate(group: RunGroup) -> str:
    rates = [rate for run in group.runs for rate in _known(run.curve, "steps_per_second")[:, 1]]
    return f"{np.median(rates):,.0f}" if rates else "-"
