"""Ways to build the batch of a PPO update from episodes or collectors, for ``profiling.memory.batch_assembly``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from gymnasium.spaces import Box, Dict
from torch import Tensor

from nclone_env.train import EpisodeData, TrajectoryBuffer
from nclone_env.train.collect.rollout import RolloutColumns, RolloutStorage
from nclone_env.train.learn.gae import estimate_episode_advantages, write_returns

Rows = dict[str, Any]
"""Arrays or tensors by the name of the field."""
SCALARS = ("actions", "rewards", "values", "log_probs")
GAMMA, GAE_LAMBDA = 0.995, 0.95
CHUNK = 256
ACTIONS = 6


class Part(Protocol):
    """What one episode or one collector contributes: ``length`` steps that end without a terminal state."""

    length: int
    bootstrap_value: float
    """Value of what follows the last step."""

    def step(self, t: int) -> Rows:
        """Return the fields of a step, in arrays that are safe to keep."""
        ...

    def whole(self) -> Rows:
        """Return all steps, (length, ...) by name."""
        ...


class Episode:
    """An episode that was played elsewhere; its arrays exist already, so that no way has to allocate them."""

    def __init__(self, fields: Mapping[str, np.ndarray]):
        self.fields, self.length, self.bootstrap_value = dict(fields), len(fields["actions"]), 0.5
        observations = {name: array for name, array in fields.items() if name not in SCALARS}
        self.trajectory = EpisodeData(
            observations, *(fields[name] for name in SCALARS), bootstrap_value=self.bootstrap_value
        )

    def step(self, t: int) -> Rows:
        """Return views of one row."""
        return {name: array[t] for name, array in self.fields.items()}

    def whole(self) -> Rows:
        """Return the arrays."""
        return self.fields


class Collector:
    """One environment that is being played; it repeats recorded steps.

    An observation that is to be kept is a fresh array, as environments of Gymnasium return it, unless the caller
    provides the array.
    """

    def __init__(self, fields: Mapping[str, np.ndarray], length: int):
        self._fields, self._period, self.length = dict(fields), len(fields["actions"]), length
        self.bootstrap_value = self.scalar("values", length)

    def scalar(self, name: str, t: int) -> Any:
        """Return the entry of one of ``SCALARS``."""
        return self._fields[name][t % self._period]

    def step(self, t: int) -> Rows:
        """Return fresh copies of one row."""
        return {name: array[t % self._period].copy() for name, array in self._fields.items()}

    def write(self, t: int, out: Mapping[str, np.ndarray]) -> None:
        """Write the observation before step t to arrays (1, ...)."""
        for name, array in out.items():
            array[0] = self._fields[name][t % self._period]

    def whole(self) -> Rows:
        """Play all steps, and stack them."""
        return stacked([self.step(t) for t in range(self.length)])


class Work(NamedTuple):
    """The parts of every update, and what is needed to allocate room for them."""

    name: str
    parts: Sequence[Any]
    space: Dict
    num_actions: int

    @property
    def steps(self) -> int:
        """Steps of a batch."""
        return sum(part.length for part in self.parts)


def episodes(count: int = 256, mean_length: int = 20, features: int = 988, actions: int = 124) -> Work:
    """Return finished episodes of about ``mean_length`` steps, with vectors and masks."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(mean_length // 2, mean_length + mean_length // 2 + 1, count).tolist()
    space = Dict(
        {"features": Box(-9, 9, (features,), np.float32), "action_mask": Box(0, 1, (actions,), np.bool_)}  # type: ignore[arg-type]
    )
    return Work("episodes", [Episode(_played(rng, length, space, actions)) for length in lengths], space, actions)


def collectors(count: int = 3, steps: int = 1024, period: int = 64) -> Work:
    """Return environments with frames and state that make ``steps`` steps in every update."""
    rng = np.random.default_rng(0)
    shapes = {"player_frame": (128, 128), "global_view": (128, 256)}
    spaces: dict[str, Any] = {name: Box(0, 255, shape, np.uint8) for name, shape in shapes.items()}
    space = Dict({**spaces, "game_state": Box(-1, 1, (30,), np.float32)})
    parts = [Collector(_played(rng, period, space, ACTIONS), steps) for _ in range(count)]
    return Work("collectors", parts, space, ACTIONS)


def _played(rng: np.random.Generator, length: int, space: Dict, actions: int) -> dict[str, np.ndarray]:
    """Return random fields of ``length`` steps."""
    fields = {name: np.array([box.sample() for _ in range(length)]) for name, box in space.spaces.items()}
    fields["actions"] = rng.integers(0, actions, length)
    if "action_mask" in fields:
        fields["action_mask"][np.arange(length), fields["actions"]] = True
    return fields | {name: rng.standard_normal(length).astype(np.float32) for name in SCALARS[1:]}


def lists(work: Work, device: str) -> Rows:
    """Append every field of every step to a list of its own; stack each list."""
    fields: dict[str, list[Any]] = {name: [] for name in (*work.space.spaces, *SCALARS)}
    for part in work.parts:
        for t in range(part.length):
            for name, row in part.step(t).items():
                fields[name].append(row)
    return with_returns({name: np.stack(rows) for name, rows in fields.items()}, work)


def transposed(work: Work, device: str) -> Rows:
    """Transpose the list of trajectories to lists of fields; concatenate each."""
    trajectories = [part.whole() for part in work.parts]
    names = trajectories[0].keys()
    columns = zip(*(trajectory.values() for trajectory in trajectories), strict=True)
    return with_returns({name: np.concatenate(rows) for name, rows in zip(names, columns, strict=True)}, work)


