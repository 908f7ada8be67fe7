"""Launches through NVIDIA's driver alone (``libcuda``), in the context and on the stream that the caller has made.

With PyTorch that is its context and its current stream, so launches are ordered with the work of its own, and CUDA
graphs capture them.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

_LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")


class DriverError(RuntimeError):
    """The driver has refused a call; the message has its words."""


@lru_cache(maxsize=1)
def _driver() -> Any:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        _checked(library, "cuInit", 0)
        return library
    raise DriverError(
        f"expected NVIDIA's driver, got none of {', '.join(_LIBRARIES)}; install it, or use the processor"
    )


def _call(name: str, *arguments: Any) -> None:
    _checked(_driver(), name, *arguments)


def _checked(library: Any, name: str, *arguments: Any) -> None:
    status = getattr(library, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'unknown').decode()} (CUDA error {status})")


class Entry:
    """An entry of PTX, loaded into the current context: see ``jit.cuda.ptx`` for its parameters."""

    def __init__(self, ptx: str, name: str):
        self._context, self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        _call("cuCtxGetCurrent", ctypes.byref(self._context))
        _call("cuModuleLoadData", ctypes.byref(self._module), ctypes.c_char_p(ptx.encode()))
        _call("cuModuleGetFunction", ctypes.byref(self._function), self._module, ctypes.c_char_p(name.encode()))

    def launch(self, block: np.ndarray, threads: int, threads_each: int, stream: int) -> None:
        """Run so many threads, in groups of ``threads_each``, with a block of slots, (k,) int64.

        The context becomes the current one of this thread, which may have none: PyTorch sets it at the first call that
        needs one.
        """
        count = ctypes.c_int64(threads)
        parameters = (ctypes.c_void_p * 2)(block.ctypes.data, ctypes.addressof(count))
        groups = -(-threads // threads_each)
        sizes = [ctypes.c_uint(number) for number in (groups, 1, 1, threads_each, 1, 1, 0)]
        _call("cuCtxSetCurrent", self._context)
        _call("cuLaunchKernel", self._function, *sizes, ctypes.c_void_p(stream), parameters, None)
