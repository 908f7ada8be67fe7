"""The learning curve of a run."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.tensorboard import SummaryWriter

from nclone_env._files import fill_file, naming
from nclone_env.memory import MemoryNode, arrays_node

Row = dict[str, float]
"""A row of the learning curve: column name to value."""


_MOST_COLUMNS = 32
_MOST_ALLOCATED = 1 << 16  # rows


class Rows(Sequence[Row]):
    """Rows of numbers in arrays that are allocated once, so that a long run needs no more memory than a short one.

    A row may lack columns that are measured only now and then. As many rows as are expected are allocated, at most
    65,536; further ones double them.
    """

    def __init__(self, expected: int):
        capacity = min(expected, _MOST_ALLOCATED)
        self._columns: dict[str, type] = {}
        self._values = np.full((capacity, _MOST_COLUMNS), 0.0)  # `zeros` would take its pages one by one in training
        self._given = np.full((capacity, _MOST_COLUMNS), False)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __getitem__(self, index: Any) -> Any:
        """Return a row, or a list of rows for a slice."""
        if isinstance(index, slice):
            return [self._row(number) for number in range(*index.indices(self._count))]
        return self._row(range(self._count)[index])

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row; the numbers of a column are all whole or all floating point.

        Raises:
            IndexError: if there are more than 32 columns.
        """
        if self._count == len(self._values):
            self._grow()
        for name, value in row.items():
            self._columns.setdefault(name, int if isinstance(value, int) else float)
        for column, name in enumerate(self._columns):
            self._given[self._count, column] = name in row
            self._values[self._count, column] = row.get(name, 0.0)
        self._count += 1

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: columns by name, whether whole numbers, and tensors of n rows, copies."""
        part = slice(self._count), slice(len(self._columns))
        return {
            "columns": {name: kind is int for name, kind in self._columns.items()},
            "values": torch.from_numpy(self._values[part].copy()),
            "given": torch.from_numpy(self._given[part].copy()),
        }

    @classmethod
    def of(cls, state: Mapping[str, Any], expected: int = 1) -> Rows:
        """Return the rows of :meth:`state`, with room for as many as are expected in all.

        Raises:
            KeyError, ValueError: if it is damaged.
        """
        columns, values, given = state["columns"], state["values"].numpy(), state["given"].numpy()
        _check(columns, values, given)
        rows = cls(max(expected, len(values)))
        while len(rows._values) < len(values):
            rows._grow()
        rows._columns = {name: int if whole else float for name, whole in columns.items()}
        rows._count = len(values)
        rows._values[: len(values), : len(columns)] = values
        rows._given[: len(values), : len(columns)] = given
        return rows

    def columns(self) -> list[str]:
        """Return the names of all columns, in the order of their first appearance."""
        return list(self._columns)

    def last(self, name: str, count: int) -> np.ndarray:
        """Return a column that every row has, in at most so many of the last rows: (n,) float64, a view."""
        if name not in self._columns:
            return self._values[:0, 0]
        return self._values[max(0, self._count - count) : self._count, list(self._columns).index(name)]

    def memory(self) -> MemoryNode:
        """Return the bytes of the arrays."""
        return arrays_node("learning curve", (self._values, self._given), shared=True)

    def _grow(self) -> None:
        """Double the number of rows."""
        self._values = np.concatenate((self._values, np.zeros_like(self._values)))
        self._given = np.concatenate((self._given, np.zeros_like(self._given)))

    def _row(self, number: int) -> Row:
        values, given = self._values[number].tolist(), self._given[number].tolist()
        return {
            name: kind(values[column]) for column, (name, kind) in enumerate(self._columns.items()) if given[column]
        }


def _check(columns: Mapping[str, bool], values: np.ndarray, given: np.ndarray) -> None:
    """Check the parts of a saved learning curve.

    Raises:
        ValueError: if shapes or dtypes differ from those that are saved, a whole number is none, or rows have no
            timesteps.
    """
    shape = (len(values), len(columns))
    if values.shape != shape or given.shape != shape or len(columns) > _MOST_COLUMNS:
        raise ValueError(f"curve: expected {len(columns)} columns, got {values.shape} and {given.shape}")
    if values.dtype != np.float64 or given.dtype != np.bool_:
        raise ValueError(f"curve: expected float64 and bool, got {values.dtype} and {given.dtype}")
    whole = values[:, [bool(kind) for kind in columns.values()]]
    if not ((whole >= 0) & (whole < 2.0**63)).all():
        raise ValueError("curve: expected whole numbers from 0 to 2**63 in the columns of whole numbers")
    if len(values) and not (columns.get("timesteps") and given[:, list(columns).index("timesteps")].all()):
        raise ValueError("curve: expected timesteps in every row")


class LearningCurve:
    """One row of scalars per update: kept in memory, and from :meth:`begin` on sent to TensorBoard, written as CSV."""

    def __init__(self, folder: Path, num_updates: int):
        self.folder = folder
        self.rows = Rows(num_updates)
        self._events = folder / "tensorboard"
        self._writer: SummaryWriter | None = None

    def begin(self) -> None:
        """Open the files, to which ``rows`` are the beginning; later rows of an interrupted run are dropped."""
        shown = self._events.exists()
        last = int(self.rows[-1]["timesteps"]) if self.rows else 0
        _await_later_name(self._events)
        with naming(self._events):
            self._writer = SummaryWriter(str(self._events), purge_step=last + 1 if shown else None)
        for row in () if shown else self.rows:
            self._show(row)
        self.write_csv()

    def append(self, row: Row) -> None:
        """Add the row of an update; it must contain ``timesteps``."""
        self.rows.append(row)
        self._show(row)

    def flush(self) -> None:
        """Write all rows so far to the TensorBoard file."""
        if self._writer is not None:
            with naming(self._events):
                self._writer.flush()

    def write_csv(self) -> Path:
        """Write all rows to ``learning_curve.csv`` and return its path."""
        path = self.folder / "learning_curve.csv"
        fill_file(path, self._fill_csv)
        return path

    def close(self) -> None:
        """Write the CSV and close the TensorBoard file, if they were opened."""
        if self._writer is not None:
            self.write_csv()
            with naming(self._events):
                self._writer.close()

    def _fill_csv(self, path: Path) -> None:
        """Write all rows one by one, so that a long curve takes no memory."""
        with path.open("w", newline="") as file:
            columns = self.rows.columns() or ["timesteps"]
            table = csv.DictWriter(file, columns, lineterminator="\n")  # what a row lacks is left empty
            table.writeheader()
            table.writerows(self.rows)

    def _show(self, row: Row) -> None:
        """Send a row to TensorBoard, if its file is open."""
        if self._writer is None:
            return
        with naming(self._events):
            for name, value in row.items():
                self._writer.add_scalar(name, value, int(row["timesteps"]))


def _await_later_name(folder: Path) -> None:
    """Wait until a new file comes last: TensorBoard reads files by name, and names begin with whole seconds."""
    seconds = [int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*")]
    if seconds:
        time.sleep(min(1.0, max(0.0, max(seconds) + 1 - time.time())))