def moved(work: Work, device: str) -> Rows:
    """Transpose and concatenate, then move every field to the device."""
    return {name: torch.as_tensor(rows).to(device, copy=True) for name, rows in transposed(work, device).items()}


def chunked(work: Work, device: str) -> Rows:
    """Allocate the batch on the device; copy it in chunks of 256 steps."""
    steps = (part.step(t) for part in work.parts for t in range(part.length))
    batch: dict[str, Tensor] = {}
    for number, chunk in enumerate(chunks(steps, CHUNK)):
        for name, rows in stacked(chunk).items():
            source = torch.as_tensor(rows)
            if not number:
                batch[name] = torch.empty((work.steps, *source.shape[1:]), dtype=source.dtype, device=device)
            batch[name][number * CHUNK :][: len(source)] = source
    fields = with_returns({name: batch[name].cpu().numpy() for name in ("rewards", "values")}, work)
    return batch | {name: torch.as_tensor(fields[name]).to(device) for name in ("advantages", "returns")}


class Intake:
    """Ours, for episodes: they are checked and written into one buffer that every update reuses."""

    def __init__(self, work: Work, device: str):
        self._buffer = TrajectoryBuffer(work.space, work.num_actions, device)
        self._trajectories = [part.trajectory for part in work.parts]

    def __call__(self) -> Rows:
        """Fill the buffer; return views of it."""
        self._buffer.fill(self._trajectories, GAMMA, GAE_LAMBDA)
        return {**self._buffer.observations, **self._buffer.steps}


class InPlace:
    """Ours, for collectors: each step is written into its row of a storage that every update reuses."""

    def __init__(self, work: Work, device: str):
        self._storage = RolloutStorage(work.parts[0].length, len(work.parts), work.space)
        self._columns = [self._storage.columns(number, number + 1) for number in range(len(work.parts))]
        self._parts, self._goes_on = work.parts, np.zeros(1, np.bool_)

    def __call__(self) -> Rows:
        """Play all collectors; return views (N, T, ...) of the storage."""
        for part, columns in zip(self._parts, self._columns, strict=True):
            self._play(part, columns)
        write_returns(self._storage.arrays, GAMMA, GAE_LAMBDA)
        fields = {name: getattr(self._storage.arrays, name) for name in (*SCALARS, "advantages", "returns")}
        rows = {**self._storage.observation_arrays, **fields}
        return {name: array[: self._storage.num_steps].swapaxes(0, 1) for name, array in rows.items()}

    def _play(self, part: Collector, columns: RolloutColumns) -> None:
        columns.restart()
        part.write(0, columns.reset_outputs())
        for t in range(part.length):
            for name in ("actions", "values", "log_probs"):
                columns.row(name)[:] = part.scalar(name, t)
            part.write(t + 1, columns.step_outputs())
            columns.record_outcome(part.scalar("rewards", t), self._goes_on, self._goes_on)
        columns.row("values")[:] = part.bootstrap_value


OURS = "ours, in place"
WAYS: dict[str, Callable[[Work, str], Rows]] = {
    "lists, stacked": lists,
    "transposed, concatenated": transposed,
    "concatenated, moved": moved,
    "chunks of 256": chunked,
}


def updater(way: str, work: Work, device: str) -> Callable[[], Rows]:
    """Return the function that makes the batch of an update, field name to (n, ...) or (N, T, ...)."""
    if way == OURS:
        return (Intake if work.name == "episodes" else InPlace)(work, device)
    return lambda: WAYS[way](work, device)


def stacked(steps: Sequence[Rows]) -> Rows:
    """Return the fields of several steps, (n, ...) by name."""
    return {name: np.stack([step[name] for step in steps]) for name in steps[0]}


def chunks(steps: Iterator[Rows], size: int) -> Iterator[list[Rows]]:
    """Yield lists of ``size`` steps, and of what is left."""
    while chunk := list(itertools.islice(steps, size)):
        yield chunk


def with_returns(fields: Rows, work: Work) -> Rows:
    """Return fields (n, ...) with advantages and returns, computed by the kernel that ours uses."""
    advantages, returns = np.empty_like(fields["rewards"]), np.empty_like(fields["rewards"])
    starts = np.cumsum([0, *(part.length for part in work.parts)], dtype=np.int64)
    terminated = np.zeros(len(work.parts), np.bool_)
    following = np.array([part.bootstrap_value for part in work.parts], np.float32)
    given = (fields["rewards"], fields["values"], starts, terminated, following, GAMMA, GAE_LAMBDA)
    estimate_episode_advantages(*given, advantages, returns)
    return {**fields, "advantages": advantages, "returns": returns}


def check_equal(batch: Rows, expected: Rows) -> None:
    """Compare two batches exactly.

    Raises:
        AssertionError: if the names, dtypes or contents differ.
    """
    assert batch.keys() == expected.keys(), f"expected the fields {list(expected)}, got {list(batch)}"
    for name, rows in batch.items():
        ours, theirs = on_host(rows), on_host(expected[name])
        same = ours.dtype == theirs.dtype and np.array_equal(ours.reshape(theirs.shape), theirs)
        assert same, f"{name}: the batches differ"


def on_host(rows: Any) -> np.ndarray:
    """Return a field as an array."""
    return rows.cpu().numpy() if isinstance(rows, Tensor) else rows
