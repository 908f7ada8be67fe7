"""``nclone-env compare``: training runs side by side."""

from __future__ import annotations

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.cli.output import check_free, check_suffix
from nclone_env.errors import ConfigError
from nclone_env.train import require_training_extra


def compare(runs: Positional[tuple[Path, ...]], output: Path = Path("comparison.png")) -> int:
    """Compare training runs: print tables, and plot their learning curves.

    Runs that differ only in their seed are one group, named after the options that distinguish it from the others. Its
    values are means over seeds, with the range in brackets and as a band in the plot. The first table has a row for
    each level (sampled actions), the second for each group: success rates of the evaluation at the end of a run,
    recent success in training and on held-out levels, mean return and steps per second.

    Args:
        runs: folders of runs, or checkpoints.
        output: PNG file to write; an earlier comparison is replaced.

    Returns:
        The exit status: 1 if a folder was left out, which holds no checkpoint, no update so far, or the same run as
        another; else 0.
    """
    if not runs:
        raise ConfigError("runs: expected folders of runs, got none; pass for example runs/*")
    check_suffix("output", output, ".png")
    check_free(output, force=True)
    require_training_extra()
    from nclone_env.train import comparison_table, group_runs, level_table, read_runs, write_comparison

    found, reasons = read_runs(runs)
    for reason in reasons:
        sys.stderr.write(f"left out: {reason}\n")
    if not found:
        raise ConfigError("runs: expected at least one run to compare, got none")
    groups, title = group_runs(found)
    write_comparison(groups, output, title)
    levels = level_table(groups)
    print(f"{levels}\n\n{comparison_table(groups)}" if levels else comparison_table(groups))
    print(f"wrote {output}")
    return int(bool(reasons))
