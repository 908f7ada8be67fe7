"""Rollout storage: allocated once, then filled in place by the environments and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory import MemoryNode, array_group
from nclone_env.train.policies.arrays import Array, LearningFields, stacked_shape

NOT_STACKED = ("action_mask",)
"""Observations of which the policy sees only the newest, as in stacks of the environment."""


class StepFields(NamedTuple, Generic[Array]):
    """One value per step of T steps of N environments."""

    actions: Array
    """(T, N) int64, the actions taken."""
    log_probs: Array
    """(T, N) float32, log probabilities of the actions under the policy that took them."""
    values: Array
    """(T + 1, N) float32, value estimates of the observations; the last row belongs to the end of the rollout."""
    rewards: Array
    """(T, N) float32."""
    terminated: Array
    """(T, N) bool, whether the step ended the episode in a terminal state."""
    truncated: Array
    """(T, N) bool, whether the step reached the time limit."""
    final_values: Array
    """(T, N) float32, value estimates of the final observations of truncated episodes; undefined elsewhere."""
    advantages: Array
    """(T, N) float32."""
    returns: Array
    """(T, N) float32, targets of the value function."""


def stacked_rows(episode_starts: Tensor, steps: Tensor, depth: int) -> Tensor:
    """Return the rows of the stored observations that form the stacks of b steps, (b, k) int64, oldest first.

    ``episode_starts``, (T + k, N) bool, tells the first observation of each episode; that of step t is in row
    t + k - 1. Steps, (b,), are numbered t * N + n like the result.
    """
    offsets = torch.arange(depth, device=steps.device)
    window = steps[:, None] + episode_starts.shape[1] * offsets
    first = (episode_starts.flatten()[window] * offsets).amax(1, keepdim=True)  # 0 if no episode starts in the window
    return steps[:, None] + episode_starts.shape[1] * torch.maximum(offsets, first)


class RolloutStorage:
    """A rollout of T steps of N environments in arrays (T, N, ...).

    The environments write the observations after step t in place. Every observation is stored once, in T + k rows: the
    observation of step t is in row t + k - 1, and the rows before it hold the end of the previous rollout. With k > 1
    the policy sees stacks (k, *shape) of the last k observations, oldest first, gathered from these rows; an episode
    starts with its first observation repeated.

    A policy with memory has states (h,) of each environment: those that the rollout begins with, from which learning
    starts, and those after the latest step.

    Attributes:
        arrays: the fields of every step.
        observation_arrays: name to (T + k, N, *shape).
        flat_observations: name to ((T + k) * N, *shape), the same memory.
        learning_fields: the fields that the loss reads, (T * N,), the same memory.
        reference: (T * N, a) float32, probabilities of a reference policy, or (0, a).
        episode_starts: (T + k, N) bool, whether an observation is the first of its episode; (0, N) if neither stacks
            nor a memory need it.
        states: (2, N, h) float32, the states before step 0, and the present ones.

    Args:
        observation_space: the ``Dict`` space of one environment.
        frame_stack: k; 1 disables stacking.
        reference_actions: a, choices of a reference policy whose probabilities are stored; 0: none.
        recurrent_size: h, units of a policy with memory; 0: none.
    """

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        observation_space: Any,
        frame_stack: int = 1,
        reference_actions: int = 0,
        recurrent_size: int = 0,
    ):
        rows = num_steps * num_envs if reference_actions else 0
        self.reference = np.zeros((rows, reference_actions), np.float32)
        self.num_steps, self.num_envs, self.frame_stack = num_steps, num_envs, frame_stack
        shape = (num_steps, num_envs)
        self.arrays: StepFields[np.ndarray] = StepFields(
            actions=np.zeros(shape, np.int64),
            log_probs=np.zeros(shape, np.float32),
            values=np.zeros((num_steps + 1, num_envs), np.float32),
            rewards=np.zeros(shape, np.float32),
            terminated=np.zeros(shape, np.bool_),
            truncated=np.zeros(shape, np.bool_),
            final_values=np.zeros(shape, np.float32),
            advantages=np.zeros(shape, np.float32),
            returns=np.zeros(shape, np.float32),
        )
        boxes = observation_space.spaces
        self.observation_arrays: dict[str, np.ndarray] = {
            name: np.zeros((num_steps + frame_stack, num_envs, *box.shape), box.dtype) for name, box in boxes.items()
        }
        depth = num_steps + frame_stack if frame_stack > 1 or recurrent_size else 0
        self.episode_starts = np.zeros((depth, num_envs), np.bool_)
        self.states = np.zeros((2, num_envs, recurrent_size), np.float32)
        self.flat_observations = {
            name: array.reshape(-1, *array.shape[2:]) for name, array in self.observation_arrays.items()
        }
        self.learning_fields: LearningFields[np.ndarray] = LearningFields(
            *(getattr(self.arrays, name).reshape(-1) for name in LearningFields._fields)
        )
        self._tensors = {name: torch.from_numpy(array) for name, array in self.flat_observations.items()}

    def columns(self, first: int, last: int) -> RolloutColumns:
        """Return the part of environments ``first`` to ``last - 1``."""
        return RolloutColumns(self, first, last)

    def observation_buffers(self, count: int) -> dict[str, Tensor]:
        """Allocate room for ``count`` observations, or stacks of them, by name."""
        shapes = {name: stacked_shape(name, rows.shape[1:], self.frame_stack) for name, rows in self._tensors.items()}
        return {name: torch.zeros(count, *shapes[name], dtype=rows.dtype) for name, rows in self._tensors.items()}

    def gather(self, steps: Tensor, out: Mapping[str, Tensor]) -> None:
        """Write the observations of b steps, numbered t * N + n, or stacks of them, to ``out``, (b, ...) by name."""
        newest = steps + (self.frame_stack - 1) * self.num_envs
        if self.frame_stack > 1:
            steps = stacked_rows(torch.from_numpy(self.episode_starts), steps, self.frame_stack).flatten()
        for name, target in out.items():
            is_stack = self.frame_stack > 1 and name not in NOT_STACKED
            rows, flat = (steps, target.flatten(0, 1)) if is_stack else (newest, target)
            torch.index_select(self._tensors[name], 0, rows, out=flat)

    def commit(self) -> None:
        """Write every page once: the system provides the memory of zeroed arrays only then."""
        for array in (*self.arrays, *self.observation_arrays.values(), self.states):
            array.fill(0)

    def continue_from_end(self) -> None:
        """Start the next rollout from the last observations of this one."""
        for array in (*self.observation_arrays.values(), self.episode_starts):
            array[: self.frame_stack] = array[self.num_steps : self.num_steps + self.frame_stack]
        self.states[0] = self.states[1]

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        groups = {
            "observations": self.observation_arrays,
            "steps": self.arrays._asdict(),
            "stacks": {"episode starts": self.episode_starts},
            "memory of the policy": {"states": self.states},
            "reference policy": {"probabilities": self.reference},
        }
        nodes = (array_group(name, arrays, shared=False) for name, arrays in groups.items())
        return MemoryNode("rollout storage", children=tuple(node for node in nodes if node.total_bytes))


class RolloutColumns:
    """The environments ``first`` to ``last - 1`` of a rollout, recorded step by step.

    Attributes:
        cursor: the step that is being recorded, 0 to T.
    """

    def __init__(self, storage: RolloutStorage, first: int, last: int):
        self.storage, self.first, self.last = storage, first, last
        self.cursor = 0
        depth, rows = storage.frame_stack, storage.observation_arrays
        self._rows = [
            {name: array[row, first:last] for name, array in rows.items()} for row in range(storage.num_steps + depth)
        ]
        self._stacks = storage.observation_buffers(last - first) if depth > 1 else {}
        self._stack_arrays = {name: stack.numpy() for name, stack in self._stacks.items()}

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return self.last - self.first

    @property
    def full(self) -> bool:
        """Whether all T steps are recorded."""
        return self.cursor == self.storage.num_steps

    def row(self, field: str) -> np.ndarray:
        """Return the (n,) entries of a field of ``StepFields`` at the cursor."""
        array = getattr(self.storage.arrays, field)
        if self.cursor >= len(array):
            raise RuntimeError(
                f"row({field!r}): all {self.storage.num_steps} steps of the rollout are recorded; call restart()"
            )
        return array[self.cursor, self.first : self.last]

    def reset_outputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that a reset of the environments fills."""
        depth = self.storage.frame_stack
        self.storage.episode_starts[:depth, self.first : self.last] = True
        return self._rows[depth - 1]

    @property
    def states(self) -> np.ndarray:
        """The present states (n, h) of a policy with memory; it writes those after each step."""
        return self.storage.states[1, self.first : self.last]

    def begin_states(self) -> np.ndarray:
        """Return the states, (n, h), with 0 where the observation at the cursor is the first of its episode."""
        storage, states = self.storage, self.states
        if states.size:
            states[storage.episode_starts[self.cursor + storage.frame_stack - 1, self.first : self.last]] = 0
        return states

    def observation(self) -> dict[str, np.ndarray]:
        """Return the observations at the cursor, from which the policy chooses the next actions.

        They are (n, *shape), or stacks (n, k, *shape) that the next call overwrites.
        """
        if self.storage.frame_stack == 1:
            return self._rows[self.cursor]
        self.storage.gather(self._steps(), self._stacks)
        return self._stack_arrays

    def step_outputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that the environments fill with the observations after the step at the cursor."""
        return self._rows[self.cursor + self.storage.frame_stack]

    def record_outcome(self, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Store the results of the step at the cursor, each (n,), and move on to the next step."""
        self.row("rewards")[:] = rewards
        self.row("terminated")[:] = terminated
        self.row("truncated")[:] = truncated
        if len(self.storage.episode_starts):
            starts = self.storage.episode_starts[self.cursor + self.storage.frame_stack, self.first : self.last]
            np.logical_or(terminated, truncated, out=starts)
        self.cursor += 1

    def stacked_finals(self, indices: np.ndarray, final: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return final observations, (m, *shape), of environments, (m,), as the policy sees them: stacked if k > 1."""
        if self.storage.frame_stack == 1:
            return final
        before = self.storage.observation_buffers(len(indices))
        self.storage.gather(self._steps()[torch.from_numpy(indices)], before)
        return {name: np.concatenate((before[name][:, 1:].numpy(), final[name][:, None]), 1) for name in final}

    def restart(self) -> None:
        """Record the next rollout: the cursor moves, and states are again those that the rollout begins with."""
        self.cursor = 0
        self.states[:] = self.storage.states[0, self.first : self.last]

    def memory(self) -> MemoryNode:
        """Return the bytes of the stacks."""
        return array_group("stacks", self._stack_arrays, shared=False)

    def _steps(self) -> Tensor:
        start = self.cursor * self.storage.num_envs
        return torch.arange(start + self.first, start + self.last)
