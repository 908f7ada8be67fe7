"""Training runs as targets of the profiler: updates of one run."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from nclone_env._files import temporary_beside
from nclone_env.machine import available_cores
from nclone_env.memory import Advice, MemoryNode, OwnedNode, Subject, Target, resident_bytes
from nclone_env.options import leaves
from nclone_env.profiler.environments import of_more_environments, of_observations
from nclone_env.train import TrainConfig, require_training_extra

_PHASE_UPDATES = 20
_MOST_UPDATES = 200  # that a run is made for; its learning curve grows beyond them


@dataclass(frozen=True)
class TrainingTarget(Target):
    """The updates of a training run."""

    name = "training run"
    unit = "update"
    most_envs = 4096

    config: TrainConfig = field(default_factory=TrainConfig)
    """Configuration of the run; its output folder is not used."""
    ranks: int = 1
    """Processes that train together on this machine, for estimates."""

    def __post_init__(self) -> None:
        """Import what a run imports: it counts as libraries, not as what the first run takes."""
        require_training_extra()
        from nclone_env.train import begun_run  # noqa: F401 - requires torch, an optional dependency

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Return all options of the run that are not the default, those that define its size, and the device."""
        default = TrainConfig()
        sizes = ("levels", "observations", "num_steps", "hidden_size", "num_minibatches", "update_epochs")
        hidden = ("output", "name", "total_timesteps", "num_envs", "device", "num_threads")
        shown = [
            (option.key, option.value(self.config))
            for option in leaves(TrainConfig)
            if option.key in sizes or (option.key not in hidden and option.value(self.config) != option.value(default))
        ]
        config = self.config
        return (
            *((key.replace("_", " "), str(value)) for key, value in shown),
            ("device", config.device),
            ("threads", str(config.num_threads or available_cores())),
        )

    def env_steps(self, num_envs: int) -> int:
        """Return the steps of a rollout."""
        return num_envs * self.config.num_steps

    def estimate(self, num_envs: int) -> MemoryNode:
        """Return the tree of a run, or of all its ranks."""
        from nclone_env.train import Ranks, estimate_bytes  # requires torch, an optional dependency

        count = self.ranks
        tree: MemoryNode = estimate_bytes(self._sized(num_envs), ranks=Ranks(0, count, count))
        if count == 1:
            return tree
        libraries = MemoryNode("libraries of the other ranks", (count - 1) * resident_bytes().data, shared=True)
        return MemoryNode(f"training run of {count} ranks", children=(*_times(tree, count).children, libraries))

    def advice(self, owners: Sequence[OwnedNode], num_envs: int, unreported: float) -> Iterator[Advice]:
        """Yield what would save memory, and whether more environments would cost little."""
        yield from of_observations(self.config.environment, owners, num_envs, unreported)
        yield from of_more_environments(num_envs, self.estimate(num_envs), self.estimate(2 * num_envs))

    def phases(self, num_envs: int, steps: int) -> Mapping[str, float]:
        """Return the time of an update, of collecting its rollout and of learning from it."""
        with closing(TrainingSubject(self._sized(num_envs))) as subject:
            return subject.phases(min(steps, _PHASE_UPDATES))

    def make(self, num_envs: int) -> Subject:
        """Set up a run in a temporary folder and warm it up."""
        return TrainingSubject(self._sized(num_envs))

    def _sized(self, num_envs: int) -> TrainConfig:
        timesteps, minibatches = num_envs * self.config.num_steps * _MOST_UPDATES, self.config.ppo.num_minibatches
        if self.config.recurrent_size:  # minibatches consist of the sequences of whole environments
            minibatches = math.gcd(num_envs, minibatches)
        return self.config.replace(num_envs=num_envs, total_timesteps=timesteps, num_minibatches=minibatches)


def _times(tree: MemoryNode, count: int) -> MemoryNode:
    """Return the tree of several processes; they share mapped files."""
    own = tree.own_bytes * (1 if tree.mapped else count)
    return replace(tree, own_bytes=own, children=tuple(_times(child, count) for child in tree.children), blocks=())


class TrainingSubject:
    """A training run in a temporary folder."""

    def __init__(self, config: TrainConfig):
        require_training_extra()
        from nclone_env.train import advance, begun_run  # requires torch, an optional dependency

        self._advance = advance
        with ExitStack() as stack:
            temporary = stack.enter_context(temporary_beside(Path(gettempdir(), "profile"), folder=True))
            config = config.replace(output=temporary, name="profiled")
            self._run: Any = stack.enter_context(begun_run(config))
            self._stack = stack.pop_all()

    def step(self) -> None:
        """Collect a rollout and update the policy."""
        self._advance(self._run)

    def phases(self, updates: int) -> dict[str, float]:
        """Make updates; return the medians of their time and of their parts."""
        whole = np.zeros(updates)
        for number in range(updates):
            start = time.perf_counter()
            self.step()
            whole[number] = time.perf_counter() - start
        rows = self._run.curve.rows[-updates:]
        parts = {name: np.median([row[f"{name}_seconds"] for row in rows]) for name in ("collect", "learn")}
        update = np.median(whole)
        found = {"whole update": update, **parts, "rest": update - sum(parts.values())}
        return {name: float(seconds) for name, seconds in found.items()}

    def memory(self) -> MemoryNode:
        """Return the tree of the run."""
        tree: MemoryNode = self._run.memory()
        return tree

    def close(self) -> None:
        """Close the run and remove its folder."""
        self._stack.close()
