"""Pictures as image files, without loss."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

_LOSSLESS = (cv2.IMWRITE_WEBP_QUALITY, 101)


def write_picture(path: Path, picture: np.ndarray) -> None:
    """Write a picture in the format of the suffix, ``.webp`` or ``.png``.

    Args:
        path: the file; not atomic.
        picture: (height, width, 3 or 4) uint8, RGB or RGBA.

    Raises:
        OSError: if it cannot be written.
    """
    path.write_bytes(encoded(picture, path.suffix))


def encoded(picture: np.ndarray, suffix: str) -> bytes:
    """Return a picture as :func:`write_picture` writes it."""
    order = (2, 1, 0, 3)[: picture.shape[2]]
    options = _LOSSLESS if suffix == ".webp" else ()
    return cv2.imencode(suffix, np.ascontiguousarray(picture[..., order]), options)[1].tobytes()


def reduced(picture: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a picture averaged to a smaller width and height."""
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
