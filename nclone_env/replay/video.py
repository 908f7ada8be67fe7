"""Video export."""

import errno
import itertools
import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from nclone_env._files import expanded, fill_file, suffix_of
from nclone_env.errors import ConfigError, Within, check_value, checked, optional_module, shortened
from nclone_env.game import FRAMES_PER_SECOND

_APART: dict[str, Any] = {"creationflags": 0x200} if os.name == "nt" else {"process_group": 0}
"""Arguments that start a process in a group of its own."""

VIDEO_SUFFIXES = (".mp4", ".webm", ".gif")
_CODECS = {
    ".mp4": "-c:v libx264 -pix_fmt yuv420p -crf 25 -f mp4",
    ".webm": "-c:v libvpx-vp9 -pix_fmt yuv420p -crf 34 -b:v 0 -row-mt 1 -f webm",
    ".gif": "-vf split[a][b];[a]palettegen=max_colors=64[p];[b][p]paletteuse=dither=none -loop 0 -f gif",
}
_GIF_RATE = 30  # a picture of a GIF lasts whole hundredths of a second; players slow down what is shorter than two


def frame_rate(path: Path) -> int:
    """Return the pictures per second of a video that plays in real time, by the suffix of its name."""
    return _GIF_RATE if suffix_of(path) == ".gif" else FRAMES_PER_SECOND


@checked()
def write_video(pictures: Iterable[np.ndarray], path: str | Path, rate: float) -> int:
    """Write pictures as a video; return the number of pictures.

    Args:
        pictures: (height, width, 3) uint8, all of the same size; an odd last row or column is cropped.
        path: the file to write; the suffix selects the format: ``.mp4`` H.264, ``.webm`` VP9, ``.gif``.
        rate: pictures per second.

    Raises:
        MissingExtraError: if imageio-ffmpeg is not installed.
        OSError: if the file cannot be written; it is left unchanged.
        ConfigError: if there are no pictures, one has another shape, the suffix is another or the rate out of range.
    """
    path = expanded(path)
    if suffix_of(path) not in _CODECS:
        raise ConfigError(f"path: expected a name ending in {', '.join(VIDEO_SUFFIXES)}, got {path.name!r}")
    check_value("rate", Annotated[float, Within(0.001, 1000)], rate)
    ffmpeg = optional_module("imageio_ffmpeg", "video")
    iterator = iter(pictures)
    first = next(iterator, None)
    if first is None:
        raise ConfigError("pictures: expected at least one, got none")
    if getattr(first, "ndim", 0) != 3 or min(first.shape[:2]) < 2 or first.shape[2] != 3 or first.dtype != np.uint8:
        raise ConfigError(f"pictures: expected (height, width, 3) uint8, at least 2 x 2, got {shortened(first)}")
    height, width = first.shape[0] // 2 * 2, first.shape[1] // 2 * 2
    cropped = (np.ascontiguousarray(picture[:height, :width]) for picture in itertools.chain((first,), iterator))
    command = [ffmpeg.get_ffmpeg_exe(), "-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width}x{height}", "-r", str(Fraction(float(rate)).limit_denominator()), "-i", "-"]
    command += _CODECS[suffix_of(path)].split()
    count = 0

    def write(temporary: Path) -> None:
        nonlocal count
        count = _encode([*command, f"file:{temporary}"], cropped)

    fill_file(path, write)
    return count


def _encode(command: list[str], pictures: Iterable[np.ndarray]) -> int:
    """Run ffmpeg on pictures and return their number."""
    count = 0
    with subprocess.Popen(  # in a group of its own, which Ctrl-C does not reach
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **_APART
    ) as process:
        assert process.stdin is not None
        try:
            for picture in pictures:
                process.stdin.write(picture.data)
                count += 1
        except BrokenPipeError:
            pass  # its exit status tells
        except BaseException:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()
            raise
        _, said = process.communicate()
    if process.returncode:
        reason = said.decode(errors="replace").strip().splitlines() or [f"exit status {process.returncode}"]
        raise OSError(errno.EIO, f"ffmpeg: {reason[-1]}")
    return count
