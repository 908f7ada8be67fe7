"""Checks of simulator inputs: one byte a frame, jump 1, right 2, left 4, suicide 8 (physics 01, section 14.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nclone_env.errors import InputsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_INPUT = 15


def check_inputs(inputs: Any) -> NDArray[np.uint8]:
    """Return input bytes as (T,) uint8.

    Args:
        inputs: bytes or a sequence of integers, one a frame.

    Raises:
        InputsError: naming the first value that is not a whole number from 0 to 15.
    """
    codes = np.frombuffer(inputs, np.uint8) if isinstance(inputs, (bytes, bytearray)) else np.asarray(inputs)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise InputsError(
            f"inputs: expected a one-dimensional sequence of whole numbers from 0 to 15, one a frame, "
            f"got dtype {codes.dtype} and shape {codes.shape}"
        )
    bad = np.flatnonzero((codes < 0) | (codes > MAX_INPUT))
    if len(bad):
        raise InputsError(
            f"inputs: expected bytes from 0 to 15 (jump 1, right 2, left 4, suicide 8), "
            f"got {codes[bad[0]]} at frame {bad[0]}"
        )
    return codes.astype(np.uint8)


def check_world_inputs(inputs: Any, num_worlds: int) -> NDArray[np.uint8]:
    """Return the inputs of N worlds as (T, N) uint8, C-contiguous.

    Args:
        inputs: (T,) for all worlds alike, as for :func:`check_inputs`, or (T, N) integers.
        num_worlds: N.

    Raises:
        InputsError: naming the shape, or the first value that is not a whole number from 0 to 15.
    """
    if isinstance(inputs, (bytes, bytearray)) or np.ndim(inputs) == 1:
        return np.repeat(check_inputs(inputs)[:, np.newaxis], num_worlds, axis=1)
    codes = np.asarray(inputs)
    if codes.ndim != 2 or codes.shape[1] != num_worlds:
        raise InputsError(f"inputs: expected shape (frames,) or (frames, {num_worlds}), got {codes.shape}")
    return check_inputs(codes.reshape(-1)).reshape(codes.shape)
