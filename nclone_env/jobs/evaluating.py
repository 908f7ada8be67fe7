"""Evaluations of policies on a track of the benchmark: a submission."""

import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TypedDict

import numpy as np

from nclone_env._files import UNREADABLE, expanded
from nclone_env.benchmark import Entered, Submission, check_entry, entry_faults, load_track, saved
from nclone_env.errors import ConfigError, FormatError
from nclone_env.jobs.job import Job


class Batch(TypedDict):
    """Steps and actions of a batch of episodes, each a file of NumPy."""

    steps: bytes
    actions: bytes


@dataclass(frozen=True)
class Evaluating(Job):
    """Evaluations of policies, as ``nclone-env benchmark submit`` does them; ``output`` is a submission.

    A task is a batch of episodes. Policies and packs are read to write it, too.

    Attributes:
        runs: folders of training runs, checkpoints or names of bundled policies.
        track: name of the track.
        mode: observations that the policies use.
        budget: what training was allowed to take.
        title: name of the algorithm.
        packs: for a track of the game, the file of each pack by name; for ``Community-v1``, files or folders of packs.
        with_policy: include the policies, so that sampled actions can be reproduced.
        command: that the submission names.
    """

    runs: tuple[str, ...]
    track: str
    mode: str
    budget: str
    title: str = "ppo"
    packs: Mapping[str, str] | None = None
    with_policy: bool = True
    command: str = ""
    result = Batch

    def __post_init__(self) -> None:
        super().__post_init__()
        check_entry(self.title, self.runs)  # before hours of playing

    @cached_property
    def entered(self) -> Sequence[Entered]:
        """The policies with their episodes.

        Raises:
            ConfigError: if their submission would be refused.
        """
        packs, track = {name: Path(path) for name, path in (self.packs or {}).items()}, load_track(self.track)
        found = [Entered(expanded(run), track, self.mode, packs) for run in self.runs]
        if faults := entry_faults(track, self.budget, found):
            raise ConfigError(f"{faults[0]}; the submission would be refused")
        return found

    @cached_property
    def _tasks(self) -> Sequence[Callable[[], tuple[np.ndarray, np.ndarray]]]:
        return [task for entered in self.entered for task in entered.episodes.tasks]

    @property
    def total(self) -> int:
        """Number of batches."""
        return len(self._tasks)

    @property
    def digest(self) -> str:
        """Of the track and the policies."""
        parts = [load_track(self.track).digest.encode(), *(entered.checkpoint for entered in self.entered)]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]

    def task(self, number: int) -> Callable[[], dict[str, bytes]]:
        """Return what plays a batch."""
        return partial(_played, self._tasks[number])

    def write(self, output: Path, results: Iterable[Mapping[str, bytes]]) -> None:
        """Write the submission; its ends are those of the simulator."""
        played = map(_arrays, results)
        runs = tuple(
            entered.run(islice(played, len(entered.episodes.tasks)), self.with_policy) for entered in self.entered
        )
        Submission(self.track, self.mode, self.budget, self.title, runs, self.command).save(output)


def _played(task: Callable[[], tuple[np.ndarray, np.ndarray]]) -> dict[str, bytes]:
    steps, actions = task()
    return {"steps": saved(steps), "actions": saved(actions)}


def _arrays(result: Mapping[str, bytes]) -> tuple[np.ndarray, np.ndarray]:
    try:
        steps, actions = (np.load(io.BytesIO(result[name]), allow_pickle=False) for name in ("steps", "actions"))
        fits = steps.shape == (len(steps),) and actions.shape == (steps.sum(),) and actions.dtype == np.uint8
    except UNREADABLE:
        fits = False
    if not fits:
        raise FormatError("journal", "result", "steps and actions of episodes", "other arrays; start the shard again")
    return steps, actions
