"""Observation buffers: made from the table, checked when a caller brings them, recycled when nobody holds them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nclone_env import errors
from nclone_env.memory_tree import MemoryNode
from nclone_env.obs.spec import ObservationSpec

Buffers = dict[str, np.ndarray]


def make_buffers(specs: Sequence[ObservationSpec], num_envs: int) -> Buffers:
    """Return zeroed arrays by observation name, each (num_envs, *shape). Their pages are touched."""
    return {spec.name: np.full((num_envs, *spec.shape), 0, dtype=spec.dtype) for spec in specs}


def check_buffers(out: Mapping[str, Any], specs: Sequence[ObservationSpec], num_envs: int) -> Buffers:
    """Return the caller's arrays by observation name, unchanged.

    Raises:
        BufferError: if one is missing, unknown, or not a writable C-contiguous array of the exact dtype and shape.
    """
    names = [spec.name for spec in specs]
    if not isinstance(out, Mapping) or set(out) != set(names):
        got = list(out) if isinstance(out, Mapping) else type(out).__name__
        raise errors.BufferError(f"out: expected a mapping with the keys {names}, got {got}")
    for spec in specs:
        check_buffer(f"out[{spec.name!r}]", out[spec.name], (num_envs, *spec.shape), spec.dtype)
    return dict(out)


def check_buffer(argument: str, array: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an array that a kernel could not write as it is.

    Raises:
        BufferError: naming the argument, what was expected and what came.
    """
    if not isinstance(array, np.ndarray):
        raise errors.BufferError(
            f"{argument}: expected a NumPy array, {dtype} {shape}, got {type(array).__name__}; pass tensor.numpy()"
        )
    if array.dtype != dtype or array.shape != shape:
        raise errors.BufferError(f"{argument}: expected {dtype} {shape}, got {array.dtype} {array.shape}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        got = "an unaligned one" if array.flags.c_contiguous else f"strides {array.strides}"
        raise errors.BufferError(
            f"{argument}: expected a C-contiguous, aligned array, got {got}; pass one that np.empty made, or its rows"
        )
    if not array.flags.writeable:
        raise errors.BufferError(f"{argument}: expected a writable array, got a read-only one; pass a copy")


class BufferPool:
    """Hands out batches of observations that are safe to keep, and reuses those that nobody keeps.

    What is handed out are views; NumPy makes every further view refer to the owner of the memory too, so the
    owner's reference count tells whether anyone still holds a part of the batch.
    """

    def __init__(self, specs: Sequence[ObservationSpec], num_envs: int):
        self._specs = tuple(specs)
        self._num_envs = num_envs
        self._batches = [make_buffers(self._specs, num_envs)]
        self._unheld = _holders(self._batches[0])

    def take(self) -> Buffers:
        """Return views of a batch that nobody else holds, made if there is none."""
        for batch in self._batches:
            if _holders(batch) == self._unheld:
                break
        else:
            batch = make_buffers(self._specs, self._num_envs)
            self._batches.append(batch)
        return {name: array[:] for name, array in batch.items()}

    def memory(self) -> MemoryNode:
        """Return the bytes of all batches."""
        total = sum(array.nbytes for batch in self._batches for array in batch.values())
        return MemoryNode(f"observation pool ({len(self._batches)} batches)", total)


def _holders(batch: Buffers) -> list[int]:
    return [sys.getrefcount(array) for array in batch.values()]
