"""Storage of one rollout: allocated once, written in place by the environments and by the policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nclone_env.memory_tree import MemoryNode, array_group


class Minibatch(NamedTuple):
    """A random part of a rollout; the tensors are overwritten by the next minibatch."""

    observations: dict[str, Tensor]
    """Name to (b, *shape), or to stacks (b, k, *shape)."""
    actions: Tensor
    """(b,) int64."""
    log_probs: Tensor
    """(b,) float32, of the actions when they were taken."""
    advantages: Tensor
    """(b,) float32."""
    returns: Tensor
    """(b,) float32."""


def stacked_rows(begins: Tensor, steps: Tensor, depth: int) -> Tensor:
    """Return which stored moments make the stacks of b steps, (b, k) int64, oldest first.

    Args:
        begins: (T + k, N) bool, whether a moment begins an episode; the moment of step t is in row t + k - 1.
        steps: (b,) int64, numbered t * N + n as the result is.
        depth: k.
    """
    places = torch.arange(depth)
    window = steps[:, None] + begins.shape[1] * places
    first = (begins.flatten()[window] * places).amax(1, keepdim=True)  # where the episode begins, else 0
    return steps[:, None] + begins.shape[1] * torch.maximum(places, first)


class RolloutStorage:
    """Rollout of T steps of N environments, as arrays [T, N, ...] and as tensors over the same memory.

    The environments write the observations after step t themselves: pass ``step_outputs()`` as ``out``.
    Values have T + 1 rows; the last one is where the rollout ended. Observations have T + k, every moment once: the
    moment of step t is row t + k - 1, and the rows before step 0 are the end of the rollout before. With k > 1 the
    policy gets stacks (k, *shape) of the last k moments, oldest first, gathered from them; an episode begins with its
    first moment repeated.

    Args:
        length: T.
        num_envs: N.
        observation_space: the ``Dict`` space of one environment.
        minibatch_size: steps of one minibatch; a divisor of T * N.
        frame_stack: k; 1: no stacks.
    """

    def __init__(self, length: int, num_envs: int, observation_space: Any, minibatch_size: int, frame_stack: int = 1):
        if length * num_envs % minibatch_size:
            raise ValueError(f"minibatch_size: expected a divisor of {length * num_envs}, got {minibatch_size}")
        self.length, self.num_envs, self.frame_stack = length, num_envs, frame_stack
        self.cursor = 0
        boxes = observation_space.spaces
        self.observation_arrays: dict[str, np.ndarray] = {
            name: np.zeros((length + frame_stack, num_envs, *box.shape), box.dtype) for name, box in boxes.items()
        }
        self.arrays: dict[str, np.ndarray] = {
            "actions": np.zeros((length, num_envs), np.int64),
            "log_probs": np.zeros((length, num_envs), np.float32),
            "values": np.zeros((length + 1, num_envs), np.float32),
            "rewards": np.zeros((length, num_envs), np.float32),
            "terminated": np.zeros((length, num_envs), np.bool_),
            "truncated": np.zeros((length, num_envs), np.bool_),
            "final_values": np.zeros((length, num_envs), np.float32),
            "advantages": np.zeros((length, num_envs), np.float32),
            "returns": np.zeros((length, num_envs), np.float32),
        }
        # Which moments begin an episode; only stacks need to know.
        self._begins = np.zeros((length + frame_stack if frame_stack > 1 else 0, num_envs), np.bool_)
        self.observations = {name: torch.from_numpy(a) for name, a in self.observation_arrays.items()}
        self.tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items()}
        self._step_outputs = [self._output_row(t) for t in range(length)]
        self._moments = {name: tensor.flatten(0, 1) for name, tensor in self.observations.items()}
        self._acting = self._observation_buffers(num_envs) if frame_stack > 1 else {}
        self._allocate_minibatch(minibatch_size)

    @property
    def full(self) -> bool:
        """Whether all T steps are stored."""
        return self.cursor == self.length

    def observation(self) -> dict[str, Tensor]:
        """Return the observations at the cursor: those the next action is chosen for.

        They are (N, *shape), or stacks (N, k, *shape) that the next call overwrites.
        """
        if self.frame_stack == 1:
            return {name: tensor[self.cursor] for name, tensor in self.observations.items()}
        return self._gather(self._steps_now(), self._acting)

    def final_observations(self, indices: np.ndarray, moments: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        """Return the last observations of m environments whose episodes the action at the cursor ended.

        Args:
            indices: (m,) environments.
            moments: last moments of the episodes, (N, *shape) by name; other rows are not read.
        """
        final = {name: torch.from_numpy(array[indices]) for name, array in moments.items()}
        if self.frame_stack == 1:
            return final
        steps = self._steps_now()[torch.from_numpy(indices)]
        before = self._gather(steps, self._observation_buffers(len(indices)))
        return {name: torch.cat((before[name][:, 1:], moment[:, None]), 1) for name, moment in final.items()}

    def reset_outputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that a reset of all environments fills."""
        self._begins[: self.frame_stack] = True
        return {name: array[self.frame_stack - 1] for name, array in self.observation_arrays.items()}

    def record(self, actions: Tensor, log_probs: Tensor, values: Tensor) -> np.ndarray:
        """Store what the policy chose at the cursor; return the row of actions (N,) for the environments."""
        self._refuse_overflow("record")
        self.tensors["actions"][self.cursor].copy_(actions)
        self.tensors["log_probs"][self.cursor].copy_(log_probs)
        self.tensors["values"][self.cursor].copy_(values)
        return self.arrays["actions"][self.cursor]

    def step_outputs(self) -> Mapping[str, np.ndarray]:
        """Return the arrays that the environments fill with the observations after the action at the cursor."""
        self._refuse_overflow("step_outputs")
        return self._step_outputs[self.cursor]

    def record_outcome(self, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Store what the environments answered to the action at the cursor, each (N,)."""
        self._refuse_overflow("record_outcome")
        self.arrays["rewards"][self.cursor] = rewards
        self.arrays["terminated"][self.cursor] = terminated
        self.arrays["truncated"][self.cursor] = truncated
        if self.frame_stack > 1:
            np.logical_or(terminated, truncated, out=self._begins[self.cursor + self.frame_stack])

    def record_final_values(self, indices: np.ndarray, values: Tensor) -> None:
        """Store the values (m,) of the final observations of m environments truncated at the cursor."""
        self._refuse_overflow("record_final_values")
        self.arrays["final_values"][self.cursor, indices] = values.numpy()

    def advance(self) -> None:
        """Move the cursor to the next step."""
        self._refuse_overflow("advance")
        self.cursor += 1

    def record_last_values(self, values: Tensor) -> None:
        """Store the values (N,) of the observations after the last step."""
        if not self.full:
            raise RuntimeError(f"record_last_values: only {self.cursor} of {self.length} steps are stored")
        self.tensors["values"][self.length].copy_(values)

    def clear(self) -> None:
        """Forget the rollout; only the cursor moves."""
        self.cursor = 0

    def continue_from_end(self) -> None:
        """Start the next rollout from the observations at which this one stands."""
        for array in (*self.observation_arrays.values(), self._begins):
            array[: self.frame_stack] = array[self.cursor : self.cursor + self.frame_stack]
        self.clear()

    def minibatches(self, generator: torch.Generator) -> Iterator[Minibatch]:
        """Yield the whole rollout in a fresh random order, minibatch by minibatch, in the same buffers."""
        torch.randperm(len(self._permutation), generator=generator, out=self._permutation)
        for steps in self._permutation.split(len(self._minibatch.actions)):
            self._gather(steps, self._minibatch.observations)
            for source, target in self._gathers:
                torch.index_select(source, 0, steps, out=target)
            yield self._minibatch

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes; the minibatch does not grow with the environments by itself."""
        gathered = (*self._minibatch.observations.values(), *(target for _, target in self._gathers))
        scratch = {f"minibatch {i}": target.numpy() for i, target in enumerate(gathered)}
        scratch["permutation"] = self._permutation.numpy()
        stacks = {"begins": self._begins, **{name: stack.numpy() for name, stack in self._acting.items()}}
        groups = {
            "observations": self.observation_arrays,
            "steps": self.arrays,
            "stacks": stacks if self.frame_stack > 1 else {},
            "minibatch": scratch,
        }
        nodes = (array_group(name, arrays, shared=False) for name, arrays in groups.items() if arrays)
        return MemoryNode("rollout storage", children=tuple(nodes))

    def _output_row(self, t: int) -> dict[str, np.ndarray]:
        return {name: array[t + self.frame_stack] for name, array in self.observation_arrays.items()}

    def _steps_now(self) -> Tensor:
        """Return the numbers t * N + n of the steps at the cursor."""
        return torch.arange(self.cursor * self.num_envs, (self.cursor + 1) * self.num_envs)

    def _gather(self, steps: Tensor, out: dict[str, Tensor]) -> dict[str, Tensor]:
        """Write the observations of b steps, numbered t * N + n, into buffers; return these."""
        flat = out
        if self.frame_stack > 1:
            steps = stacked_rows(torch.from_numpy(self._begins), steps, self.frame_stack).flatten()
            flat = {name: stacks.flatten(0, 1) for name, stacks in out.items()}
        for name, target in flat.items():
            torch.index_select(self._moments[name], 0, steps, out=target)
        return out

    def _observation_buffers(self, count: int) -> dict[str, Tensor]:
        depth = (self.frame_stack,) if self.frame_stack > 1 else ()
        return {
            name: torch.zeros(count, *depth, *moments.shape[1:], dtype=moments.dtype)
            for name, moments in self._moments.items()
        }

    def _allocate_minibatch(self, size: int) -> None:
        steps = self.length * self.num_envs
        self._permutation = torch.zeros(steps, dtype=torch.int64)
        sources = [self.tensors[name].flatten() for name in ("actions", "log_probs", "advantages", "returns")]
        self._gathers = [(source, torch.zeros(size, dtype=source.dtype)) for source in sources]
        self._minibatch = Minibatch(self._observation_buffers(size), *(target for _, target in self._gathers))

    def _refuse_overflow(self, method: str) -> None:
        if self.full:
            raise RuntimeError(
                f"{method}: all {self.length} steps of the rollout are stored; call clear() or "
                "continue_from_end() before the next rollout"
            )
