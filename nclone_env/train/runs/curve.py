"""The learning curve of a run."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nclone_env._files import fill_file, unless_it_fails
from nclone_env.memory import MemoryNode, arrays_node
from nclone_env.train.config import TrackerName
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.runs.trackers import TRACKERS, Tracker

Row = dict[str, float]
"""A row of the learning curve: column name to value."""

_WHOLE = ("timesteps", "updates", "episodes")
_MEANS = ("success_rate", "min_success_rate", "mean_return", "mean_frames")
"""Columns that are nan until enough episodes have ended."""
NAMES = (
    *_WHOLE,
    *_MEANS,
    *UpdateStatistics._fields,
    *(
        "learning_rate",
        "steps_per_second",
        "collect_seconds",
        "learn_seconds",
        "step_p95_seconds",
        "update_p95_seconds",
    ),
    *("kilobytes_per_environment", "held_out_success", "held_out_any", "evaluation_seconds"),
)
"""The columns."""
COLUMNS = np.dtype([(name, "f8") for name in NAMES])
"""A row; nan in what it lacks, as those of updates without an evaluation lack the last three."""
_MOST_ALLOCATED = 1 << 16  # rows


class Rows(Sequence[Row]):
    """Rows in an array that is allocated once, so that a long run needs no more memory than a short one.

    As many rows as are expected are allocated, at most 65,536; further ones double them.
    """

    def __init__(self, expected: int):
        # `zeros` would take its pages one by one in training.
        self._rows, self._count = np.full(min(expected, _MOST_ALLOCATED), np.nan, COLUMNS), 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __getitem__(self, index: Any) -> Any:
        """Return a row, or a list of rows for a slice."""
        if isinstance(index, slice):
            return [self._row(number) for number in range(*index.indices(self._count))]
        return self._row(range(self._count)[index])

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row of ``COLUMNS``, of which some may be missing."""
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.full(max(self._count, 1), np.nan, COLUMNS)))
        self._rows[self._count] = tuple(row.get(name, np.nan) for name in NAMES)
        self._count += 1

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: names of columns, and a tensor of n rows, a copy."""
        values = self._rows[: self._count].view(np.float64).reshape(self._count, len(NAMES))
        return {"columns": list(NAMES), "values": torch.from_numpy(values.copy())}

    @classmethod
    def of(cls, state: Mapping[str, Any], expected: int = 1) -> Rows:
        """Return the rows of :meth:`state`, with room for as many as are expected in all."""
        columns, values = list(state["columns"]), state["values"].numpy()
        if values.shape != (len(values), len(columns)) or values.dtype != np.float64:
            raise ValueError(f"curve: expected float64 in {len(columns)} columns, got {values.dtype} of {values.shape}")
        if "given" in state:  # of earlier versions, with 0 in what a row lacks
            values = np.where(state["given"].numpy(), values, np.nan)
        rows = cls(max(expected, len(values)))
        rows._rows = np.full(max(len(rows._rows), len(values)), np.nan, COLUMNS)
        rows._count = len(values)
        for name, column in zip(columns, values.T, strict=True):
            if name in NAMES:
                rows._rows[name][: len(values)] = column
        for name in _WHOLE:
            column = rows._rows[name][: len(values)]
            known = column[~np.isnan(column)]
            if not ((known >= 0) & (known < 2.0**63)).all() or (name == "timesteps" and len(known) < len(values)):
                raise ValueError(f"curve: expected whole numbers from 0 to 2**63 as {name} of every row")
        return rows

    def columns(self) -> list[str]:
        """Return the names of the columns that a row has, and of those that every run has."""
        values = self._rows[: self._count]
        return [name for name in NAMES if name in _MEANS or not np.isnan(values[name]).all()]

    def last(self, name: str, count: int) -> np.ndarray:
        """Return a column in at most so many of the last rows: (n,) float64, a view."""
        return self._rows[name][max(0, self._count - count) : self._count]

    def memory(self) -> MemoryNode:
        """Return the bytes of the array."""
        return arrays_node("learning curve", (self._rows,), shared=True)

    def _row(self, number: int) -> Row:
        values = zip(NAMES, self._rows[number].tolist())
        known = ((name, value) for name, value in values if name in _MEANS or value == value)
        return {name: int(value) if name in _WHOLE else value for name, value in known}


class LearningCurve:
    """One row of scalars per update: kept in memory, and from :meth:`begin` on sent to a tracker, written as CSV."""

    def __init__(self, folder: Path, num_updates: int):
        self.folder = folder
        self.rows = Rows(num_updates)
        self._tracker: Tracker | None = None
        self._begun = False

    def begin(self, track: TrackerName, options: Mapping[str, Any]) -> None:
        """Open the files, to which ``rows`` are the beginning; the tracker shows the options of the run as well.

        Later rows of an interrupted run are dropped.
        """
        last = int(self.rows[-1]["timesteps"]) if self.rows else 0
        with unless_it_fails(self.folder / track):
            self._tracker = TRACKERS[track](self.folder, options, last) if track in TRACKERS else None
        if self._tracker is not None and not self._tracker.continues:
            for row in self.rows:
                self._show(row)
        self._begun = True
        self.save_csv()

    def append(self, row: Row) -> None:
        """Add the row of an update; it must contain ``timesteps``."""
        self.rows.append(row)
        self._show(row)

    def flush(self) -> None:
        """Write all rows so far to the files of the tracker."""
        self._send(lambda tracker: tracker.flush())

    def save_csv(self) -> None:
        """Write the CSV if that can be done: checkpoints have all rows."""
        with unless_it_fails(self.folder / "learning_curve.csv"):
            self.write_csv()

    def write_csv(self) -> Path:
        """Write all rows to ``learning_curve.csv`` and return its path."""
        path = self.folder / "learning_curve.csv"
        fill_file(path, self._fill_csv)
        return path

    def close(self) -> None:
        """Write the CSV and close the files of the tracker, if they were opened."""
        if self._begun:
            self.save_csv()
        self._send(lambda tracker: tracker.close())

    def _fill_csv(self, path: Path) -> None:
        """Write all rows one by one, so that a long curve takes no memory."""
        with path.open("w", encoding="utf-8", newline="") as file:
            columns = self.rows.columns() if self.rows else ["timesteps"]
            table = csv.DictWriter(file, columns, lineterminator="\n")  # what a row lacks is left empty
            table.writeheader()
            table.writerows(self.rows)

    def _show(self, row: Row) -> None:
        self._send(lambda tracker: tracker.add(row, int(row["timesteps"])))

    def _send(self, call: Callable[[Tracker], object]) -> None:
        """Call a function with the tracker, if there is one; the first error is its end."""
        if self._tracker is not None:
            with unless_it_fails(self._tracker.folder):
                call(self._tracker)
                return
            self._tracker = None
