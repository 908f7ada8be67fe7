"""The two ways to compile a kernel: the fast one of ``jit.inner``, or Numba's own where the fast one does not work.

Both give the same results; the fast one needs less than half the time. It uses private parts of Numba. With a version
of Numba that has not been tested it is first tried on a small kernel, once in each new cache folder (0.8 s), and
Numba's own way is used, with a line on stderr, if anything fails. ``NCLONE_ENV_PLAIN_JIT=1`` always selects it.
"""

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba

from nclone_env._files import variable
from nclone_env.jit import private
from nclone_env.jit.folder import cache_folder
from nclone_env.jit.private import IS_INTERPRETED, say_missing

Decorator = Callable[[Callable[..., Any], dict[str, Any]], Any]
"""Takes a function and Numba's options and returns a lazy dispatcher."""

TESTED_VERSIONS = ("0.62.1", "0.68.1")
"""Versions of Numba with which the fast way passes all tests."""

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Numba's options for all kernels. ``_nrt`` is undocumented; it turns the run-time memory manager off."""


def plain_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return Numba's own dispatcher, of functions that allocate memory as well; calls set the floating-point mode."""
    if numba.__version__ not in TESTED_VERSIONS:
        return numba.jit(**options)(function)
    from nclone_env.jit.exact import ExactCompiler  # private parts of Numba

    return numba.jit(**options, pipeline_class=ExactCompiler)(function)


def choose_dispatcher() -> Decorator:
    """Return the function that makes dispatchers: the fast way if it works."""
    if IS_INTERPRETED or variable("NCLONE_ENV_PLAIN_JIT") == "1":
        return plain_dispatcher
    try:
        from nclone_env.jit.inner import KernelDispatcher

        if numba.__version__ not in TESTED_VERSIONS:
            tried = (cache_folder() or Path(os.devnull)) / "fast"
            if not tried.exists():
                _try(KernelDispatcher)
                with suppress(OSError):  # no folder, or one that can only be read
                    tried.touch()
    except Exception as error:  # noqa: BLE001 - another version of Numba may fail in any way
        say_missing("kernels take twice as long to compile", error)
        _drop_unknown_option()
        return plain_dispatcher
    return KernelDispatcher


def _drop_unknown_option() -> None:
    """Remove the undocumented option if this Numba compiles without it alone."""
    try:
        plain_dispatcher(lambda: None, OPTIONS)()
    except Exception as error:  # noqa: BLE001 - another version of Numba may fail in any way
        with suppress(Exception):
            plain_dispatcher(lambda: None, {name: value for name, value in OPTIONS.items() if name != "_nrt"})()
            del OPTIONS["_nrt"]
            say_missing("kernels count references to arrays and run slower", error)


def _try(decorator: Decorator) -> None:
    """Compile a kernel that calls another, call both, and call the first again as it is kept in the cache."""
    from nclone_env.jit.inner import loading_context

    def scaled(value: float, factor: int) -> float:
        return value * factor

    part = decorator(scaled, OPTIONS | {"forceinline": True})

    def both(value: float) -> float:
        return part(value, 2) + part(value, int(value))

    whole = decorator(both, OPTIONS | {"forceinline": True})
    results = [whole(3.0), part(0.5, 4)]
    (code,) = whole.overloads.values()
    kept = pickle.loads(pickle.dumps(private.reduced(code)))
    results.append(private.rebuilt(loading_context(whole.targetctx, kept[0]), kept).entry_point(3.0))
    if results != [15.0, 2.0, 15.0] or len(part.inner.overloads) != 1 or len(part.overloads) != 1:
        raise RuntimeError(f"numba {numba.__version__}: {results}, {part.inner.overloads}, {part.overloads}")


new_dispatcher = choose_dispatcher()
IS_PLAIN = new_dispatcher is plain_dispatcher
