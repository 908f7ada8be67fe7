"""Intake of trajectories of variable length: recordings, the episodes of several collectors, solutions of a planner.

A buffer holds the steps of all episodes one after another. Its memory is allocated for the first intake, and again only
for an intake with more steps than fit. Episodes are checked before anything is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import ConfigError, TrajectoryError, Within, checked, shortened
from nclone_env.machine import check_fits
from nclone_env.memory import MemoryNode
from nclone_env.train.learn.gae import estimate_episode_advantages
from nclone_env.train.policies.arrays import LearningFields, stacked_shape
from nclone_env.train.policies.device import host_zeros

MASK = "action_mask"
OPTIONAL = {"rewards": np.float32(0), "values": np.float32(0), "log_probs": np.float32(np.nan)}
"""Fields that may be missing, and what is stored then."""
_WINDOW = 4096
"""Steps that are written together: on another device those of one transfer, gathered on the host."""
_FIELDS = {"actions": np.int64, **dict.fromkeys((*OPTIONAL, "advantages", "returns"), np.float32)}


@dataclass(frozen=True, eq=False)
class EpisodeData:
    """One episode, or a part of one, of T steps; T may be 0.

    The arrays are only read, and only until the intake returns.
    """

    observations: Mapping[str, np.ndarray]
    """Name to (T, *shape), or (T + 1, *shape) with the final observation, which is not stored; dtypes as in the
    observation space. ``action_mask``, (T, a), is among them if actions are masked: 0 for each that is not allowed."""
    actions: np.ndarray
    """(T,) of any integer dtype, from 0 to a - 1."""
    rewards: np.ndarray | None = None
    """(T,) of any float dtype; None: 0."""
    values: np.ndarray | None = None
    """(T,) of any float dtype, value estimates of the observations; None: 0, so that returns with a lambda of 1 are
    discounted sums of rewards."""
    log_probs: np.ndarray | None = None
    """(T,) of any float dtype, log probabilities of the actions; None: unknown, stored as NaN."""
    terminated: bool = False
    """Whether the last step ended the episode in a terminal state. Otherwise it was truncated, or goes on elsewhere."""
    bootstrap_value: float = 0.0
    """Value estimate of what follows the last step; not used if ``terminated``."""


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

    @checked()
    def __init__(
        self,
        observation_space: Any,
        num_actions: Annotated[int, Within(1, 65536)],
        device: str | torch.device = "cpu",
        frame_stack: Annotated[int, Within(1, 64)] = 1,
    ):
        if not isinstance(getattr(observation_space, "spaces", None), Mapping):
            raise ConfigError(f"observation_space: expected a Dict space, got {shortened(observation_space)}")
        try:
            self.device = torch.device(device)
        except RuntimeError as error:
            raise ConfigError(f"device: expected one of torch such as 'cpu', got {shortened(device)}") from error
        self.frame_stack, self.num_steps, self.capacity = frame_stack, 0, 0
        self.episode_starts = np.zeros(1, np.int64)
        self.reference = np.zeros((0, num_actions), np.float32)
        boxes = observation_space.spaces
        self._specs = {name: (tuple(box.shape), np.dtype(box.dtype)) for name, box in boxes.items()}
        self._num_actions = num_actions
        self._allocate(0)

    @checked()
    def fill(
        self,
        trajectories: Iterable[EpisodeData],
        gamma: Annotated[float, Within(0, 1)],
        gae_lambda: Annotated[float, Within(0, 1)],
    ) -> Intake:
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
            MemoryLimitError: if that many steps need more memory than is available; it names the number that fits. The
                content is empty.
        """
        columns, copied = _Columns(self._specs), not isinstance(trajectories, Sequence)
        for number, episode in enumerate(trajectories):
            columns.add(episode, _checked_length(number, episode, self._specs, self._num_actions), copied)
        self._reserve(sum(columns.lengths))
        self.episode_starts = _first_steps(columns.lengths)
        self.num_steps = int(self.episode_starts[-1])
        for block in _blocks(self.episode_starts, _WINDOW):
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

    @checked()
    def observation_buffers(self, count: Annotated[int, Within(0, 1 << 31)]) -> dict[str, Tensor]:
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
        parts += [("episode starts", self.episode_starts.nbytes)]
        leaves = tuple(MemoryNode(name, size) for name, size in parts if size)
        return MemoryNode(f"trajectories, room for {self.capacity:,} steps", children=leaves)

    def _reserve(self, count: int) -> None:
        """Make room for a number of steps; the old arrays are released first, so that both never exist together."""
        if count > self.capacity:
            self.num_steps = self.capacity = 0
            self.episode_starts = np.zeros(1, np.int64)
            self._allocate(0)
            kinds = [*self._specs.values(), *(((), np.dtype(dtype)) for dtype in _FIELDS.values())]
            check_fits("trajectories: steps", count, sum(math.prod(shape) * dtype.itemsize for shape, dtype in kinds))
            self._allocate(count)
            self.capacity = count

    def _allocate(self, count: int) -> None:
        """Allocate arrays for a number of steps. On the CPU the windows through which they are filled are all of it."""
        on_host = self.device.type == "cpu"
        self._host = {name: np.zeros(count, dtype) for name, dtype in _FIELDS.items()}
        self._windows: dict[str, np.ndarray] = {}
        self._observations: dict[str, Tensor] = {}
        for name, (shape, dtype) in self._specs.items():
            rows = count if on_host else min(count, _WINDOW)
            self._windows[name] = host_zeros((rows, *shape), dtype, self.device)
            window = torch.from_numpy(self._windows[name])
            self._observations[name] = window if on_host else window.new_zeros((count, *shape), device=self.device)
        self._steps = {name: torch.from_numpy(array).to(self.device) for name, array in self._host.items()}

    def _write(self, block: _Block, columns: _Columns) -> None:
        """Write the steps of a block: each field of all its episodes in one call."""
        on_host, steps = self.device.type == "cpu", slice(block.begin, block.end)
        for name, column in columns.fields.items():
            np.concatenate(block.rows(column), out=self._host[name][steps])
        # Small rows first: the checks have just read them, and large ones drive them out of the cache.
        for name, window in sorted(self._windows.items(), key=lambda item: item[1].nbytes):
            target = window[steps] if on_host else window[: block.end - block.begin]
            np.concatenate(block.rows(columns.observations[name]), out=target)
            if not on_host:
                self._observations[name][steps] = torch.from_numpy(target)

    def _estimate(self, columns: _Columns, gamma: float, gae_lambda: float) -> None:
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


