"""Progress of a run: statistics of recent episodes per level, and the learning curve."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from nclone_env._files import write_file
from nclone_env.train.environments import finished_episodes

Row = dict[str, float]
"""A row of the learning curve: column name to value."""

EpisodeField = Literal["success", "returns", "frames"]
"""Fields of ``FinishedEpisodes`` that are averaged."""


class EpisodeStatistics:
    """Outcomes of the most recent episodes of each level, in ring buffers of fixed size.

    Args:
        level_names: names of the L levels.
        window: number of recent episodes kept per level.
        longest: steps of the longest possible episode. Before that many steps only short episodes can have ended,
            most of them wins, so the means are biased and reported as nan.
    """

    def __init__(self, level_names: Sequence[str], window: int, longest: int = 0):
        self.level_names = tuple(level_names)
        self._window, self._longest, self._steps = window, longest, 0
        shape = (len(self.level_names), window)
        self._counts = np.zeros(shape[0], np.int64)
        self._recent: dict[EpisodeField, np.ndarray] = {
            "success": np.zeros(shape, np.float32),
            "returns": np.zeros(shape, np.float64),
            "frames": np.zeros(shape, np.int64),
        }

    def add(self, info: Mapping[str, Any]) -> int:
        """Record the episodes that ended in a vector step, given its ``info``; return their number."""
        self._steps += 1
        finished = finished_episodes(info)
        if finished is None:
            return 0
        for episode, level in enumerate(finished.levels):
            slot = self._counts[level] % self._window
            for name, ring in self._recent.items():
                ring[level, slot] = getattr(finished, name)[episode]
            self._counts[level] += 1
        return len(finished.indices)

    def means(self, name: EpisodeField) -> np.ndarray:
        """Return the mean of a field over the recent episodes of each level, (L,); nan where undefined."""
        ring = self._recent[name]
        if self._steps < self._longest:
            return np.full(len(ring), np.nan)
        kept = np.minimum(self._counts, ring.shape[1])
        sums = ring.sum(axis=1)  # unused slots hold 0
        return np.divide(sums, kept, out=np.full(len(kept), np.nan), where=kept > 0)

    def solved(self, success_rate: float) -> bool:
        """Return whether every level has a full window of episodes and at least this success rate over it."""
        full = bool((self._counts >= self._window).all())
        return full and bool((self.means("success") >= success_rate).all())

    def summary(self) -> Row:
        """Return the mean over levels of each statistic, and the lowest success rate of a level."""
        success = self.means("success")
        known = success[~np.isnan(success)]
        return {
            "success_rate": _mean_of_known(success),
            "min_success_rate": float(known.min()) if len(known) else float("nan"),
            "mean_return": _mean_of_known(self.means("returns")),
            "mean_frames": _mean_of_known(self.means("frames")),
        }


class LearningCurve:
    """One row of scalars per update: kept in memory, sent to TensorBoard, written as CSV.

    Args:
        folder: destination of ``learning_curve.csv`` and the TensorBoard files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: list[Row] = []
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def append(self, row: Row) -> None:
        """Add the row of an update; it must contain ``timesteps``."""
        self.rows.append(row)
        for name, value in row.items():
            self._writer.add_scalar(name, value, int(row["timesteps"]))

    def write_csv(self) -> Path:
        """Write all rows to ``learning_curve.csv`` and return its path."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(self.rows[0]) if self.rows else ["timesteps"], lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        path = self.folder / "learning_curve.csv"
        write_file(path, text.getvalue().encode())
        return path

    def close(self) -> None:
        """Write the CSV and close the TensorBoard file."""
        self.write_csv()
        self._writer.close()


def _mean_of_known(means: np.ndarray) -> float:
    known = means[~np.isnan(means)]
    return float(known.mean()) if len(known) else float("nan")
