"""``nclone-env compare``: training runs side by side."""

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.cli.output import check_free, check_suffix
from nclone_env.errors import ConfigError
from nclone_env.train import require_training_extra


def compare(
    runs: Positional[tuple[Path, ...]],
    where: tuple[str, ...] = (),
    output: Path = Path("comparison.png"),
    csv: Path | None = None,
    rate: float = 0.9,
) -> int:
    """Compare training runs: print tables, and plot their learning curves.

    Runs that differ only in their seed are one group, named after the options that distinguish it from others on the
    same levels. Its values are means over seeds, with the range in brackets and as a band in the plot. The first table
    has a row for each level (sampled actions), the second for each group: success rates of the evaluation at the end of
    a run, recent success in training and on held-out levels, mean return and steps per second. The third has the
    interquartile mean of these rates over levels and seeds, with the 95 % interval of a stratified bootstrap, and what
    training took until the recent success reached a rate. Runs on other levels have tables and panels of their own.

    Args:
        runs: folders of runs, or checkpoints.
        where: only runs with these options, such as levels=first-steps learning_rate=0.001.
        output: PNG file to write; an earlier comparison is replaced.
        csv: file to write the values to as well, with all digits.
        rate: success rate for which the third table counts timesteps and seconds, above 0 and at most 1.

    Returns:
        The exit status: 1 if a folder was left out, which holds no checkpoint, no update so far, or the same run as
        another; else 0.
    """
    if not runs:
        raise ConfigError("runs: expected folders of runs, got none; pass for example runs/*")
    check_suffix("output", output, ".png")
    check_free(output, force=True)
    if csv is not None:
        check_suffix("csv", csv, ".csv")
    if not 0 < rate <= 1:
        raise ConfigError(f"rate: expected a number above 0 and at most 1, got {rate}")
    require_training_extra()
    from nclone_env.train import (
        by_levels,
        comparison_table,
        level_table,
        read_runs,
        selected,
        statistics_table,
        write_comparison,
        write_csv,
    )

    found, reasons = read_runs(runs)
    for reason in reasons:
        sys.stderr.write(f"left out: {reason}\n")
    if not found:
        raise ConfigError("runs: expected at least one run to compare, got none")
    chosen = selected(found, where)
    if not chosen:
        raise ConfigError(
            f"where: expected options that a run has, got {' '.join(where)}, which none of {len(found)} has"
        )
    sets = by_levels(chosen)
    write_comparison(sets, output)
    for title, groups in sets:
        tables = filter(None, (level_table(groups), comparison_table(groups), statistics_table(groups, rate)))
        print("\n\n".join([*([title] if len(sets) > 1 else []), *tables]), end="\n\n" if len(sets) > 1 else "\n")
    if csv is not None:
        write_csv(sets, csv)
    print(f"wrote {output}" + (f" and {csv}" if csv is not None else ""))
    return int(bool(reasons))
