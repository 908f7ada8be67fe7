"""Digests that name compiled code: of the package's sources, and of kernels outside the package with all they use.

Numba's own cache checks only the file and the bytecode of the function itself: after a change in a callee or a constant
of another file it would keep stale machine code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import config

_PACKAGE = Path(__file__).parents[1]
_DIGESTED = ("nclone_env", "numba", "numpy")
"""Packages whose sources or versions are in ``source_digest``."""
_WITHOUT_KERNELS = ("cli", "memory")
"""Folders of the package that no kernel can depend on: they contain none, and only the command line imports them."""


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Return 16 hex digits that change with any source file of the package that kernels may depend on.

    They also change with the versions of Numba and NumPy and with ``NUMBA_BOUNDSCHECK``, which Numba ignores where code
    is cached. Reading the files takes 7 to 15 ms.
    """
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {config.BOUNDSCHECK}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        relative = path.relative_to(_PACKAGE)
        if relative.parts[0] in _WITHOUT_KERNELS:
            continue
        digest.update(relative.as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def code_digest(function: Callable[..., Any]) -> str | None:
    """Return hex digits that change with the code of a kernel, of its callees, and with the globals they read.

    Kernels of this package have the digest of the package. For others it covers the bytecode and constants of the
    function, the values of its globals and closure, and likewise every kernel and function among them, in any file. It
    is computed from the functions in memory, as Numba compiles those, not the files.

    Returns:
        None if the code cannot be identified across processes: the function comes from no file (an interactive session,
        ``exec``), it refers to an object whose text contains an address, or its closure contains a kernel, which
        Numba numbers differently in every process.
    """
    if _is_digested(function):
        return source_digest()
    if not Path(function.__code__.co_filename).is_file() or any(map(_function_in, _closure(function))):
        return None
    parts = [source_digest(), *_parts(function)]
    if any(" at 0x" in part for part in parts):
        return None
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _parts(function: Callable[..., Any]) -> Iterator[str]:
    """Describe a function and everything that it refers to."""
    seen: set[Callable[..., Any]] = set()
    pending = [function]
    while pending:
        current = pending.pop()
        if current in seen or _is_digested(current):
            continue
        seen.add(current)
        yield repr((_code_parts(current.__code__), current.__defaults__))
        for name, value in _references(current):
            callee = _function_in(value)
            if callee is not None:
                pending.append(callee)
            else:
                yield f"{name} = {_value_text(value)}"


def _references(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals and the closure of a function by name, and of modules the attributes that it names."""
    names = list(names_in(function.__code__))
    pending = [*zip(function.__code__.co_freevars, _closure(function))]
    pending += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    for name, value in pending:  # which grows
        if not isinstance(value, ModuleType):
            yield name, value
        elif not _is_digested(value):
            pending += [(f"{name}.{other}", getattr(value, other)) for other in names if hasattr(value, other)]


def _closure(function: Callable[..., Any]) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that code uses, functions in it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def _code_parts(code: CodeType) -> tuple[Any, ...]:
    constants = (_code_parts(item) if isinstance(item, CodeType) else item for item in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, *constants


def _function_in(value: Any) -> Callable[..., Any] | None:
    """Return the Python function of a kernel, an intrinsic or a plain function."""
    function = getattr(value, "py_func", None) or getattr(value, "__wrapped__", value)
    return function if isinstance(function, FunctionType) else None


def _value_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return repr(value)


def _is_digested(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return name.partition(".")[0] in _DIGESTED
