"""Arrays by name: allocation from specs, and the check of arrays provided by the caller."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nclone_env import errors
from nclone_env.obs import ObservationSpec

Buffers = dict[str, np.ndarray]


class ColumnSpec(NamedTuple):
    """A column of the results: its name in ``out`` and ``info``, field of ``RESULT``, and the dtypes in ``out``."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    result: str
    dtypes: tuple[np.dtype, ...]


ArraySpec = ObservationSpec | ColumnSpec
"""Name, shape and dtype of the row of one environment."""


def alone(buffers: Mapping[str, Any], only: str | None) -> Any:
    """Return the array named ``only``, or the arrays by name if it is None."""
    return buffers if only is None else buffers[only]


def make_buffers(specs: Sequence[ArraySpec], num_envs: int) -> Buffers:
    """Return zeroed arrays by name, each (num_envs, *shape); pages are committed on first write."""
    return {spec.name: np.zeros((num_envs, *spec.shape), dtype=spec.dtype) for spec in specs}


def check_buffers(
    out: Mapping[str, Any],
    required: Sequence[ArraySpec],
    optional: Sequence[ColumnSpec],
    num_envs: int,
    given: str = "out",
) -> None:
    """Check a mapping of output arrays, which was given as an argument of some name."""
    known = 0
    if isinstance(out, Mapping):
        for spec in required:
            if spec.name in out:
                known += 1
                check_buffer(spec.name, out[spec.name], (num_envs, *spec.shape), spec.dtype, given=given)
        for chosen in optional:
            if chosen.name in out:
                known += 1
                check_buffer(chosen.name, out[chosen.name], (num_envs, *chosen.shape), *chosen.dtypes, given=given)
    if not isinstance(out, Mapping) or known != len(out) or not all(spec.name in out for spec in required):
        names, more = [spec.name for spec in required], [spec.name for spec in optional]
        got = list(out) if isinstance(out, Mapping) else type(out).__name__
        raise errors.BufferError(f"{given}: expected a mapping with the keys {names} and any of {more}, got {got}")
    if not _have_owners_of_their_own(out.values()):
        for left, right in itertools.combinations(out, 2):
            if np.may_share_memory(out[left], out[right]):
                raise _sharing(given, repr(left), repr(right))


def _have_owners_of_their_own(arrays: Collection[np.ndarray]) -> bool:
    """Return whether each array, or what it is a view of, owns its memory, and no two the same: the usual case.

    A fraction of the time of comparing all pairs, in every step.
    """
    owners = set()
    for array in arrays:
        base = array.base
        if base is None:
            owners.add(id(array))
        elif type(base) is np.ndarray and base.base is None:
            owners.add(id(base))
    return len(owners) == len(arrays)


def check_apart(out: Mapping[str, np.ndarray], final: Mapping[str, np.ndarray]) -> None:
    """Check that no array of the last observations shares memory with one of the observations."""
    for left, right in itertools.product(final, out):
        if np.may_share_memory(final[left], out[right]):
            raise _sharing("final", repr(left), f"{right!r} of out")


def _sharing(given: str, left: str, right: str) -> errors.BufferError:
    both = f"{left} and {right} share memory"
    return errors.BufferError(f"{given}: expected arrays apart from each other, but {both}; pass two arrays")


def check_buffer(name: str, array: Any, shape: tuple[int, ...], *dtypes: np.dtype, given: str = "out") -> None:
    """Check that an array can be written directly; its dtype must be one of ``dtypes``."""
    if isinstance(array, np.ndarray) and array.dtype in dtypes and array.shape == shape and array.flags.carray:
        return
    argument, dtype = f"{given}[{name!r}]", " or ".join(str(dtype) for dtype in dtypes)
    if not isinstance(array, np.ndarray):
        raise errors.BufferError(
            f"{argument}: expected a NumPy array, {dtype} {shape}, got {type(array).__name__}; pass tensor.numpy()"
        )
    if array.dtype not in dtypes or array.shape != shape:
        raise errors.BufferError(f"{argument}: expected {dtype} {shape}, got {array.dtype} {array.shape}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        got = "an unaligned one" if array.flags.c_contiguous else f"strides {array.strides}"
        raise errors.BufferError(
            f"{argument}: expected a C-contiguous, aligned array, got {got}; pass a new array or whole rows of one"
        )
    if not array.flags.writeable:
        raise errors.BufferError(f"{argument}: expected a writable array, got a read-only one; pass a copy")
