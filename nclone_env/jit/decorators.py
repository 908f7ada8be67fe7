"""Decorators that make kernels of functions."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.types import BaseTuple

from nclone_env.jit import private
from nclone_env.jit.cache import KernelCache
from nclone_env.jit.dispatcher import OPTIONS, new_dispatcher
from nclone_env.jit.private import IS_INTERPRETED


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function to machine code on first use: nopython, nogil, no fastmath, cached.

    Division by zero follows IEEE-754 as in NumPy. The result is a lazy dispatcher (``jit.dispatcher``), so the same
    sources can be compiled for other Numba targets. As there, a kernel cannot allocate: Numba's run-time memory manager
    is off, which also removes the atomic reference counting of every array from every call (the simulator runs five
    times as fast). Kernels are inlined into the one that Python calls, as every call would pass some eighty words of
    level data (two to four times as fast).

    Compiled code is cached on disk (``jit.cache``). The cache notices changes in the kernel, in the kernels and
    functions it calls, and in globals. Kernels from interactive sessions, and kernels with another kernel in their
    closure, are compiled by every process.
    """
    return _compiled(function, forceinline=True)


def numeric_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel of the trainer as :func:`kernel` does, with fused multiply-adds.

    Never for the simulation, whose results must not depend on how a processor rounds.
    """
    return _compiled(function, forceinline=True, fastmath={"contract"})


def called_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel as :func:`kernel` does, but leave it to the compiler whether to inline it.

    For long kernels that are called in several places and rarely run: inlining them would cost seconds of compilation
    in each place.
    """
    return _compiled(function, forceinline=False)  # explicit: otherwise inherited from the caller


def _compiled(function: Callable[..., Any], **options: Any) -> Any:
    if IS_INTERPRETED:
        return function
    dispatcher = new_dispatcher(function, OPTIONS | options)
    private.set_cache(dispatcher, KernelCache(function, options))
    return dispatcher


def specialised(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """Compile a kernel for arguments of exactly these types and return its machine code as a function.

    The function does not check the types of its arguments, so they must never differ. That saves the type dispatch of
    every call. It also keeps tracemalloc exact, which counts the memory that Numba's dispatch allocates but misses that
    it is freed.
    """
    if IS_INTERPRETED:
        return dispatcher
    return dispatcher.compile(tuple(map(type_of, arguments)))


def address_of(dispatcher: Any, *arguments: Any) -> Any:
    """Specialise a kernel, which returns nothing, as :func:`specialised` does; return what ``jit.call_at`` takes."""
    if IS_INTERPRETED:
        return dispatcher
    specialised(dispatcher, *arguments)
    known = private.address(dispatcher.overloads[tuple(map(type_of, arguments))])
    return dispatcher if known is None else known


def specialised_at_first(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that is specialised for the arguments of its first call; those of others have the same types."""
    made: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if not made:
            made.append(specialised(kernel, *arguments))
        return made[0](*arguments)

    return call


_ARRAY_TYPES: dict[tuple[Any, ...], Any] = {}
"""Numba makes the type of a record again for every array of it: half of the time to create an environment."""


def type_of(argument: Any) -> Any:
    """Return what ``numba.typeof`` does, but look at each layout of arrays once."""
    if isinstance(argument, tuple):
        return BaseTuple.from_types([type_of(item) for item in argument], type(argument))
    if type(argument) is not np.ndarray:
        return numba.typeof(argument)
    layout = argument.dtype, argument.dtype.isalignedstruct, argument.ndim, argument.flags.num
    if layout not in _ARRAY_TYPES:
        _ARRAY_TYPES[layout] = numba.typeof(argument)
    return _ARRAY_TYPES[layout]
