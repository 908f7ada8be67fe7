"""A range of environments of a batch that is stepped as one, at once or in the background."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nclone_env.env.arrays.outputs import OutputMemory, Outputs
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.records import SAME_STEP
from nclone_env.env.threads import Job
from nclone_env.errors import StepOrderError
from nclone_env.memory_tree import MemoryNode


class Group:
    """Environments ``first`` to ``last - 1`` with the memory for what calls about them return."""

    def __init__(self, batch: Batch, first: int, last: int, ring: int | None):
        self.first, self.last = first, last
        self._batch = batch
        self._memory = OutputMemory(batch.specs, last - first, batch.autoreset == SAME_STEP, ring)
        self._job = Job()
        self._pending: Outputs | None = None

    @property
    def actions(self) -> np.ndarray:
        """(n,) int64, what the next step plays."""
        return self._batch.actions[self.first : self.last]

    @property
    def pending(self) -> bool:
        """Whether a step has been sent and not been received."""
        return self._pending is not None

    def take(self, out: Mapping[str, np.ndarray] | None) -> Outputs:
        """Return what the next call fills.

        Raises:
            BufferError: if ``out`` does not fit.
        """
        return self._memory.take(out)

    def reset(self, mask: np.ndarray, outputs: Outputs) -> None:
        """Begin new episodes where ``mask``, one bool an environment of the batch, is set."""
        task = self._batch.reset_task(mask, outputs.observations, self.first)
        self._batch.workers.run(self._job, task, self.first, self.last)
        self._batch.finish(outputs.observations, {})
        outputs.fill(self._batch.results[self.first : self.last])

    def step(self, outputs: Outputs) -> None:
        """Advance every environment by one step."""
        task = self._batch.step_task(outputs.observations, outputs.final, self.first)
        self._batch.workers.run(self._job, task, self.first, self.last)
        self._complete(outputs)

    def send(self, outputs: Outputs) -> None:
        """Begin to advance every environment by one step."""
        task = self._batch.step_task(outputs.observations, outputs.final, self.first)
        self._batch.workers.start(self._job, task, self.first, self.last)
        self._pending = outputs

    def receive(self) -> Outputs:
        """Wait for the step that was sent.

        Raises:
            StepOrderError: if none was.
        """
        if self._pending is None:
            raise StepOrderError("recv() was called before send(); send the actions of the step first")
        outputs, self._pending = self._pending, None
        self._job.finish()
        self._complete(outputs)
        return outputs

    def _complete(self, outputs: Outputs) -> None:
        self._batch.finish(outputs.observations, outputs.final)
        outputs.fill(self._batch.results[self.first : self.last])

    def memory(self) -> MemoryNode:
        """Return the bytes for what calls return."""
        return self._memory.memory()
