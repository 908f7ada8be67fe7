"""Custom rewards: a compiled function of the user, applied to the event of each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from nclone_env.env.compiled.passes import Call
from nclone_env.env.compiled.records import EVENT, PLAYING, SAME_STEP
from nclone_env.env.compiled.step_arrays import StepArrays
from nclone_env.errors import ConfigError

RewardFunction = Callable[[Any], float]
"""Takes one ``EVENT`` record (read by ``event["gold"]``) and returns the reward of the step."""


class RewardPass:
    """Replaces the configured rewards by those of a function.

    The function is compiled in the constructor, which does not call it.

    Raises:
        ConfigError: if it is not a function that Numba can compile to return a number.
    """

    def __init__(self, function: RewardFunction, arrays: StepArrays):
        self._replace = compile_reward(function)
        try:
            self._replace(*_arguments(arrays), 0, 0)
        except (numba.core.errors.NumbaError, TypeError) as error:
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
    """Return a compiled function that replaces the rewards of the last step of a range of environments.

    Raises:
        ConfigError: if ``function`` is not callable.
    """
    if not callable(function):
        raise ConfigError(f"reward_function: expected a function of one event that returns a number, got {function!r}")
    compiled = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)

    @numba.njit(nogil=True, error_model="numpy")
    def replace_rewards(events, episodes, results, settings, first, last):
        for index in range(first, last):
            result = results[index]
            if result["frames"] == 0:  # no frame was played: the step only began an episode, or waited for a reset
                continue
            result["reward"] = compiled(events[index])
            result["episode_return"] = events[index]["return_before"] + result["reward"]
            if result["outcome"] == PLAYING or settings[0]["autoreset"] != SAME_STEP:  # else a new episode has begun
                episodes[index]["episode_return"] = result["episode_return"]

    return replace_rewards
