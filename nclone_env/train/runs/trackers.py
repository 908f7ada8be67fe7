"""Programs that show the learning curves of many runs: TensorBoard, and Weights & Biases."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from nclone_env.errors import MissingExtraError, optional_module
from nclone_env.train.config import TrackerName

TENSORBOARD, WANDB = "tensorboard", "wandb"
"""Names of the trackers, and of their folders in that of a run."""
_SHOWN = ("success_rate", "min_success_rate", "held_out_success", "mean_return")
"""Columns that TensorBoard lists beside the options of each run."""


class Tracker(Protocol):
    """What a learning curve is sent to.

    Attributes:
        folder: where it writes.
        continues: whether it shows earlier rows of the run already.
    """

    folder: Path
    continues: bool

    def add(self, row: Mapping[str, float], timesteps: int) -> None:
        """Show a row of the curve."""

    def flush(self) -> None:
        """Write what was added."""

    def close(self) -> None:
        """Write what was added and end."""


class TensorBoard:
    """Files for TensorBoard in the folder of a run: scalars, and the options in its table of hyperparameters.

    A continued run drops what is shown after ``last`` timesteps.
    """

    def __init__(self, run: Path, options: Mapping[str, Any], last: int):
        from torch.utils.tensorboard import SummaryWriter  # which fails with some versions of its dependencies
        from torch.utils.tensorboard.summary import hparams

        self.folder = run / TENSORBOARD
        self.continues = self.folder.exists()
        _await_later_name(self.folder)
        self._writer = SummaryWriter(str(self.folder), purge_step=last + 1 if self.continues else None)
        file: Any = self._writer.file_writer
        for summary in () if self.continues else hparams(_texts(options), dict.fromkeys(_SHOWN, 0.0)):
            file.add_summary(summary)  # SummaryWriter.add_hparams begins another folder

    def add(self, row: Mapping[str, float], timesteps: int) -> None:
        """Show each column as a scalar."""
        for name, value in row.items():
            self._writer.add_scalar(name, value, timesteps)

    def flush(self) -> None:
        """Write what was added."""
        self._writer.flush()

    def close(self) -> None:
        """Write what was added and close the file."""
        self._writer.close()


class WeightsAndBiases:
    """A run of Weights & Biases, in the project WANDB_PROJECT or else ``nclone_env``; arguments as of the other.

    Its library reads further settings, such as WANDB_MODE=offline, from the environment. It keeps what it showed of a
    run that is continued.
    """

    def __init__(self, run: Path, options: Mapping[str, Any], last: int):
        wandb = optional_module(WANDB, WANDB)
        self.folder = run / WANDB
        before = sorted(self.folder.glob("*run-*-*"))
        self.continues = bool(before)
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "nclone_env"),
            name=run.name,
            dir=str(run),
            config=dict(options),
            id=before[-1].name.rpartition("-")[2] if before else None,
            resume="allow" if before else None,
        )

    def add(self, row: Mapping[str, float], timesteps: int) -> None:
        """Log a row."""
        self._run.log(dict(row), step=timesteps)

    def flush(self) -> None:
        """Do nothing: the library writes at once."""

    def close(self) -> None:
        """End the run there, once all is sent."""
        self._run.finish()


TRACKERS: Mapping[str, Callable[[Path, Mapping[str, Any], int], Tracker]] = {
    TENSORBOARD: TensorBoard,
    WANDB: WeightsAndBiases,
}


def check_tracker(name: TrackerName) -> None:
    """Check that the library of a tracker is installed."""
    if name == WANDB:
        try:
            optional_module(WANDB, WANDB)
        except MissingExtraError as error:
            if getattr(error.__cause__, "name", None) == WANDB:
                raise
        except Exception:  # noqa: BLE001 - it is there and fails: the run goes on without it, as the curve says
            pass


def _texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as TensorBoard shows them: numbers, flags and texts, those of a group by themselves."""
    shown: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            shown |= {f"{name}.{key}": item for key, item in _texts(value).items()}
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            shown[name] = "none" if text is None else text
    return shown


def _await_later_name(folder: Path) -> None:
    """Wait until a new file comes last: TensorBoard reads files by name, and names begin with whole seconds."""
    seconds = [int(path.name.split(".")[3]) for path in folder.glob("events.out.tfevents.*")]
    if seconds:
        time.sleep(min(1.0, max(0.0, max(seconds) + 1 - time.time())))
