"""A call of a batch: passes that run one after another over each range of environments.

The first pass of a step is :class:`StepPass`, that of a reset :class:`ResetPass`. Passes that only some
configurations need follow: custom rewards, action masks, reachability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nclone_env.env.arrays.final import FinalRows
from nclone_env.env.compiled.observe import FinalArrays, ObservationArrays
from nclone_env.env.compiled.step import reset_range, step_range
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.jit import specialised

NO_RESET = np.zeros(0, np.bool_)


class Pass(Protocol):
    """One stage of a call."""

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Process environments ``first`` to ``last - 1`` in a worker slot."""


@dataclass(slots=True, eq=False)
class Call:
    """A step or reset: its passes and the arrays that they read and write.

    Attributes:
        passes: run in this order.
        arrays: state of the batch.
        out: observations by name, written.
        final: last observations of episodes that end in this call; None if they are not asked for.
        out_view: ``out`` as kernels take it.
        final_view: ``final`` as kernels take it.
        base: environment of the first row of ``out`` and of ``final.places``.
        reset: (n,) bool, the environments of the batch in which a reset begins an episode; not read by steps.
        given_up: set when no one waits for the call any more; long passes look at it between their pieces.
    """

    passes: tuple[Pass, ...]
    arrays: StepArrays
    out: Mapping[str, np.ndarray]
    final: FinalRows | None
    out_view: ObservationArrays
    final_view: FinalArrays
    base: int
    reset: np.ndarray
    given_up: bool = False

    def __call__(self, worker: int, first: int, last: int) -> None:
        """Run all passes over environments ``first`` to ``last - 1``."""
        for run_pass in self.passes:
            run_pass(self, worker, first, last)


class StepPass:
    """Actions, frames, rewards, autoreset and observations, compiled for arrays of these types."""

    __slots__ = ("_step",)

    def __init__(self, arrays: StepArrays, view: ObservationArrays, final_view: FinalArrays):
        self._step = specialised(step_range, arrays, view, final_view, 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Step environments ``first`` to ``last - 1``."""
        self._step(call.arrays, call.out_view, call.final_view, call.base, worker, first, last)


class ResetPass:
    """New episodes where the call asks for them, and observations, compiled for arrays of these types."""

    __slots__ = ("_reset",)

    def __init__(self, arrays: StepArrays, mask: np.ndarray, view: ObservationArrays):
        self._reset = specialised(reset_range, arrays, mask, view, 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Reset the masked environments of ``first`` to ``last - 1`` and observe all of them."""
        self._reset(call.arrays, call.reset, call.out_view, call.base, worker, first, last)
