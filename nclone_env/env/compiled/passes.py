"""A call of a batch: passes that run one after another over each range of environments.

The first pass of a step is :class:`StepPass`, that of a reset :class:`ResetPass`. Passes that only some
configurations need follow: rewards by a function of the user (:class:`RewardPass`), action masks, reachability.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numba
import numpy as np

from nclone_env.env.arrays.final import FinalRows
from nclone_env.env.compiled.records import EVENT, PLAYING, SAME_STEP
from nclone_env.env.compiled.step import reset_range, step_range
from nclone_env.env.compiled.step_arrays import FinalArrays, StepArrays
from nclone_env.errors import ConfigError
from nclone_env.jit import plain_dispatcher, specialised
from nclone_env.obs import ObservationArrays

NO_RESET = np.zeros(0, np.bool_)
RewardFunction = Callable[[Any], float]
"""Takes one ``EVENT`` record (read by ``event["gold"]``) and returns the reward of the step."""


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
        reset: (n,) bool, the environments of the batch in which a reset begins an episode; not read by steps.
        base: environment of the first row of ``out``; above 0 where a single one is observed.
    """

    passes: tuple[Pass, ...]
    arrays: StepArrays
    out: Mapping[str, np.ndarray]
    final: FinalRows | None
    out_view: ObservationArrays
    final_view: FinalArrays
    reset: np.ndarray
    base: int = 0

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
        self._step(call.arrays, call.out_view, call.final_view, 0, worker, first, last)


class ResetPass:
    """New episodes where the call asks for them, and observations, compiled for arrays of these types."""

    __slots__ = ("_reset",)

    def __init__(self, arrays: StepArrays, mask: np.ndarray, view: ObservationArrays):
        self._reset = specialised(reset_range, arrays, mask, view, 0, 0, 0, 0)

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Reset the masked environments of ``first`` to ``last - 1`` and observe all of them."""
        self._reset(call.arrays, call.reset, call.out_view, call.base, worker, first, last)


class RewardPass:
    """Replaces the configured rewards by those of a function.

    The function is compiled in the constructor, which does not call it.
    """

    def __init__(self, function: RewardFunction, arrays: StepArrays):
        try:
            self._replace = compile_reward(function)
            self._replace(*_arguments(arrays), 0, 0)
        except (numba.core.errors.NumbaError, NotImplementedError, TypeError, ValueError) as error:
            fields = ", ".join(EVENT.names or ())
            raise ConfigError(
                f"reward_function: expected a function of one event that Numba can compile and that returns a number, "
                f"got {function!r}; an event has the fields {fields}. {error}"
            ) from error

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Replace the rewards of environments ``first`` to ``last - 1``."""
        self._replace(*_arguments(call.arrays), first, last)


def _arguments(arrays: StepArrays) -> tuple[Any, ...]:
    return arrays.events, arrays.episodes, arrays.results, arrays.settings


def compile_reward(function: RewardFunction) -> Callable[..., None]:
    """Return a compiled function that replaces the rewards of the last step of a range of environments."""
    if not callable(function):
        raise TypeError("It cannot be called.")
    function, before, after = _arguments_of(function) if isinstance(function, partial) else (function, (), ())
    compiled: Any = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)

    def replace_rewards(events, episodes, results, settings, first, last):
        for index in range(first, last):
            result = results[index]
            if result["frames"] == 0:  # no frame was played: the step only began an episode, or waited for a reset
                continue
            result["reward"] = compiled(*before, events[index], *after)
            result["episode_return"] = events[index]["return_before"] + result["reward"]
            if result["outcome"] == PLAYING or settings[0]["autoreset"] != SAME_STEP:  # else a new episode has begun
                episodes[index]["episode_return"] = result["episode_return"]

    return plain_dispatcher(replace_rewards, {"nopython": True, "nogil": True, "error_model": "numpy"})


def _arguments_of(function: partial[float]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Return the function that a ``partial`` calls, and its arguments before and after the event."""
    signature = inspect.signature(getattr(function.func, "py_func", function.func))
    bound = signature.bind(*function.args, None, **function.keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"It has arguments that can only be given by name: {', '.join(bound.kwargs)}.")
    place = len(function.args)
    return function.func, bound.args[:place], bound.args[place + 1 :]