class _Columns:
    """The arrays of several episodes by field: lists with an entry for each episode, which refer to the arrays.

    Attributes:
        observations: by name, (T, *shape).
        fields: ``actions`` and those of ``OPTIONAL``, (T,).
        terminated: whether each ended in a terminal state.
        bootstrap_values: the values of what follows.
        lengths: T of each.
    """

    def __init__(self, names: Iterable[str]):
        self.observations: dict[str, list[Any]] = {name: [] for name in names}
        self.fields: dict[str, list[Any]] = {name: [] for name in ("actions", *OPTIONAL)}
        self.terminated: list[bool] = []
        self.bootstrap_values: list[float] = []
        self.lengths: list[int] = []

    def add(self, episode: EpisodeData, length: int, copied: bool) -> None:
        """Append an episode that was checked, without a final observation, or copies of its arrays."""
        for name, column in self.observations.items():
            array = episode.observations[name][:length]
            column.append(array.copy() if copied else array)
        for name, column in self.fields.items():
            array = getattr(episode, name)
            if array is None:
                array = np.broadcast_to(OPTIONAL[name], (length,))
            elif copied:
                array = array.copy()
            column.append(array)
        self.terminated.append(episode.terminated)
        self.bootstrap_values.append(episode.bootstrap_value)
        self.lengths.append(length)

    def release(self, count: int) -> None:
        """Forget the arrays of the first ``count`` episodes."""
        for column in (*self.observations.values(), *self.fields.values()):
            column[:count] = [None] * count


