"""The only door to Numba: the ``kernel`` decorator, unrolled loops, stack scratch, byte copies, and the code cache.

Compiled code is kept in ``<user cache>/nclone_env/<digest>``. The digest covers every source file of the
package and the bounds-check flag: Numba's own cache looks only at the file of the function itself, so a change
in a callee or a constant elsewhere would keep stale machine code, and ``NUMBA_BOUNDSCHECK`` would be ignored.
Other packages' Numba caches are untouched. ``NCLONE_ENV_CACHE_DIR`` moves the folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, cgutils, config, types
from numba.core.errors import RequireLiteralValue, TypingError
from numba.extending import intrinsic

from nclone_env.jit.inner import KernelDispatcher

_PACKAGE = Path(__file__).parents[1]


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Return 16 hex digits that change with any source file of the package or with the bounds-check flag."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {config.BOUNDSCHECK}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder of everything this package keeps between processes; it need not exist."""
    root = os.environ.get("NCLONE_ENV_CACHE_DIR")
    return Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nclone_env"


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Return the folder of compiled kernels; a temporary one if the user's cache cannot be written."""
    folder = cache_root() / source_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="nclone_env-"))
    return folder


class _PackageCacheLocator(caching._CacheLocator):
    """Tells Numba where a kernel of this package is cached and when the cached code is still fresh."""

    def __init__(self, py_func: Callable[..., Any]):
        self._name = f"{py_func.__module__}:{py_func.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_digest()

    def get_disambiguator(self) -> str:
        return hashlib.sha256(self._name.encode()).hexdigest()[:10]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _PackageCacheLocator:
        return cls(py_func)


class _PackageCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_PackageCacheLocator]  # noqa: RUF012 - the name and type Numba reads


class _PackageCache(caching.FunctionCache):
    _impl_class = _PackageCacheImpl


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function to machine code on first use: nopython, nogil, no fastmath, cached.

    Division by zero follows IEEE-754 as in NumPy. The result is a lazy dispatcher (``jit.inner``), so that the same
    sources can be handed to other Numba targets. As there, a kernel cannot allocate: Numba's run-time memory
    manager is off, which also takes the atomic reference counting of every array out of every call (the simulator
    runs five times as fast without it). Kernels are inlined into the one that Python calls: level data go down the
    calls as some eighty words each time (twice to four times as fast).
    """
    return _dispatcher(function, forceinline=True)


def _dispatcher(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:
        return function
    options = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": False} | options
    dispatcher = KernelDispatcher(function, options)
    dispatcher._cache = _PackageCache(function)
    return dispatcher


each = numba.literal_unroll
"""``for name in each(NAMES)`` in a kernel: the loop body once for each name, so that ``record[name]`` has a type."""


def specialised(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """Compile a kernel for arguments of exactly these types and return its machine code as a function.

    The function does not look at its arguments' types again, so it must never get others. That saves the type
    dispatch of every call, and tracemalloc, which misses how Numba frees what it allocates there, sees no growth.
    """
    if config.DISABLE_JIT:
        return dispatcher
    signature = tuple(numba.typeof(argument) for argument in arguments)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature].entry_point


def called_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel as :func:`kernel` does, but leave it to the compiler whether to inline it.

    For long kernels that are called from several places and seldom run: inlining them would cost seconds of
    compilation at each place.
    """
    return _dispatcher(function, forceinline=False)  # said, because it would be inherited from the caller


if config.DISABLE_JIT:

    def local_f64(count: int) -> np.ndarray:
        """Return a scratch array of ``count`` float64 values, zeroed."""
        return np.zeros(count)

    def copy_bytes(target: np.ndarray, target_offset: int, source: np.ndarray, source_offset: int, count: int) -> None:
        """Copy ``count`` bytes between C-contiguous uint8 arrays; offsets count bytes from the first."""
        chunk = source.reshape(-1)[source_offset : source_offset + count]
        target.reshape(-1)[target_offset : target_offset + count] = chunk

else:

    @intrinsic(prefer_literal=True)
    def local_f64(typing_context, count):
        """Return a scratch array of ``count`` (a literal) float64 values on the stack, zeroed.

        It lives until the calling kernel returns and must not leave it.
        """
        if not isinstance(count, types.IntegerLiteral):
            raise RequireLiteralValue("local_f64: the count must be a literal number")
        size = count.literal_value
        array_type = types.Array(types.float64, 1, "C")

        def codegen(context, builder, signature, args):
            storage_type = ir.ArrayType(ir.DoubleType(), size)
            storage = cgutils.alloca_once(builder, storage_type)
            builder.store(ir.Constant(storage_type, None), storage)
            array = context.make_array(array_type)(context, builder)
            item_size = context.get_constant(types.intp, 8)
            context.populate_array(
                array,
                data=builder.bitcast(storage, array.data.type),
                shape=[context.get_constant(types.intp, size)],
                strides=[item_size],
                itemsize=item_size,
                meminfo=None,
            )
            return array._getvalue()

        return array_type(count), codegen

    @intrinsic(prefer_literal=True)
    def copy_bytes(typing_context, target, target_offset, source, source_offset, count):
        """Copy ``count`` bytes between C-contiguous uint8 arrays; offsets count bytes from the first.

        Nothing is checked: the caller keeps both ranges inside their arrays and apart. A literal count
        compiles to a few moves.
        """
        for array in (target, source):
            if not isinstance(array, types.Array) or array.layout != "C" or array.dtype != types.uint8:
                raise TypingError(f"copy_bytes: expected C-contiguous uint8 arrays, got {array}")
        if not target.mutable:
            raise TypingError("copy_bytes: the target is read-only")
        literal = count.literal_value if isinstance(count, types.IntegerLiteral) else None

        def codegen(context, builder, signature, args):
            target_array, source_array = (
                context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2)
            )
            destination = builder.gep(target_array.data, [args[1]])
            origin = builder.gep(source_array.data, [args[3]])
            size = args[4] if literal is None else context.get_constant(types.intp, literal)
            cgutils.raw_memcpy(builder, destination, origin, size, 1)
            return context.get_dummy_value()

        return types.void(target, types.intp, source, types.intp, types.intp), codegen
