"""A range of environments of a batch that is stepped together, in the foreground or in the background."""

import threading

import numpy as np

from nclone_env.env.arrays.outputs import OutputMemory, Outputs
from nclone_env.env.batch import Batch
from nclone_env.env.compiled.passes import Call
from nclone_env.env.compiled.records import SAME_STEP
from nclone_env.env.threads import Chunks
from nclone_env.errors import StepOrderError


class Group:
    """Environments ``first`` to ``last - 1``.

    Attributes:
        outputs: memory for the outputs of their calls.
    """

    def __init__(self, batch: Batch, first: int, last: int, ring: int | None):
        self.first, self.last = first, last
        self._batch = batch
        only = batch.config.only_observation
        self.outputs = OutputMemory(batch.specs, last - first, batch.autoreset == SAME_STEP, ring, only)
        self._chunks = Chunks()
        self._pending: Outputs | None = None
        self._calling = threading.Lock()

    def __enter__(self) -> None:
        """Begin a call; those of other threads are rejected meanwhile.

        Raises:
            StepOrderError: if another thread is inside of a call.
        """
        if not self._calling.acquire(blocking=False):
            raise StepOrderError("two threads call send() or recv() of the same group at the same time; use one")

    def __exit__(self, *_: object) -> None:
        """End the call."""
        self._calling.release()

    @property
    def actions(self) -> np.ndarray:
        """(n,) int64, the actions of the next step."""
        return self._batch.actions[self.first : self.last]

    @property
    def pending(self) -> bool:
        """Whether a step has been sent and not yet received."""
        return self._pending is not None

    def reset(self, mask: np.ndarray, outputs: Outputs) -> None:
        """Begin new episodes where ``mask``, one bool per environment of the batch, is set."""
        call = self._batch.reset_call(mask, outputs.observations, self.first)
        workers = self._batch.workers
        workers.run(self._chunks, call, self.first, self.last, workers.pace_of_resets)
        self._complete(outputs)

    def step(self, outputs: Outputs) -> None:
        """Advance every environment by one step."""
        call = self._step_call(outputs)
        self._batch.workers.run(self._chunks, call, self.first, self.last)
        del call  # before the results are made: what a step allocates stays below a kilobyte
        self._complete(outputs)

    def send(self, outputs: Outputs) -> None:
        """Begin a step of every environment in the background."""
        self._batch.workers.start(self._chunks, self._step_call(outputs), self.first, self.last)
        self._pending = outputs

    def receive(self) -> Outputs:
        """Wait for the step that was sent; if the wait is interrupted, it can be waited for again.

        Raises:
            StepOrderError: if it was sent before this process was forked.
        """
        assert self._pending is not None
        outputs = self._pending
        self._chunks.finish()
        self._pending = None
        self._complete(outputs)
        return outputs

    def give_up(self) -> None:
        """Wait until no thread works on a sent step."""
        if self._pending is not None:
            self._chunks.give_up()
            self._pending = None

    def _step_call(self, outputs: Outputs) -> Call:
        outputs.final = self.outputs.take_final()
        return self._batch.step_call(outputs.observations, outputs.final, self.first)

    def _complete(self, outputs: Outputs) -> None:
        outputs.fill(self._batch.results[self.first : self.last])
        if outputs.final is not None:
            self._batch.finish_final(outputs.final, outputs.ended)
        self._batch.finish(outputs.observations)
        outputs.select_info()
