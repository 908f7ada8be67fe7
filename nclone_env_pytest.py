"""Plugin of pytest: a test fails if memory grows in it. Until a test uses it, nothing of the package is imported.

The logic is in ``nclone_env.memory``; this module is outside the package, which pytest would import with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

import pytest

_MARKER = "flat_memory"
_STEPS = 100


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    text = f"{_MARKER}(steps={_STEPS}, ...): repeat the test, and fail if memory grows from one call to the next; "
    config.addinivalue_line("markers", text + "arguments are those of nclone_env.memory.assert_flat")


@pytest.fixture
def memory_profile(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[Any]]:
    """Return a function that profiles a block and fails the test if memory grows: nclone_env.memory.flat_profile."""
    from nclone_env.memory import flat_profile

    def begin(name: str = request.node.name, **options: Any) -> AbstractContextManager[Any]:
        return flat_profile(name, **options)

    return begin


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Repeat a marked test."""
    marker = item.get_closest_marker(_MARKER)
    if marker is None or not isinstance(item, pytest.Function):
        yield
        return
    function = item.obj
    item.obj = _repeated(function, item.name, *marker.args, **marker.kwargs)
    yield
    item.obj = function


def _repeated(function: Callable[..., object], name: str, steps: int = _STEPS, **options: Any) -> Callable[..., None]:
    """Return a function that calls another one a number of times, and fails if memory grows."""
    from nclone_env.memory import GrowthError, assert_flat

    @wraps(function)
    def run(**arguments: Any) -> None:
        __tracebackhide__ = True
        if iscoroutinefunction(function):
            pytest.fail(f"{_MARKER}: expected a plain function, got a coroutine function", pytrace=False)
        try:
            assert_flat(partial(function, **arguments), steps, name=name, **options)
            return
        except GrowthError as error:
            message = str(error)
        pytest.fail(message, pytrace=False)

    return run
