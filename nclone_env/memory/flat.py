"""Tests that memory does not grow: of any code and any environment, by the verdict of the profiler."""

import logging
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import _AsyncGeneratorContextManager, _GeneratorContextManager, contextmanager
from types import CoroutineType, TracebackType
from typing import Any

from nclone_env.errors import ConfigError, check_integer, checked
from nclone_env.memory.measure.measurements import TIME_UNIT
from nclone_env.memory.watch import Watch, profile

_BLOCKS = (_GeneratorContextManager, _AsyncGeneratorContextManager)
_UNDONE = (Awaitable, Generator, AsyncGenerator, *_BLOCKS, map, filter, zip, enumerate)
"""What a function returns that has done nothing yet; so do all of ``itertools``."""
_VERDICTS = {"growing": "memory grows", "undecided": "too little to tell whether memory grows"}


class GrowthError(AssertionError):
    """Memory grows, or there was too little to tell."""


class FlatProfile:
    """A profile of a block that fails at its end if memory grows; see :func:`flat_profile`."""

    def __init__(self, watch: Watch):
        self._watch, self._messages = watch, _first_messages()

    def __enter__(self) -> Watch:
        """Begin to take snapshots."""
        self._messages.__enter__()
        return self._watch.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the last snapshot, and judge, unless the block failed."""
        __tracebackhide__ = True  # pytest shows the line of the test
        try:
            self._watch.__exit__(kind, error, trace)
        finally:
            self._messages.__exit__(None, None, None)
        assert self._watch.stats is not None
        verdict, unit = self._watch.stats.verdict, self._watch.stats.measurements.unit
        if kind is None and verdict != "flat":
            uncounted = "; call step() of the profile where the block repeats" if unit == TIME_UNIT else ""
            raise GrowthError(f"{_VERDICTS[verdict]}{uncounted}\n{self._watch}")


@checked()
def flat_profile(name: str = "block", **options: Any) -> FlatProfile:
    """Return a context manager that profiles a block as :func:`profile` does, and fails at its end if memory grows.

    Args:
        name: of what is tested, for the message.
        options: the other arguments of :func:`profile`.

    Raises:
        GrowthError: an AssertionError; see :func:`assert_flat`.
    """
    return FlatProfile(profile(name, **options))


@checked("steps")
def assert_flat(function: Callable[[], object], steps: int = 1000, *, name: str = "", **options: Any) -> Watch:
    """Call a function a number of times, and fail if memory grows from call to call.

    Args:
        function: what is repeated; the first fifth of the calls is warm-up.
        steps: number of calls. Where memory was taken once among the later ones, so many follow as tell that from a
            leak, at most as many again.
        name: of what is tested, for the message; by default that of the function.
        options: the other arguments of :func:`profile`.

    Returns:
        The profile; its ``str()`` says how small a leak would have shown.

    Raises:
        ConfigError: the function returns a coroutine or a generator, which would never run; or ``steps`` is no whole
            number of at least 1.
        GrowthError: an AssertionError, if memory grows, or there were too few calls to tell. The message names the
            lines that grew with their rates, and the objects that keep their memory.

    Example:
        >>> environment = gymnasium.make("CartPole-v1")
        >>> def episode():
        ...     environment.reset()
        ...     while not any(environment.step(environment.action_space.sample())[2:4]):
        ...         pass
        >>> assert_flat(episode, steps=200)
    """
    __tracebackhide__ = True
    steps = check_integer("steps", steps, low=1)
    name = name or getattr(function, "__qualname__", repr(function))
    with flat_profile(name, **options) as watch:
        watch.expected_steps = steps
        more, left = steps, 2 * steps
        while more:
            for _ in range(more):
                check_done("function", name, function())
                watch.step()
            left -= more
            more = min(left, watch.missing_steps())
    return watch


def check_done(argument: str, name: str, result: object) -> None:
    """Raise a ConfigError if a call returned something that is yet to be run: it has done nothing."""
    kind = type(result)
    if not (issubclass(kind, _UNDONE) or kind.__module__ == "itertools"):
        return
    if isinstance(result, CoroutineType):
        result.close()  # without the warning that it was never awaited
    how = f"asyncio.run({name}())" if isinstance(result, Awaitable) else f"list({name}())"
    if isinstance(result, AsyncGenerator):
        how = "asyncio.run on a coroutine that iterates over it"
    if isinstance(result, _BLOCKS):
        how = f"with {name}()"
    raise ConfigError(
        f"{argument}: expected one that does its work when called, got {name}, which returned a {kind.__name__} "
        f"that has yet to run; call {how} in a function"
    )


@contextmanager
def _first_messages() -> Iterator[None]:
    """Let pytest record warnings and log messages of a line only once: it keeps all that it records."""
    shown = warnings.showwarning
    seen: set[tuple[object, str, int]] = set()

    def is_first(handler: object, file: str, line: int) -> bool:
        before = len(seen)
        seen.add((handler, file, line))
        return len(seen) > before

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *others: Any) -> None:
        if is_first(None, filename, lineno):
            shown(message, category, filename, lineno, *others)

    filters = {
        handler: lambda record, handler=handler: is_first(handler, record.pathname, record.lineno)
        for handler in logging.getLogger().handlers
        if type(handler).__module__ == "_pytest.logging"
    }
    warnings.showwarning = show  # type: ignore[assignment]
    for handler, once in filters.items():
        handler.addFilter(once)
    try:
        yield
    finally:
        warnings.showwarning = shown
        for handler, once in filters.items():
            handler.removeFilter(once)
