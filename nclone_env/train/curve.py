"""What is known about a run while it runs: recent episodes per level, and the learning curve."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.tensorboard import SummaryWriter

from nclone_env._files import write_file
from nclone_env.train.environments import finished_episodes

Row = dict[str, float]


class EpisodeStatistics:
    """The last episodes of each level, in rings of a fixed size.

    Args:
        level_names: names of the L levels.
        window: episodes of each level that are kept.
        longest: steps of the longest possible episode. Until that many are made, only short episodes can have
            ended, most of them wins, so nothing is said about success.
    """

    def __init__(self, level_names: Sequence[str], window: int, longest: int = 0):
        self.level_names = tuple(level_names)
        self._window, self._longest, self._steps = window, longest, 0
        shape = (len(self.level_names), window)
        self._counts = np.zeros(shape[0], np.int64)
        self._rings: dict[str, np.ndarray] = {
            "success": np.zeros(shape, np.float32),
            "returns": np.zeros(shape, np.float64),
            "frames": np.zeros(shape, np.int64),
        }

    def add(self, info: Mapping[str, Any]) -> int:
        """Take in the episodes that ended in a vector step, given its ``info``; return how many."""
        self._steps += 1
        finished = finished_episodes(info)
        if finished is None:
            return 0
        for level, *values in zip(*finished[1:]):
            slot = self._counts[level] % self._window
            for ring, value in zip(self._rings.values(), values):
                ring[level, slot] = value
            self._counts[level] += 1
        return len(finished.indices)

    def means(self, key: str) -> np.ndarray:
        """Return the mean over the recent episodes of each level (L,), nan where it is not known yet.

        Args:
            key: ``success``, ``returns`` or ``frames``.
        """
        ring = self._rings[key]
        if self._steps < self._longest:
            return np.full(len(ring), np.nan)
        kept = np.minimum(self._counts, ring.shape[1])
        sums = ring.sum(axis=1)  # slots not used yet hold 0
        return np.divide(sums, kept, out=np.full(len(kept), np.nan), where=kept > 0)

    def solved(self, success_rate: float) -> bool:
        """Return whether every level has a full window of episodes and at least this success rate in it."""
        full = bool((self._counts >= self._window).all())
        return full and bool((self.means("success") >= success_rate).all())

    def summary(self) -> Row:
        """Return the means over levels of their recent episodes, and the worst level's success rate."""
        success = self.means("success")
        played = success[~np.isnan(success)]
        return {
            "success_rate": _mean_of_played(success),
            "lowest_success_rate": float(played.min()) if len(played) else float("nan"),
            "mean_return": _mean_of_played(self.means("returns")),
            "mean_frames": _mean_of_played(self.means("frames")),
        }


class LearningCurve:
    """Rows of numbers, one for each update: kept in memory, sent to TensorBoard, written as CSV.

    Args:
        folder: where ``learning_curve.csv`` and the TensorBoard files go.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: list[Row] = []
        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def append(self, row: Row) -> None:
        """Add the row of an update; it must have ``steps``."""
        self.rows.append(row)
        for name, value in row.items():
            self._writer.add_scalar(name, value, int(row["steps"]))

    def write_csv(self) -> Path:
        """Write all rows to ``learning_curve.csv`` and return its path."""
        text = io.StringIO()
        table = csv.DictWriter(text, list(self.rows[0]) if self.rows else ["steps"], lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        path = self.folder / "learning_curve.csv"
        write_file(path, text.getvalue().encode())
        return path

    def close(self) -> None:
        """Write the CSV and close the TensorBoard file."""
        self.write_csv()
        self._writer.close()


def _mean_of_played(means: np.ndarray) -> float:
    played = means[~np.isnan(means)]
    return float(played.mean()) if len(played) else float("nan")
