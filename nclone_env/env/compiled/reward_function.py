"""Rewards by a compiled function of the user, computed from what the step noted of each environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from nclone_env.env.compiled.records import EVENT, PLAYING, SAME_STEP
from nclone_env.errors import ConfigError

RewardFunction = Callable[[Any], float]
"""Takes one ``EVENT`` record (read by ``event["gold"]``) and returns the reward of the step."""


def compile_reward(function: RewardFunction) -> Callable[..., None]:
    """Return the compiled pass over a range of environments that replaces the reward of their last step.

    Raises:
        ConfigError: if the function is none or cannot be compiled to one that returns a number.
    """
    if not callable(function):
        raise ConfigError(f"reward_function: expected a function of one event that returns a number, got {function!r}")
    compiled = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)

    @numba.njit(nogil=True, error_model="numpy")
    def replace_rewards(events, episodes, results, autoreset, first, last):
        for index in range(first, last):
            result = results[index]
            if result["frames"] == 0:  # nothing was played: a step that only began an episode, or waited
                continue
            result["reward"] = compiled(events[index])
            result["episode_return"] = events[index]["earned"] + result["reward"]
            if result["outcome"] == PLAYING or autoreset != SAME_STEP:  # else the next episode has begun
                episodes[index]["episode_return"] = result["episode_return"]

    return replace_rewards


class RewardPass:
    """Replaces the rewards of a batch; compiled, and tried on an event of zeros, when it is made."""

    def __init__(
        self, function: RewardFunction, events: np.ndarray, episodes: np.ndarray, results: np.ndarray, autoreset: int
    ):
        self._arguments = (events, episodes, results, autoreset)
        self._replace = compile_reward(function)
        try:
            self._replace(*self._arguments, 0, 0)
        except (numba.core.errors.NumbaError, TypeError) as error:
            fields = ", ".join(EVENT.names or ())
            raise ConfigError(
                f"reward_function: expected what Numba can compile, a function of one event that returns a number, got "
                f"{function!r}; an event has the fields {fields}. {error}"
            ) from error

    def __call__(self, first: int, last: int) -> None:
        """Replace the rewards of a range of environments."""
        self._replace(*self._arguments, first, last)
