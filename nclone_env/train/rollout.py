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
    """Name to (b, *shape)."""
    actions: Tensor
    """(b,) int64."""
    log_probs: Tensor
    """(b,) float32, of the actions when they were taken."""
    advantages: Tensor
    """(b,) float32."""
    returns: Tensor
    """(b,) float32."""


class RolloutStorage:
    """Rollout of T steps of N environments, as arrays [T, N, ...] and as tensors over the same memory.

    The environments write row t + 1 of the observations themselves: pass ``step_outputs()`` as ``out``.
    Observations and values have T + 1 rows; the last one is where the rollout ended.

    Args:
        length: T.
        num_envs: N.
        observation_space: the ``Dict`` space of one environment.
        minibatch_size: steps of one minibatch; a divisor of T * N.
    """

    def __init__(self, length: int, num_envs: int, observation_space: Any, minibatch_size: int):
        if length * num_envs % minibatch_size:
            raise ValueError(f"minibatch_size: expected a divisor of {length * num_envs}, got {minibatch_size}")
        self.length, self.num_envs = length, num_envs
        self.cursor = 0
        boxes = observation_space.spaces
        self.observation_arrays: dict[str, np.ndarray] = {
            name: np.zeros((length + 1, num_envs, *box.shape), box.dtype) for name, box in boxes.items()
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
        self.observations = {name: torch.from_numpy(a) for name, a in self.observation_arrays.items()}
        self.tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items()}
        self._step_outputs = [self._output_row(t) for t in range(length)]
        self._allocate_minibatch(minibatch_size)

    @property
    def full(self) -> bool:
        """Whether all T steps are stored."""
        return self.cursor == self.length

    def observation(self) -> dict[str, Tensor]:
        """Return the observations (N, *shape) at the cursor: those the next action is chosen for."""
        return {name: tensor[self.cursor] for name, tensor in self.observations.items()}

    def reset_outputs(self) -> dict[str, np.ndarray]:
        """Return the arrays that a reset of the environments fills."""
        return {name: array[0] for name, array in self.observation_arrays.items()}

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

    def record_final_values(self, indices: np.ndarray, values: Tensor) -> None:
        """Store the values (k,) of the final observations of k environments truncated at the cursor."""
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
        for array in self.observation_arrays.values():
            array[0] = array[self.cursor]
        self.clear()

    def minibatches(self, generator: torch.Generator) -> Iterator[Minibatch]:
        """Yield the whole rollout in a fresh random order, minibatch by minibatch, in the same buffers."""
        torch.randperm(len(self._permutation), generator=generator, out=self._permutation)
        for indices in self._permutation.split(len(self._minibatch.actions)):
            for source, target in self._gathers:
                torch.index_select(source, 0, indices, out=target)
            yield self._minibatch

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes; the minibatch does not grow with the environments by itself."""
        gathered = {f"minibatch {i}": target.numpy() for i, (_, target) in enumerate(self._gathers)}
        scratch = {**gathered, "permutation": self._permutation.numpy()}
        return MemoryNode(
            "rollout storage",
            children=(
                array_group("observations", self.observation_arrays, shared=False),
                array_group("steps", self.arrays, shared=False),
                array_group("minibatch", scratch, shared=False),
            ),
        )

    def _output_row(self, t: int) -> dict[str, np.ndarray]:
        return {name: array[t + 1] for name, array in self.observation_arrays.items()}

    def _allocate_minibatch(self, size: int) -> None:
        steps = self.length * self.num_envs
        self._permutation = torch.zeros(steps, dtype=torch.int64)
        observations = {name: tensor[:-1].flatten(0, 1) for name, tensor in self.observations.items()}
        names = ("actions", "log_probs", "advantages", "returns")
        sources = {**observations, **{name: self.tensors[name].flatten() for name in names}}
        targets = {name: torch.zeros(size, *source.shape[1:], dtype=source.dtype) for name, source in sources.items()}
        self._gathers = [(sources[name], targets[name]) for name in sources]
        self._minibatch = Minibatch({name: targets[name] for name in observations}, *(targets[name] for name in names))

    def _refuse_overflow(self, method: str) -> None:
        if self.full:
            raise RuntimeError(
                f"{method}: all {self.length} steps of the rollout are stored; call clear() or "
                "continue_from_end() before the next rollout"
            )