class _Block(NamedTuple):
    """Steps ``begin`` to ``end - 1`` of episodes that follow each other; they lie in ``first`` to ``last - 1``."""

    begin: int
    end: int
    first: int
    last: int
    skipped: int
    """Steps of the first episode that lie before the block."""
    excess: int
    """Steps of the last episode that lie behind it."""

    def rows(self, column: list[np.ndarray]) -> list[np.ndarray]:
        """Return the rows of the block, given arrays (T, ...) of all episodes."""
        arrays = column[self.first : self.last]
        if self.excess:
            arrays[-1] = arrays[-1][: len(arrays[-1]) - self.excess]
        if self.skipped:
            arrays[0] = arrays[0][self.skipped :]
        return arrays


def _blocks(starts: np.ndarray, size: int) -> Iterator[_Block]:
    """Yield blocks of ``size`` steps, and of what is left; ``starts`` as of :func:`_first_steps`."""
    count = int(starts[-1])
    for begin in range(0, count, size):
        end = min(begin + size, count)
        first, last = int(starts.searchsorted(begin, "right")) - 1, int(starts.searchsorted(end))
        yield _Block(begin, end, first, last, begin - int(starts[first]), int(starts[last]) - end)


def _first_steps(lengths: list[int]) -> np.ndarray:
    """Return (E + 1,) int64: the first step of each of E episodes, and the number of steps."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _checked_length(
    number: int, episode: EpisodeData, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]], num_actions: int
) -> int:
    """Check names, shapes, dtypes, actions and masks of an episode; return its number of steps."""
    actions, observations = episode.actions, episode.observations
    if not (isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype.kind in "iu"):
        raise _wrong_field(number, "actions", "an integer array of shape (T,)", actions)
    count = len(actions)
    for name in OPTIONAL:
        array = getattr(episode, name)
        if array is not None and not (
            isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == (count,)
        ):
            raise _wrong_field(number, name, f"floats of shape ({count},)", array)
    if observations.keys() != specs.keys():
        got, expected = str(sorted(observations)), f"the names {sorted(specs)}"
        raise _error(number, "observations", expected, got, "record exactly these observations")
    for name, (shape, dtype) in specs.items():
        array, shapes = observations[name], ((count, *shape), (count + 1, *shape))
        if not isinstance(array, np.ndarray) or array.shape not in shapes or array.dtype != dtype:
            wanted = f"{dtype} of shape {shapes[0]} or, with the final observation, {shapes[1]}"
            fix = "record it with the environment of the policy"
            raise _error(number, f"observations[{name!r}]", wanted, _described(array), fix)
    outside = np.flatnonzero((actions < 0) | (actions >= num_actions))
    if len(outside):
        expected, got = f"numbers from 0 to {num_actions - 1}", f"{actions[outside[0]]} at step {outside[0]}"
        raise _error(number, "actions", expected, got, "number them so")
    if MASK in specs:
        masked = np.flatnonzero(observations[MASK][np.arange(count), actions] == 0)
        if len(masked):
            got = f"action {actions[masked[0]]} at step {masked[0]}, which its mask excludes"
            fix = "store the mask the action was chosen by"
            raise _error(number, "actions", "actions that the mask allows", got, fix)
    return count


def _wrong_field(number: int, name: str, expected: str, array: Any) -> TrajectoryError:
    return _error(number, name, expected, _described(array), "pass one entry for each step, as a NumPy array")


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _error(number: int, name: str, expected: str, got: str, fix: str) -> TrajectoryError:
    return TrajectoryError(f"trajectory {number}: {name}: expected {expected}, got {got}; {fix}")
