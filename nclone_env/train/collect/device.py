"""Collection on a device: environments, rollout and policy are there, and the host waits for none of their steps.

Rollout, collector and random numbers are those of the processor (``train.collect.rollout``, ``collector``), with
tensors of the device in the place of arrays: a seed draws the same numbers in the same steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.env import WON
from nclone_env.memory import MemoryNode
from nclone_env.train.collect.episodes import EpisodeLog
from nclone_env.train.collect.rollout import NOT_STACKED, StepFields, stacked_rows
from nclone_env.train.policies.arrays import LearningFields
from nclone_env.train.policies.device import (
    DeviceNetwork,
    Repeated,
    fetch_later,
    host_zeros,
    sampled,
    send,
    uniform_numbers,
)

if TYPE_CHECKING:
    from nclone_env.env import NPlusPlusCudaVectorEnv

ENDED = {
    "level": torch.int32,
    "start": torch.int32,
    "outcome": torch.int8,
    "episode_return": torch.float64,
    "episode_frames": torch.int32,
}
"""Results that are stored of every step, for the log of the episodes that end in it."""
_LISTED_STEPS = 8
"""Steps of an environment for which there is room for one ended episode; more come to the host by a further copy."""


class DeviceRollout:
    """A rollout of T steps of N environments on a device.

    Attributes are those of ``RolloutStorage``, with the same shapes, as tensors; there are no states of a memory.
    ``ended`` are (T, N) tensors by the names of ``ENDED``.
    """

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        observation_space: Any,
        frame_stack: int,
        reference_actions: int,
        place: torch.device,
    ):
        self.num_steps, self.num_envs, self.frame_stack, self.place = num_steps, num_envs, frame_stack, place
        shape = (num_steps, num_envs)

        def zeros(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=place)

        numbers = {name: zeros(torch.float32, *shape) for name in StepFields._fields}
        numbers |= {name: zeros(torch.bool, *shape) for name in ("terminated", "truncated")}
        numbers |= {"actions": zeros(torch.int64, *shape), "values": zeros(torch.float32, num_steps + 1, num_envs)}
        self.arrays: StepFields[Tensor] = StepFields(**numbers)
        self.ended = {name: zeros(dtype, *shape) for name, dtype in ENDED.items()}
        self.reference = zeros(torch.float32, num_steps * num_envs if reference_actions else 0, reference_actions)
        self.observation_arrays = {
            name: zeros(getattr(torch, box.dtype.name), num_steps + frame_stack, num_envs, *box.shape)
            for name, box in observation_space.spaces.items()
        }
        self.flat_observations = {name: rows.flatten(0, 1) for name, rows in self.observation_arrays.items()}
        self.episode_starts = zeros(torch.bool, num_steps + frame_stack if frame_stack > 1 else 0, num_envs)
        self.learning_fields: LearningFields[Tensor] = LearningFields(
            *(getattr(self.arrays, name).flatten() for name in LearningFields._fields)
        )
        self._steps = torch.arange(num_steps * num_envs + num_envs, device=place).view(-1, num_envs)

    def observation(self, step: int) -> dict[str, Tensor]:
        """Return the observations of a step, (N, *shape) by name, or stacks of them, (N, k, *shape)."""
        if self.frame_stack == 1:
            return {name: rows[step] for name, rows in self.observation_arrays.items()}
        return self.gather(self._steps[step])

    def gather(self, steps: Tensor) -> dict[str, Tensor]:
        """Return the observations of b steps, (b,) int64, numbered t * N + n, or stacks of them, by name."""
        depth = self.frame_stack
        newest = steps + (depth - 1) * self.num_envs
        if depth == 1:
            return {name: rows.index_select(0, newest) for name, rows in self.flat_observations.items()}
        stacks = stacked_rows(self.episode_starts, steps, depth)
        return {
            name: rows.index_select(0, newest)
            if name in NOT_STACKED
            else rows.index_select(0, stacks.flatten()).view(*stacks.shape, *rows.shape[1:])
            for name, rows in self.flat_observations.items()
        }

    def first_outputs(self) -> dict[str, Tensor]:
        """Return the tensors that a reset of the environments fills."""
        self.episode_starts[: self.frame_stack] = True
        return {name: rows[self.frame_stack - 1] for name, rows in self.observation_arrays.items()}

    def step_outputs(self, step: int) -> dict[str, Tensor]:
        """Return the tensors that the environments fill in a step."""
        arrays = self.arrays
        results = {"rewards": arrays.rewards, "terminations": arrays.terminated, "truncations": arrays.truncated}
        seen = {name: rows[step + self.frame_stack] for name, rows in self.observation_arrays.items()}
        return seen | {name: rows[step] for name, rows in (results | self.ended).items()}

    def commit(self) -> None:
        """Do nothing: memory of a device is there once it is allocated."""

    def continue_from_end(self) -> None:
        """Start the next rollout from the last observations of this one."""
        for rows in (*self.observation_arrays.values(), self.episode_starts):
            rows[: self.frame_stack] = rows[self.num_steps : self.num_steps + self.frame_stack].clone()

    def memory(self) -> MemoryNode:
        """Return the bytes on the device."""
        tensors = (
            *self.arrays,
            *self.observation_arrays.values(),
            *self.ended.values(),
            *(self.episode_starts, self.reference, self._steps),
        )
        return MemoryNode("rollout storage", sum(tensor.nbytes for tensor in tensors))


class DeviceCollector:
    """Plays all environments of a run on a device; ``Collector`` is its counterpart.

    Attributes:
        first: number of the first environment, counted over all ranks.
        episodes: the episodes that ended in the rollout, once :meth:`finish` has fetched them.
        step_seconds: (T,) float64, the mean time of a step of the last rollout, as often as there are steps.

    Args:
        after: computes what is left of the rollout once all steps are played.
    """

    def __init__(
        self,
        envs: NPlusPlusCudaVectorEnv,
        rollout: DeviceRollout,
        network: DeviceNetwork,
        seed: int,
        first: int,
        after: Callable[[], None],
    ):
        self.envs, self._rollout, self._network, self._seed = envs, rollout, network, seed
        self.first, self._after = first, after
        place, num_steps = rollout.place, rollout.num_steps
        self.episodes = EpisodeLog(num_steps * rollout.num_envs, np.int32)
        self.step_seconds = np.zeros(num_steps)
        self._listed = rollout.num_envs * max(1, num_steps // _LISTED_STEPS)
        size = 1 + (1 + len(ENDED)) * self._listed
        self._log = torch.zeros(size, dtype=torch.float64, device=place)
        self._host_log = host_zeros((size,), np.float64, place)
        self._first_step = torch.zeros(1, dtype=torch.int64, device=place)
        self._host_step = host_zeros((1,), np.int64, place)
        self._numbers = torch.arange(first, first + rollout.num_envs, device=place)
        self._offsets = torch.arange(num_steps, device=place)
        self._play = Repeated(self._play_steps, place)
        self._clock = Clock(place)

    def reset(self, seed: int) -> None:
        """Begin new episodes; environment i of the run gets seed ``seed + i``."""
        self.envs.reset(seed=seed + self.first, out=self._rollout.first_outputs())

    def play(self, seat: int, step: int) -> None:
        """Begin to play all steps of the rollout, the first of which is number ``step`` of the run."""
        self._host_step[:] = step
        send(self._host_step, self._first_step)
        self._clock.begin()
        self._play()
        fetch_later(self._log, self._host_log)
        self._clock.end()

    def finish(self) -> None:
        """Wait for the rollout, and fetch the episodes that ended in it."""
        self.step_seconds[:] = self._clock.seconds() / len(self.step_seconds)
        count = int(self._host_log[0])
        columns = self._host_log[1:].reshape(1 + len(ENDED), -1)[:, :count]
        if count > self._listed:
            columns = self._listed_episodes(count).cpu().numpy()
        steps, level, start, outcome, total, frames = columns
        self.episodes.steps[:count] = np.column_stack(np.divmod(steps, self._rollout.num_envs))
        records = self.episodes.records[:count]
        records["level"], records["start"], records["success"] = level, start, outcome == WON
        records["total"], records["frames"] = total, frames
        self.episodes.clear()
        self.episodes.count = count

    def warm_up(self, seat: int) -> None:
        """Play a rollout of new episodes."""
        self.reset(0)
        self.play(seat, 0)
        self.finish()

    def states(self) -> list[bytes]:
        """Return the snapshot of each environment."""
        return self.envs.get_states()

    def restore(self, states: Sequence[bytes]) -> None:
        """Restore all environments from snapshots."""
        self.envs.set_states(states)

    def memory(self) -> MemoryNode:
        """Return the bytes of the environments and of everything else here."""
        tensors = self._log, self._first_step, self._numbers, self._offsets
        own = MemoryNode("ended episodes", sum(tensor.nbytes for tensor in tensors) + self._host_log.nbytes + 8)
        return MemoryNode("group", children=(self.envs.memory(), self.episodes.memory(), own))

    @torch.no_grad()
    def _play_steps(self) -> None:
        """Play all steps, estimate the values, and list the episodes that ended."""
        rollout, arrays, outputs = self._rollout, self._rollout.arrays, self._network.module
        uniform = uniform_numbers(self._seed, self._numbers, self._first_step + self._offsets)
        for step in range(rollout.num_steps):
            seen = rollout.observation(step)
            logits, arrays.values[step] = outputs(seen)
            arrays.actions[step], arrays.log_probs[step] = sampled(logits, seen.get("action_mask"), uniform[step])
            *_, info = self.envs.step(arrays.actions[step], out=rollout.step_outputs(step))
            # Of all environments, most of whose episodes go on: to ask which ended would be to wait.
            arrays.final_values[step] = outputs(self._finals(seen, info["final_obs"]))[1]
            if len(rollout.episode_starts):
                rollout.episode_starts[step + rollout.frame_stack] = info["_final_obs"]
        arrays.values[rollout.num_steps] = outputs(rollout.observation(rollout.num_steps))[1]
        self._after()
        self._log[0] = (arrays.terminated | arrays.truncated).sum()
        self._log[1:] = self._listed_episodes(self._listed).flatten()

    def _finals(self, seen: dict[str, Tensor], final: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return last observations as the policy sees them after what it has ``seen``: stacked if k > 1."""
        if self._rollout.frame_stack == 1:
            return final
        return {
            name: rows if name in NOT_STACKED else torch.cat((seen[name][:, 1:], rows[:, None]), 1)
            for name, rows in final.items()
        }

    def _listed_episodes(self, most: int) -> Tensor:
        """Return number and results, (6, most) float64, of the steps in which episodes ended, in their order."""
        arrays = self._rollout.arrays
        over = (arrays.terminated | arrays.truncated).flatten()
        places = torch.where(over, over.cumsum(0) - 1, most).clamp(max=most)
        steps = torch.zeros(most + 1, dtype=torch.int64, device=over.device)
        steps.scatter_(0, places, torch.arange(len(over), device=over.device))
        results = (column.flatten()[steps[:-1]] for column in self._rollout.ended.values())
        return torch.stack([column.double() for column in (steps[:-1], *results)])


class Clock:
    """Times work that the host hands to a device; on a GPU by its events, as the host does not wait for it."""

    def __init__(self, place: torch.device):
        self._place, is_gpu = place, place.type == "cuda"
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)] if is_gpu else None
        self._times = [0.0, 0.0]

    def begin(self) -> None:
        """Note the beginning."""
        self._note(0)

    def end(self) -> None:
        """Note the end."""
        self._note(1)

    def seconds(self) -> float:
        """Wait for the end, and return the seconds in between."""
        if self._events is None:
            return self._times[1] - self._times[0]
        first, last = self._events
        last.synchronize()
        return float(first.elapsed_time(last)) / 1000

    def _note(self, number: int) -> None:
        if self._events is None:
            self._times[number] = time.perf_counter()
        else:
            self._events[number].record(torch.cuda.current_stream(self._place))
