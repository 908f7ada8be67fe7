"""What this package uses of Numba that is not public, outside of ``jit.inner``; a line on stderr where it is missing.

With another version of Numba kernels are then slower to compile, or not cached, but they compute the same. Without
the building blocks of ``jit.scratch`` they run as plain Python.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import config

from nclone_env.jit.notice import say_once

IS_INTERPRETED = bool(config.DISABLE_JIT)
"""Whether kernels run as plain Python."""


def say_missing(consequence: str, error: Exception) -> None:
    """Say on stderr what does not work with this Numba, and why; once."""
    say_once(f"numba {numba.__version__}: {consequence} ({type(error).__name__}: {error})")


try:
    from numba.core import cgutils
    from numba.core.errors import RequireLiteralValue, TypingError
except ImportError as missing:
    cgutils = RequireLiteralValue = TypingError = None  # type: ignore[misc, assignment]
    if not IS_INTERPRETED:
        say_missing("kernels run as plain Python, a thousand times slower", missing)
    IS_INTERPRETED = True


def set_cache(dispatcher: Any, cache: Any) -> None:
    """Give a dispatcher its cache, as Numba's option ``cache`` does."""
    try:
        dispatcher._cache  # noqa: B018 - which would be set without effect if Numba had another name for it
        dispatcher._cache = cache
    except AttributeError as error:
        say_missing("every process compiles its kernels, they are not cached", error)


def generated_for(context: Any) -> tuple[Any, ...]:
    """Return what Numba's own code generator compiles for: system, processor and its features."""
    return tuple(context.codegen().magic_tuple())


def reduced(code: Any) -> Any:
    """Return what is kept of a compilation; None if its code contains addresses of this process."""
    if code.lifted or code.library.has_dynamic_globals:
        return None
    return code._replace(type_annotation="")._reduce()


def rebuilt(context: Any, payload: Any) -> Any:
    """Return the compilation of what was kept of it."""
    from numba.core.compiler import CompileResult

    return CompileResult._rebuild(context, *payload)


def address(code: Any) -> int | None:
    """Return the address of compiled code for callers in kernels; None if it is not known."""
    try:
        return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))
    except Exception as error:  # noqa: BLE001 - another version of Numba may fail in any way
        say_missing("kernels contain others that they could call, and take longer to compile", error)
        return None
