"""The file ``levels.csv`` of a run: what was measured on each of its levels."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nclone_env._files import write_file
from nclone_env.train.collect.episodes import EpisodeStatistics
from nclone_env.train.collect.held_out import HeldOutLevels
from nclone_env.train.collect.selection import EpisodeSelection

COLUMNS = (
    "level",
    "held_out",
    "episodes",
    "success_rate",
    "mean_return",
    "mean_frames",
    "weight",
    "attempts",
    "any",
)


def write_level_table(
    path: Path, statistics: EpisodeStatistics, selection: EpisodeSelection, held_out: HeldOutLevels | None
) -> None:
    """Write one row for each level, training levels first; what is unknown is left empty.

    Args:
        path: file to replace as a whole.
        statistics: recent episodes of the training levels.
        selection: weights of the training levels.
        held_out: latest attempts on the held-out levels, if there are any.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in (*_training_rows(statistics, selection), *(_held_out_rows(held_out) if held_out else ())):
        table.writerow([_text(row.get(name)) for name in COLUMNS])
    write_file(path, text.getvalue().encode())


def _training_rows(statistics: EpisodeStatistics, selection: EpisodeSelection) -> Iterator[dict[str, Any]]:
    weights = selection.weights
    success, total, frames = (statistics.means(name) for name in ("success", "total", "frames"))
    for index, name in enumerate(statistics.level_names):
        yield {
            "level": name,
            "held_out": "no",
            "episodes": int(statistics.counts[index]),
            "success_rate": success[index],
            "mean_return": total[index],
            "mean_frames": frames[index],
            "weight": None if weights is None else weights[index],
        }


def _held_out_rows(held_out: HeldOutLevels) -> Iterator[dict[str, Any]]:
    for name, result in zip(held_out.level_names, held_out.results, strict=True):
        row: dict[str, Any] = {"level": name, "held_out": "yes"}
        if result["attempts"]:
            row |= {
                "success_rate": result["wins"] / result["attempts"],
                "mean_return": result["total"],
                "mean_frames": result["frames"],
                "attempts": int(result["attempts"]),
                "any": "yes" if result["wins"] else "no",
            }
        yield row


def _text(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
