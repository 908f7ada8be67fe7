"""Rollout storage: allocated once, then filled in place by the environments and the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory_tree import MemoryNode, array_group

Array = TypeVar("Array")


class StepFields(NamedTuple, Generic[Array]):
    """One value per step of T steps of N environments: NumPy arrays, or tensors that share their memory."""

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


class Minibatch(NamedTuple):
    """b random steps of a rollout; the next minibatch overwrites the tensors."""

    observations: dict[str, Tensor]
    """Name to (b, *shape), or to stacks (b, k, *shape)."""
    actions: Tensor
    """(b,) int64."""
    log_probs: Tensor
    """(b,) float32, log probabilities of the actions under the policy that took them."""
    advantages: Tensor
    """(b,) float32."""
    returns: Tensor
    """(b,) float32."""


_GATHERED = ("actions", "log_probs", "advantages", "returns")
"""Fields of :class:`StepFields` that a minibatch gathers under the same name."""


def stacked_rows(episode_starts: Tensor, steps: Tensor, depth: int) -> Tensor:
    """Return the rows of the stored observations that form the stacks of b steps, (b, k) int64, oldest first.

    Args:
        episode_starts: (T + k, N) bool, whether an observation is the first of its episode; the observation of
            step t is in row t + k - 1.
        steps: (b,) int64, numbered t * N + n like the result.
        depth: k.
    """
    offsets = torch.arange(depth)
    window = steps[:, None] + episode_starts.shape[1] * offsets
    first = (episode_starts.flatten()[window] * offsets).amax(1, keepdim=True)  # 0 if no episode starts in the window
    return steps[:, None] + episode_starts.shape[1] * torch.maximum(offsets, first)


class RolloutStorage:
    """A rollout of T steps of N environments, as arrays [T, N, ...] and as tensors that share their memory.

    The environments write the observations after step t in place: pass ``step_outputs()`` as ``out``. Every
    observation is stored once, in T + k rows: the observation of step t is in row t + k - 1, and the rows before it
    hold the end of the previous rollout. With k > 1 the policy sees stacks (k, *shape) of the last k observations,
    oldest first, gathered from these rows; an episode starts with its first observation repeated.

    Attributes:
        arrays: the fields of every step as NumPy arrays.
        tensors: the same memory as tensors.
        observation_arrays: name to (T + k, N, *shape).
        observations: the same memory as tensors.
        cursor: the step that is being recorded, 0 to T.

    Args:
        num_steps: T.
        num_envs: N.
        observation_space: the ``Dict`` space of one environment.
        minibatch_size: steps per minibatch; must divide T * N.
        frame_stack: k; 1 disables stacking.

    Raises:
        ValueError: if ``minibatch_size`` does not divide T * N.
    """

    def __init__(
        self, num_steps: int, num_envs: int, observation_space: Any, minibatch_size: int, frame_stack: int = 1
    ):
        if num_steps * num_envs % minibatch_size:
            raise ValueError(f"minibatch_size: expected a divisor of {num_steps * num_envs}, got {minibatch_size}")
        self.num_steps, self.num_envs, self.frame_stack = num_steps, num_envs, frame_stack
        self.cursor = 0
        self.arrays = _allocate_step_fields(num_steps, num_envs)
        self.tensors = StepFields(*map(torch.from_numpy, self.arrays))
        boxes = observation_space.spaces
        self.observation_arrays: dict[str, np.ndarray] = {
            name: np.zeros((num_steps + frame_stack, num_envs, *box.shape), box.dtype) for name, box in boxes.items()
        }
        self.observations = {name: torch.from_numpy(array) for name, array in self.observation_arrays.items()}
        # Whether an observation is the first of its episode; only stacking needs it.
        self._episode_starts = np.zeros((num_steps + frame_stack if frame_stack > 1 else 0, num_envs), np.bool_)
        self._step_outputs = [self._output_row(t) for t in range(num_steps)]
        self._flat_observations = {name: tensor.flatten(0, 1) for name, tensor in self.observations.items()}
        self._policy_inputs = self._observation_buffers(num_envs) if frame_stack > 1 else {}
        self._allocate_minibatch(minibatch_size)

    @property
    def full(self) -> bool:
        """Whether all T steps are stored."""
        return self.cursor == self.num_steps

    def observation(self) -> dict[str, Tensor]:
        """Return the observations at the cursor, from which the policy chooses the next actions.

        They are (N, *shape), or stacks (N, k, *shape) that the next call overwrites.
        """
        if self.frame_stack == 1:
            return {name: tensor[self.cursor] for name, tensor in self.observations.items()}
        return self._gather(self._current_steps(), self._policy_inputs)

    def final_observations(self, indices: np.ndarray, observations: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        """Return the final observations of m environments whose episodes ended at the cursor, stacked if k > 1.

        Args:
            indices: (m,) environments.
            observations: final observations by name, (N, *shape); other rows are not read.
        """
        final = {name: torch.from_numpy(array[indices]) for name, array in observations.items()}
        if self.frame_stack == 1:
            return final
        steps = self._current_steps()[torch.from_numpy(indices)]
        before = self._gather(steps, self._observation_buffers(len(indices)))
        return {name: torch.cat((before[name][:, 1:], last[:, None]), 1) for name, last in final.items()}

    def reset_outputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that a reset of all environments fills."""
        self._episode_starts[: self.frame_stack] = True
        return {name: array[self.frame_stack - 1] for name, array in self.observation_arrays.items()}

    def record(self, actions: Tensor, log_probs: Tensor, values: Tensor) -> np.ndarray:
        """Store the output of the policy at the cursor; return the row of actions (N,) for the environments."""
        self._refuse_overflow("record")
        self.tensors.actions[self.cursor].copy_(actions)
        self.tensors.log_probs[self.cursor].copy_(log_probs)
        self.tensors.values[self.cursor].copy_(values)
        return self.arrays.actions[self.cursor]

    def step_outputs(self) -> Mapping[str, np.ndarray]:
        """Return the arrays that the environments fill with the observations after the action at the cursor."""
        self._refuse_overflow("step_outputs")
        return self._step_outputs[self.cursor]

    def record_outcome(self, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Store the results of the action at the cursor, each (N,)."""
        self._refuse_overflow("record_outcome")
        self.arrays.rewards[self.cursor] = rewards
        self.arrays.terminated[self.cursor] = terminated
        self.arrays.truncated[self.cursor] = truncated
        if self.frame_stack > 1:
            np.logical_or(terminated, truncated, out=self._episode_starts[self.cursor + self.frame_stack])

    def record_final_values(self, indices: np.ndarray, values: Tensor) -> None:
        """Store the values (m,) of the final observations of m environments truncated at the cursor."""
        self._refuse_overflow("record_final_values")
        self.arrays.final_values[self.cursor, indices] = values.numpy()

    def advance(self) -> None:
        """Move the cursor to the next step."""
        self._refuse_overflow("advance")
        self.cursor += 1

    def record_last_values(self, values: Tensor) -> None:
        """Store the values (N,) of the observations after the last step."""
        if not self.full:
            raise RuntimeError(f"record_last_values: only {self.cursor} of {self.num_steps} steps are stored")
        self.tensors.values[self.num_steps].copy_(values)

    def clear(self) -> None:
        """Discard the rollout; only the cursor moves."""
        self.cursor = 0

    def continue_from_end(self) -> None:
        """Start the next rollout from the last observations of this one."""
        for array in (*self.observation_arrays.values(), self._episode_starts):
            array[: self.frame_stack] = array[self.cursor : self.cursor + self.frame_stack]
        self.clear()

    def minibatches(self, generator: torch.Generator) -> Iterator[Minibatch]:
        """Shuffle the rollout and yield all of it as minibatches, each in the same buffers."""
        torch.randperm(len(self._permutation), generator=generator, out=self._permutation)
        for steps in self._permutation.split(len(self._minibatch.actions)):
            self._gather(steps, self._minibatch.observations)
            for name in _GATHERED:
                torch.index_select(self._flat_fields[name], 0, steps, out=getattr(self._minibatch, name))
            yield self._minibatch

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        minibatch = {**self._minibatch.observations, **{name: getattr(self._minibatch, name) for name in _GATHERED}}
        scratch = {f"minibatch {name}": tensor.numpy() for name, tensor in minibatch.items()}
        scratch["permutation"] = self._permutation.numpy()
        inputs = {name: tensor.numpy() for name, tensor in self._policy_inputs.items()}
        groups = {
            "observations": self.observation_arrays,
            "steps": self.arrays._asdict(),
            "stacks": {"episode starts": self._episode_starts, **inputs} if self.frame_stack > 1 else {},
            "minibatch": scratch,
        }
        nodes = (array_group(name, arrays, shared=False) for name, arrays in groups.items() if arrays)
        return MemoryNode("rollout storage", children=tuple(nodes))

    def _output_row(self, t: int) -> dict[str, np.ndarray]:
        return {name: array[t + self.frame_stack] for name, array in self.observation_arrays.items()}

    def _current_steps(self) -> Tensor:
        """Return the numbers t * N + n of the steps at the cursor."""
        return torch.arange(self.cursor * self.num_envs, (self.cursor + 1) * self.num_envs)

    def _gather(self, steps: Tensor, out: dict[str, Tensor]) -> dict[str, Tensor]:
        """Write the observations of b steps, numbered t * N + n, to ``out`` and return it."""
        flat = out
        if self.frame_stack > 1:
            steps = stacked_rows(torch.from_numpy(self._episode_starts), steps, self.frame_stack).flatten()
            flat = {name: stacks.flatten(0, 1) for name, stacks in out.items()}
        for name, target in flat.items():
            torch.index_select(self._flat_observations[name], 0, steps, out=target)
        return out

    def _observation_buffers(self, count: int) -> dict[str, Tensor]:
        """Allocate room for ``count`` observations, or stacks of them, by name."""
        depth = (self.frame_stack,) if self.frame_stack > 1 else ()
        return {
            name: torch.zeros(count, *depth, *rows.shape[1:], dtype=rows.dtype)
            for name, rows in self._flat_observations.items()
        }

    def _allocate_minibatch(self, size: int) -> None:
        self._permutation = torch.zeros(self.num_steps * self.num_envs, dtype=torch.int64)
        self._flat_fields = {name: getattr(self.tensors, name).flatten() for name in _GATHERED}
        fields = {name: torch.zeros(size, dtype=source.dtype) for name, source in self._flat_fields.items()}
        self._minibatch = Minibatch(self._observation_buffers(size), **fields)

    def _refuse_overflow(self, method: str) -> None:
        if self.full:
            raise RuntimeError(
                f"{method}: all {self.num_steps} steps of the rollout are stored; call clear() or "
                "continue_from_end() before the next rollout"
            )


def _allocate_step_fields(num_steps: int, num_envs: int) -> StepFields[np.ndarray]:
    """Return zeroed fields for a rollout of T steps of N environments."""
    return StepFields(
        actions=np.zeros((num_steps, num_envs), np.int64),
        log_probs=np.zeros((num_steps, num_envs), np.float32),
        values=np.zeros((num_steps + 1, num_envs), np.float32),
        rewards=np.zeros((num_steps, num_envs), np.float32),
        terminated=np.zeros((num_steps, num_envs), np.bool_),
        truncated=np.zeros((num_steps, num_envs), np.bool_),
        final_values=np.zeros((num_steps, num_envs), np.float32),
        advantages=np.zeros((num_steps, num_envs), np.float32),
        returns=np.zeros((num_steps, num_envs), np.float32),
    )
