"""A call of a batch: passes that run one after another over each range of environments.

The first pass of a step is :class:`StepPass`, that of a reset :class:`ResetPass`. Passes that only some
configurations need follow: rewards and observations by functions of the user (:class:`RewardPass`, :class:`OwnPass`),
action masks, reachability.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig
from nclone_env.env.arrays.final import FinalRows
from nclone_env.env.compiled.records import EVENT, PLAYING, SAME_STEP
from nclone_env.env.compiled.step import reset_range, step_range
from nclone_env.env.compiled.step_arrays import FinalArrays, StepArrays
from nclone_env.errors import ConfigError, check_integer, check_value, scalar, shortened
from nclone_env.jit import current_digest, plain_dispatcher, specialised
from nclone_env.memory import MemoryNode, array_group
from nclone_env.obs import ObservationArrays, ObservationSpec, frame_specs
from nclone_env.sim import WorldArrays

NO_RESET = np.zeros(0, np.bool_)
_NAMES = {spec.name for spec in frame_specs(EnvironmentConfig(observations=OBSERVATION_NAMES))}
"""Of the observations of this package."""
_OWN_ROWS = np.zeros(0, np.int32)
"""Places of none: all environments write, in their own rows."""
_HERE = os.path.join(*Path(__file__).parts[-3:])
_RECORD = re.compile(r"Record\((?:[^()]|\([^()]*\))*\)")
"""Numba's name of a type, with every field."""
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
        self._name = _name_of(function)
        try:
            self._replace = _replacing(_given_reward(function))
            self._replace(*_arguments(arrays), 0, 0)
        except Exception as error:  # not only those of Numba: of unsupported code it raises any kind
            fields = ", ".join(EVENT.names or ())
            raise ConfigError(
                f"reward_function: expected a function of one event that Numba can compile and that returns a number, "
                f"got {shortened(function, 200)}: {_reason(error)}; an event has {fields}"
            ) from error

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Replace the rewards of environments ``first`` to ``last - 1``."""
        try:
            self._replace(*_arguments(call.arrays), first, last)
        except IndexError as error:
            raise _named("reward_function", self._name, error) from error


def _arguments(arrays: StepArrays) -> tuple[Any, ...]:
    return arrays.events, arrays.episodes, arrays.results, arrays.settings


@dataclass(frozen=True)
class _Given:
    """A function of the user, with constants as its first and last arguments.

    It equals another one if Numba would compile the same: they share what is compiled. For each it would take another
    quarter of a second and 2 MB, which Numba never frees.
    """

    digest: object
    function: Any = field(compare=False)
    before: tuple[Any, ...] = field(default=(), compare=False)
    after: tuple[Any, ...] = field(default=(), compare=False)


def _given(function: Any, before: tuple[Any, ...], count: int, after: tuple[Any, ...] = ()) -> _Given:
    """Return a function that takes ``count`` arguments between those that are constant."""
    if not callable(function):
        raise TypeError("it cannot be called")
    plain = getattr(function, "py_func", function)
    signature = inspect.signature(plain)
    try:
        signature.bind(*before, *count * (None,), *after)
    except TypeError:
        raise TypeError(f"it takes the arguments {signature}") from None
    options = sorted(getattr(function, "targetoptions", {}).items())
    digest = current_digest(plain, options, before, after) if isinstance(plain, FunctionType) else None
    return _Given(digest or object(), function, before, after)


def _given_reward(function: RewardFunction) -> _Given:
    """Return a function of one event, of a ``partial`` that which it calls."""
    function, before, after = _arguments_of(function) if isinstance(function, partial) else (function, (), ())
    return _given(function, before, 1, after)


@lru_cache(maxsize=32)
def _replacing(given: _Given) -> Callable[..., None]:
    """Return a compiled function that replaces the rewards of the last step of a range of environments."""
    compiled, before, after = _compiled(given.function), given.before, given.after

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


class OwnWorld(NamedTuple):
    """A world as custom observation functions see it.

    Attributes:
        ninja: record of the ninja: ``x`` and ``y`` (pixels), ``vx`` and ``vy`` (pixels per frame), ``state``,
            ``frame``, ``gold``, ``level`` (its index) and others (``sim.records``).
        entity_states: (e,) uint8, one for each entity of the level, as in snapshots; 0 is untouched.
        movers: (m,) records of the entities that move.
    """

    ninja: Any
    entity_states: np.ndarray
    movers: np.ndarray


@dataclass(frozen=True)
class ObservationFunction:
    """A further observation, written by a function that Numba compiles unless it is compiled already.

    Attributes:
        function: takes an ``OwnWorld`` and an array (size,) float32, of which it writes every number.
        size: numbers of the vector.
        low: least of each number, for the space.
        high: greatest of each number.
        name: of the array among the observations.
    """

    function: Callable[[Any, np.ndarray], object]
    size: int
    low: float = -np.inf
    high: float = np.inf
    name: str = "own"

    def __post_init__(self) -> None:
        size = check_integer("size", self.size, low=1, high=1 << 16)
        low, high = map(scalar, (self.low, self.high))
        for name, limit in (("low", low), ("high", high)):
            if not isinstance(limit, float) or not math.isinf(limit):
                check_value(name, float, limit)
        if low > high:
            raise ConfigError(f"low: expected at most high, {high}, got {low}")
        for name, number in (("size", size), ("low", float(low)), ("high", float(high))):
            object.__setattr__(self, name, number)  # of NumPy, one of 8 bits would overflow in sums of bytes
        if not isinstance(self.name, str) or not self.name.isidentifier() or self.name in _NAMES:
            raise ConfigError(f"name: expected a word that names no observation yet, got {shortened(self.name)}")

    def spec(self, stack: int = 1) -> ObservationSpec:
        """Return the row of the table of observations, of a stack of so many."""
        shape = (self.size,) if stack == 1 else (stack, self.size)
        return ObservationSpec(self.name, shape, np.dtype(np.float32), self.low, self.high, "by the caller's function")


class OwnPass:
    """Writes the observation of a function, also for episodes that ended.

    Attributes:
        ended: worlds at the end of an episode, one row for each environment, which the step fills in same-step mode;
            no rows where another observation has some, or without that mode.
    """

    def __init__(self, own: ObservationFunction, arrays: StepArrays, ended: WorldArrays):
        self._name, self._of, self.ended = own.name, _name_of(own.function), ended
        try:
            self._write = _writing(_given(own.function, (), 2))
            nothing, places = np.zeros((0, own.size), np.float32), np.zeros(0, np.int32)
            self._write(arrays.worlds, nothing, places, arrays.results, 0, 0, 0)
        except Exception as error:  # not only those of Numba: of unsupported code it raises any kind
            raise ConfigError(
                "observation_function: expected a function of a world and an array to write that Numba can compile, "
                f"got {shortened(own.function, 200)}: {_reason(error)}; a world has {', '.join(OwnWorld._fields)}"
            ) from error

    def __call__(self, call: Call, worker: int, first: int, last: int) -> None:
        """Write the rows of environments ``first`` to ``last - 1``, and of their episodes that ended."""
        arrays, results = call.arrays, call.arrays.results
        try:
            if self._name in call.out:
                self._write(arrays.worlds, call.out[self._name], _OWN_ROWS, results, call.base, first, last)
            if call.final is not None:
                final = call.final.arrays[self._name]
                self._write(call.final_view.worlds, final, call.final.places, results, call.base, first, last)
        except IndexError as error:
            raise _named("observation_function", self._of, error) from error

    def memory(self) -> MemoryNode:
        """Return the bytes of the worlds of ended episodes."""
        return array_group("ended worlds", self.ended._asdict(), shared=False)


@lru_cache(maxsize=32)
def _writing(given: _Given) -> Callable[..., None]:
    """Return a compiled function that writes a row for each of a range of environments, or those that ended."""
    compiled = _compiled(given.function)

    def write_rows(worlds, out, places, results, base, first, last):
        for index in range(first, last):
            row = index - base
            if places.shape[0] > 0:
                if not (results[index]["terminated"] or results[index]["truncated"]):
                    continue
                row = places[row]
            entities, movers = worlds.rooms[index]["entities"], worlds.rooms[index]["movers"]
            states = worlds.entity_states[entities["first"] : entities["first"] + entities["used"]]
            moving = worlds.movers[movers["first"] : movers["first"] + movers["used"]]
            compiled(OwnWorld(worlds.ninjas[index], states, moving), out[row])

    return plain_dispatcher(write_rows, {"nopython": True, "nogil": True, "error_model": "numpy"})


def _compiled(function: Any) -> Any:
    """Return a function of the user compiled with checks of its indices, unless it says ``boundscheck=False`` itself.

    Without them one that is out of range reads or writes memory behind the array, as there it is in every kernel.
    """
    given = {name: value for name, value in getattr(function, "targetoptions", {}).items() if value is not None}
    options = {"nopython": True, "error_model": "numpy"} if not hasattr(function, "py_func") else {}
    return numba.jit(**{"boundscheck": True, **options, **given})(getattr(function, "py_func", function))


def _reason(error: Exception) -> str:
    """Return in one line why a function of the user is refused; Numba writes dozens, which remain the error's cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("Failed in nopython mode")] or [type(error).__name__]
    text = " ".join(told[:2]) if told[0].endswith(":") else told[0]  # a signature follows
    places = [line.rstrip(":") for line in lines if line.startswith("File ") and _HERE not in line]
    text = _RECORD.sub("Record", text.replace(" >>> ", " ")).rstrip(".")
    return ", ".join([textwrap.shorten(text, 300, placeholder="..."), *places[:1]])


def _named(argument: str, name: str, error: IndexError) -> IndexError:
    """Return an error of a function of the user with its name."""
    return IndexError(f"{argument}: expected indices within their arrays in {name}, got another one ({error})")


def _name_of(function: Any) -> str:
    function = function.func if isinstance(function, partial) else function
    return getattr(function, "__qualname__", type(function).__name__)


def _arguments_of(function: partial[float]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Return the function that a ``partial`` calls, and its arguments before and after the event."""
    signature = inspect.signature(getattr(function.func, "py_func", function.func))
    bound = signature.bind(*function.args, None, **function.keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"it has arguments that can only be given by name: {', '.join(bound.kwargs)}")
    place = len(function.args)
    return function.func, bound.args[:place], bound.args[place + 1 :]
