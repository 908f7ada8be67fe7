"""Intake of trajectories of variable length: recordings, the episodes of several collectors, solutions of a planner.

A buffer holds the steps of all episodes one after another. Its memory is allocated for the first intake, and again only
for one with more steps than it has room for. Episodes are checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import TrajectoryError
from nclone_env.memory_tree import MemoryNode
from nclone_env.train.gae import estimate_episode_advantages
from nclone_env.train.rollout import LearningFields

_WINDOW = 4096
"""Steps that are gathered on the host before they are copied to another device in one transfer."""
_MASK = "action_mask"
_OPTIONAL = ("rewards", "values", "log_probs")
_FIELDS = {"actions": np.int64, **dict.fromkeys((*_OPTIONAL, "advantages", "returns"), np.float32)}


@dataclass(frozen=True, eq=False)
class Trajectory:
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

    It offers what ``train.network`` reads of a rollout, so that a network can learn from it.

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
        self._num_actions = num_actions
        boxes = observation_space.spaces
        self._specs = {name: (tuple(box.shape), np.dtype(box.dtype)) for name, box in boxes.items()}
        self._allocate(0)

    def fill(self, trajectories: Iterable[Trajectory], gamma: float, gae_lambda: float) -> Intake:
        """Replace the content by these episodes, and compute their advantages and returns.

        A sequence is read twice: first everything is checked and counted, then it is written. What can be read only
        once, such as a generator, is checked and copied episode by episode as it arrives, so it may reuse its arrays;
        the copies are released one by one as they are written.

        Args:
            trajectories: the episodes; none at all is fine, and so are episodes without steps.
            gamma: discount factor per step.
            gae_lambda: the lambda of generalised advantage estimation.

        Raises:
            TrajectoryError: if an array has the wrong name, shape, dtype or range. The content is unchanged.
            MemoryError: if there is no room for that many steps. The content is empty.
        """
        if isinstance(trajectories, Sequence):
            lengths = [self._check(number, episode) for number, episode in enumerate(trajectories)]
            episodes: Iterable[Trajectory] = trajectories
        else:
            copies = [self._copied(number, episode) for number, episode in enumerate(trajectories)]
            lengths = [len(copy.actions) for copy in copies]
            episodes = _released(copies)
        self._reserve(sum(lengths))
        self.episode_starts = np.cumsum([0, *lengths], dtype=np.int64)
        self.num_steps = int(self.episode_starts[-1])
        ends = self._write(episodes)
        self._estimate(*ends, gamma, gae_lambda)
        rewards = self._host["rewards"][: self.num_steps]
        mean = float(rewards.mean(dtype=np.float64)) if self.num_steps else float("nan")
        return Intake(self.num_steps, len(lengths), mean)

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
        depth = (self.frame_stack,) if self.frame_stack > 1 else ()
        return {
            name: torch.zeros(count, *self._stacks(name, depth), *rows.shape[1:], dtype=rows.dtype, device=rows.device)
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
        parts.append(("episode starts", self.episode_starts.nbytes))
        leaves = tuple(MemoryNode(name, size) for name, size in parts if size)
        return MemoryNode(f"trajectories, room for {self.capacity:,} steps", children=leaves)

    def _stacks(self, name: str, depth: tuple[int, ...]) -> tuple[int, ...]:
        return () if name == _MASK else depth

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

    def _write(self, episodes: Iterable[Trajectory]) -> tuple[np.ndarray, np.ndarray]:
        """Write all episodes; return whether each terminated, (E,) bool, and its bootstrap value, (E,) float32."""
        count = len(self.episode_starts) - 1
        terminated, bootstrap_values = np.zeros(count, np.bool_), np.zeros(count, np.float32)
        for number, episode in enumerate(episodes):
            first, last = self.episode_starts[number : number + 2].tolist()
            self._write_observations(episode.observations, first, last)
            self._host["actions"][first:last] = episode.actions
            for name in _OPTIONAL:
                given = getattr(episode, name)
                self._host[name][first:last] = (np.nan if name == "log_probs" else 0) if given is None else given
            terminated[number], bootstrap_values[number] = episode.terminated, episode.bootstrap_value
        return terminated, bootstrap_values

    def _write_observations(self, observations: Mapping[str, np.ndarray], first: int, last: int) -> None:
        """Write steps ``first`` to ``last - 1`` to the windows, and full windows to the device."""
        for name, window in self._windows.items():
            source, step = observations[name], first
            while step < last:
                row = step % len(window)
                count = min(last - step, len(window) - row)
                window[row : row + count] = source[step - first : step - first + count]
                step += count
                if self.device.type != "cpu" and (step % len(window) == 0 or step == self.num_steps):
                    begin = (step - 1) // len(window) * len(window)
                    self._observations[name][begin:step] = torch.from_numpy(window[: step - begin])

    def _estimate(self, terminated: np.ndarray, bootstrap_values: np.ndarray, gamma: float, gae_lambda: float) -> None:
        """Compute advantages and returns, and copy all fields of the steps to the device if it is another."""
        host = {name: array[: self.num_steps] for name, array in self._host.items()}
        estimate_episode_advantages(
            host["rewards"],
            host["values"],
            self.episode_starts,
            terminated,
            bootstrap_values,
            gamma,
            gae_lambda,
            host["advantages"],
            host["returns"],
        )
        if self.device.type != "cpu":
            for name, array in host.items():
                self._steps[name][: self.num_steps] = torch.from_numpy(array)

    def _check(self, number: int, episode: Trajectory) -> int:
        """Check one episode; return its number of steps."""
        actions = episode.actions
        _expect(number, "actions", "an integer array of shape (T,)", actions, "iu", None)
        count = len(actions)
        if count and not (actions.min() >= 0 and actions.max() < self._num_actions):
            got = actions[(actions < 0) | (actions >= self._num_actions)][0]
            raise _error(number, "actions", f"numbers from 0 to {self._num_actions - 1}", str(got), "number them so")
        for name in _OPTIONAL:
            if getattr(episode, name) is not None:
                _expect(number, name, f"floats of shape ({count},)", getattr(episode, name), "f", (count,))
        if set(episode.observations) != set(self._specs):
            got, expected = sorted(episode.observations), sorted(self._specs)
            raise _error(number, "observations", f"the names {expected}", str(got), "record exactly these observations")
        for name, (shape, dtype) in self._specs.items():
            _check_observation(number, name, episode.observations[name], (count, *shape), dtype)
        if _MASK in self._specs and count:
            _check_masks(number, actions, episode.observations[_MASK][:count])
        return count

    def _copied(self, number: int, episode: Trajectory) -> Trajectory:
        """Check one episode; return a copy without a final observation."""
        count = self._check(number, episode)
        optional = {name: getattr(episode, name) for name in _OPTIONAL}
        return Trajectory(
            {name: array[:count].copy() for name, array in episode.observations.items()},
            episode.actions.copy(),
            **{name: None if array is None else array.copy() for name, array in optional.items()},
            terminated=episode.terminated,
            bootstrap_value=episode.bootstrap_value,
        )


def _released(copies: list[Trajectory]) -> Iterable[Trajectory]:
    """Yield episodes in order without keeping them."""
    copies.reverse()
    while copies:
        yield copies.pop()


def _check_observation(number: int, name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    argument, final = f"observations[{name!r}]", (shape[0] + 1, *shape[1:])
    if not isinstance(array, np.ndarray) or array.shape not in (shape, final) or array.dtype != dtype:
        expected = f"{dtype} of shape {shape} or, with the final observation, {final}"
        raise _error(number, argument, expected, _described(array), "record it with the environment of the policy")


def _check_masks(number: int, actions: np.ndarray, masks: np.ndarray) -> None:
    """Check that the mask of each step allows its action, given masks (T, a) and actions (T,)."""
    taken = np.take_along_axis(masks, actions[:, None].astype(np.intp), axis=1)[:, 0]
    if not taken.all():
        step = int(np.flatnonzero(taken == 0)[0])
        got = f"action {actions[step]} at step {step}, which its mask excludes"
        raise _error(number, "actions", "actions that the mask allows", got, "store the mask the action was chosen by")


def _expect(number: int, name: str, expected: str, array: Any, kinds: str, shape: tuple[int, ...] | None) -> None:
    fits = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in kinds
    if not fits or (shape is not None and array.shape != shape):
        raise _error(number, name, expected, _described(array), "pass one entry for each step, as a NumPy array")


def _described(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _error(number: int, name: str, expected: str, got: str, fix: str) -> TrajectoryError:
    return TrajectoryError(f"trajectory {number}: {name}: expected {expected}, got {got}; {fix}")
