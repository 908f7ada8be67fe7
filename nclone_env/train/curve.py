"""The learning curve of a run."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from nclone_env._files import write_file

Row = dict[str, float]
"""A row of the learning curve: column name to value."""


class LearningCurve:
    """One row of scalars per update: kept in memory, sent to TensorBoard, written as CSV.

    A row may lack columns that are measured only now and then.

    Args:
        folder: destination of ``learning_curve.csv`` and the TensorBoard files.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.rows: list[Row] = []
        self._writer: SummaryWriter | None = None

    def begin(self) -> None:
        """Open the files, to which ``rows`` are the beginning; later rows of an interrupted run are dropped."""
        events = self.folder / "tensorboard"
        shown = events.exists()
        last = int(self.rows[-1]["timesteps"]) if self.rows else 0
        _await_later_name(events)
        self._writer = SummaryWriter(str(events), purge_step=last + 1 if shown else None)
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
            self._writer.flush()

    def write_csv(self) -> Path:
        """Write all rows to ``learning_curve.csv`` and return its path."""
        text = io.StringIO()
        columns = list(dict.fromkeys(name for row in self.rows for name in row)) or ["timesteps"]
        table = csv.DictWriter(text, columns, lineterminator="\n")  # what a row lacks is left empty
        table.writeheader()
        table.writerows(self.rows)
        path = self.folder / "learning_curve.csv"
        write_file(path, text.getvalue().encode())
        return path

    def close(self) -> None:
        """Write the CSV and close the TensorBoard file, if they were opened."""
        if self._writer is not None:
            self.write_csv()
            self._writer.close()

    def _show(self, row: Row) -> None:
        """Send a row to TensorBoard."""
        assert self._writer is not None, "append() was called before begin()"
        for name, value in row.items():
            self._writer.add_scalar(name, value, int(row["timesteps"]))


class KeptCurve(LearningCurve):
    """The learning curve in ranks other than 0: kept in memory only."""

    def begin(self) -> None:
        """Open nothing."""

    def write_csv(self) -> Path:
        """Write nothing."""
        return self.folder / "learning_curve.csv"

    def _show(self, row: Row) -> None:
        """Show nothing."""


def _await_later_name(folder: Path) -> None:
    """Wait until a new file comes last: TensorBoard reads files by name, and names begin with whole seconds."""
    seconds = [int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*")]
    if seconds:
        time.sleep(min(1.0, max(0.0, max(seconds) + 1 - time.time())))
