"""Intake of trajectories of variable length: recordings, the episodes of several collectors, solutions of a planner.

A buffer holds the steps of all episodes one after another. Its memory is allocated for the first intake, and again only
for an intake with more steps than fit. Episodes are checked before anything is written.
"""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory import MemoryNode
from nclone_env.train.learn.episode_data import (
    OPTIONAL,
    Block,
    Columns,
    EpisodeData,
    TrajectoryChecks,
    blocks,
    first_steps,
)
from nclone_env.train.learn.gae import estimate_episode_advantages
from nclone_env.train.network.arrays import LearningFields, stacked_shape

_WINDOW = 4096
"""Steps that are written together: on another device those of one transfer, gathered on the host."""
_FIELDS = {"actions": np.int64, **dict.fromkeys((*OPTIONAL, "advantages", "returns"), np.float32)}
_MISSING = {"log_probs": np.nan}
"""What is stored where an optional field is missing; 0 in the others."""


class Intake(NamedTuple):
    """What a buffer took in."""

    steps: int
    """Steps of all episodes."""
    episodes: int
    """Episodes, empty ones included."""
    mean_reward: float
    """Mean reward of a step; nan without steps."""


class TrajectoryBuffer:
    """The steps of any number of episodes, one after another, on a device.

    It offers what a network reads of a rollout (``StoredSteps``), so that a network can learn from it.

    Attributes:
        num_steps: n, steps of the current content.
        capacity: steps for which there is room.
        episode_starts: (E + 1,) int64, first step of each episode, and n.
        frame_stack: k; with k > 1 the network sees stacks of the last k observations of an episode, gathered on demand.
        device: where the content is.
        reference: (n, a) float32, probabilities of a reference policy; (0, a) until it is set.

    Args:
        observation_space: the ``Dict`` space of one environment: names, shapes and dtypes.
        num_actions: a, number of actions.
        device: where the content is kept.
        frame_stack: k.
    """

    def __init__(
        self, observation_space: Any, num_actions: int, device: str | torch.device = "cpu", frame_stack: int = 1
    ):
        self.device, self.frame_stack, self.num_steps, self.capacity = torch.device(device), frame_stack, 0, 0
        self.episode_starts = np.zeros(1, np.int64)
        self.reference = np.zeros((0, num_actions), np.float32)
        boxes = observation_space.spaces
        self._specs = {name: (tuple(box.shape), np.dtype(box.dtype)) for name, box in boxes.items()}
        self._checks = TrajectoryChecks(self._specs, num_actions)
        self._allocate(0)

    def fill(self, trajectories: Iterable[EpisodeData], gamma: float, gae_lambda: float) -> Intake:
        """Replace the content by these episodes, and compute their advantages and returns.

        The arrays of a sequence are all checked and counted first, then they are written. What can be read only once,
        such as a generator, is checked and copied episode by episode as it arrives, so it may reuse its arrays; the
        copies are released as they are written, every ``_WINDOW`` steps.

        Args:
            trajectories: the episodes; none at all is fine, and so are episodes without steps.
            gamma: discount factor per step.
            gae_lambda: the lambda of generalised advantage estimation.

        Raises:
            TrajectoryError: if an array has the wrong name, shape, dtype or range, about the first episode with such a
                fault. The content is unchanged.
            MemoryError: if there is no room for that many steps. The content is empty.
        """
        columns = self._checks.columns(trajectories)
        self._reserve(sum(columns.lengths))
        self.episode_starts = first_steps(columns.lengths)
        self.num_steps = int(self.episode_starts[-1])
        for block in blocks(self.episode_starts, _WINDOW):
            self._write(block, columns)
            columns.release(block.last - (block.excess > 0))
        self._estimate(columns, gamma, gae_lambda)
        rewards = self._host["rewards"][: self.num_steps]
        mean = float(rewards.mean(dtype=np.float64)) if self.num_steps else float("nan")
        return Intake(self.num_steps, len(columns.lengths), mean)

    @property
    def observations(self) -> dict[str, Tensor]:
        """Name to (n, *shape) on the device, views of the content."""
        return {name: tensor[: self.num_steps] for name, tensor in self._observations.items()}

    @property
    def steps(self) -> dict[str, Tensor]:
        """``actions`` (n,) int64, and ``rewards``, ``values``, ``log_probs``, ``advantages`` and ``returns``, (n,)
        float32, on the device: views of the content.
        """
        return {name: tensor[: self.num_steps] for name, tensor in self._steps.items()}

    @property
    def flat_observations(self) -> dict[str, np.ndarray]:
        """As ``observations``, as arrays; on the CPU only."""
        return {name: tensor.numpy() for name, tensor in self.observations.items()}

    @property
    def learning_fields(self) -> LearningFields[np.ndarray]:
        """The fields that the loss reads, (n,) each; on the CPU only."""
        return LearningFields(*(self.steps[name].numpy() for name in LearningFields._fields))

    def observation_buffers(self, count: int) -> dict[str, Tensor]:
        """Allocate room for ``count`` observations, or stacks of them, by name."""
        shapes = {name: stacked_shape(name, shape, self.frame_stack) for name, (shape, _) in self._specs.items()}
        return {
            name: torch.zeros(count, *shapes[name], dtype=rows.dtype, device=rows.device)
            for name, rows in self._observations.items()
        }

    def gather(self, steps: Tensor, out: Mapping[str, Tensor]) -> None:
        """Write the observations of b steps, (b,) int64, or stacks of them, to ``out``, (b, ...) by name."""
        rows = steps
        if self.frame_stack > 1:
            starts = torch.from_numpy(self.episode_starts).to(self.device)
            first = starts[torch.searchsorted(starts, steps, right=True) - 1]  # of the episode of each step
            offsets = torch.arange(1 - self.frame_stack, 1, device=self.device)
            rows = torch.maximum(steps[:, None] + offsets, first[:, None]).flatten()
        for name, target in out.items():
            stacked = target.dim() > self._observations[name].dim()
            chosen, flat = (rows, target.flatten(0, 1)) if stacked else (steps, target)
            torch.index_select(self._observations[name], 0, chosen, out=flat)

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes; it tells the capacity in steps."""
        parts = [(name, tensor.nbytes) for name, tensor in (*self._observations.items(), *self._steps.items())]
        if self.device.type != "cpu":
            parts += [(f"{name} on the host", array.nbytes) for name, array in self._host.items()]
            parts += [(f"window of {name}", array.nbytes) for name, array in self._windows.items()]
        parts += [("episode starts", self.episode_starts.nbytes), ("checks", self._checks.nbytes)]
        leaves = tuple(MemoryNode(name, size) for name, size in parts if size)
        return MemoryNode(f"trajectories, room for {self.capacity:,} steps", children=leaves)

    def _reserve(self, count: int) -> None:
        """Make room for a number of steps; the old arrays are released first, so that both never exist together."""
        if count > self.capacity:
            self.num_steps = self.capacity = 0
            self.episode_starts = np.zeros(1, np.int64)
            self._allocate(0)
            self._allocate(count)
            self.capacity = count

    def _allocate(self, count: int) -> None:
        """Allocate arrays for a number of steps. On the CPU the windows through which they are filled are all of it."""
        on_host = self.device.type == "cpu"
        pinned = self.device.type == "cuda"
        self._host = {name: np.zeros(count, dtype) for name, dtype in _FIELDS.items()}
        self._windows: dict[str, np.ndarray] = {}
        self._observations: dict[str, Tensor] = {}
        for name, (shape, dtype) in self._specs.items():
            rows = count if on_host else min(count, _WINDOW)
            window = torch.from_numpy(np.zeros((rows, *shape), dtype))
            self._windows[name] = (window.pin_memory() if pinned and rows else window).numpy()
            self._observations[name] = (
                torch.from_numpy(self._windows[name])
                if on_host
                else torch.zeros(count, *shape, dtype=window.dtype, device=self.device)
            )
        self._steps = {name: torch.from_numpy(array).to(self.device) for name, array in self._host.items()}

    def _write(self, block: Block, columns: Columns) -> None:
        """Write the steps of a block: each field of all its episodes in one call."""
        on_host, steps = self.device.type == "cpu", slice(block.begin, block.end)
        for name, column in columns.fields.items():
            _write_field(block, column, columns.lengths, _MISSING.get(name, 0), self._host[name][steps])
        # Small rows first: the checks have just read them, and large ones drive them out of the cache.
        for name, window in sorted(self._windows.items(), key=lambda item: item[1].nbytes):
            target = window[steps] if on_host else window[: block.end - block.begin]
            np.concatenate(block.rows(columns.observations[name]), out=target)
            if not on_host:
                self._observations[name][steps] = torch.from_numpy(target)

    def _estimate(self, columns: Columns, gamma: float, gae_lambda: float) -> None:
        """Compute advantages and returns, and copy all fields of the steps to the device if it is another."""
        host = {name: array[: self.num_steps] for name, array in self._host.items()}
        estimate_episode_advantages(
            host["rewards"],
            host["values"],
            self.episode_starts,
            np.array(columns.terminated, np.bool_),
            np.array(columns.bootstrap_values, np.float32),
            gamma,
            gae_lambda,
            host["advantages"],
            host["returns"],
        )
        if self.device.type != "cpu":
            for name, array in host.items():
                self._steps[name][: self.num_steps] = torch.from_numpy(array)


def _write_field(block: Block, column: list[Any], lengths: list[int], blank: float, out: np.ndarray) -> None:
    """Write a field of a block of steps.

    Args:
        column: (T,) of each episode, None where it is missing; replaced where only some are missing.
        lengths: T of each.
        blank: what stands for a missing entry.
        out: (b,), written.
    """
    own = slice(block.first, block.last)
    types = {*map(type, column[own])}
    if types == {NoneType}:
        out[:] = blank
        return
    if NoneType in types:
        column[own] = [
            np.broadcast_to(out.dtype.type(blank), (count,)) if array is None else array
            for array, count in zip(column[own], lengths[own], strict=True)
        ]
    np.concatenate(block.rows(column), out=out)
