"""Pictures of a recording, and pictures as a video."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nclone_env._files import fill_file
from nclone_env._optional import optional_module
from nclone_env.sim.session import Session

if TYPE_CHECKING:
    from nclone_env.replay.recording import Recording


def recording_pictures(recording: Recording, scale: float = 1.0, every: int = 1) -> Iterator[np.ndarray]:
    """Play a recording and yield its pictures, the start first and the last frame last.

    Args:
        recording: what to play.
        scale: pixels of a picture per pixel of the world.
        every: frames from one picture to the next.

    Yields:
        (round(600 * scale), round(1056 * scale), 3) uint8, RGB.
    """
    from nclone_env.render.picture import world_picture  # OpenCV is only needed to draw

    session = Session(recording.level)
    yield world_picture(session.levels, session.worlds, 0, scale)
    for frame, code in enumerate(recording.inputs, start=1):
        session.tick(code)
        if frame % every == 0 or frame == len(recording.inputs):
            yield world_picture(session.levels, session.worlds, 0, scale)


def write_video(pictures: Iterable[np.ndarray], path: Path, rate: float) -> int:
    """Write pictures as an MP4 (H.264) that plays everywhere; return how many there were.

    Args:
        pictures: (height, width, 3) uint8, all of one size; an odd last row or column is left out.
        path: the file to write.
        rate: pictures per second.

    Raises:
        MissingExtraError: if imageio-ffmpeg is not installed.
        ValueError: if there are no pictures.
    """
    ffmpeg = optional_module("imageio_ffmpeg", "video")
    iterator = iter(pictures)
    first = next(iterator, None)
    if first is None:
        raise ValueError("pictures: expected at least one, got none")
    height, width = first.shape[0] // 2 * 2, first.shape[1] // 2 * 2
    count = 0

    def write(temporary: Path) -> None:
        nonlocal count
        writer = ffmpeg.write_frames(
            str(temporary),
            (width, height),
            fps=rate,
            codec="libx264",
            macro_block_size=2,
            ffmpeg_log_level="error",
        )
        writer.send(None)
        try:
            for picture in itertools.chain((first,), iterator):
                writer.send(np.ascontiguousarray(picture[:height, :width]))
                count += 1
        finally:
            writer.close()

    fill_file(path, write)
    return count
