"""Write a gallery and measure where the time goes: processor seconds of each part, in one thread, and the whole.

The parts are measured on their own; the whole is what the command does, with a thread for each core.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import tyro
from tyro.conf import Positional

from nclone_env.errors import NcloneError
from nclone_env.gallery.entries import Entry
from nclone_env.gallery.site import level_page
from nclone_env.gallery.tracks import Tracks
from nclone_env.jobs import Showing, run
from nclone_env.level.level_set import pack
from nclone_env.machine import available_cores
from nclone_env.render.picture import level_picture, sprite_sheet, walls_picture
from nclone_env.sim.session import Session
from profiling.measure import describe

_LOSSLESS = (cv2.IMWRITE_WEBP_QUALITY, 101)


class Clock:
    """Adds up processor seconds by part."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def __call__(self, part: str, task: Callable[..., Any], *arguments: Any) -> Any:
        """Do a task and add its time to a part."""
        began = time.process_time()
        result = task(*arguments)
        self.seconds[part] += time.process_time() - began
        return result


def measure_level(clock: Clock, entry: Entry) -> None:
    """Make what the site holds of one level, without writing it."""
    tracks: list[Tracks] = []
    large = small = clock("pictures of levels", level_picture, entry.level)
    if entry.runs:
        levels = clock("levels packed", pack, [entry.level])
        tracks = [clock("runs played", Tracks, levels, run.inputs) for run in entry.runs]
        worlds = Session(levels, max_frames=1).worlds
        large = clock("pictures of walls", walls_picture, levels.arrays, worlds, 0, entry.facts.zoom, entry.facts.area)
    small = clock("small pictures", cv2.resize, small, (528, 300), None, 0, 0, cv2.INTER_AREA)
    for name, picture in (("small pictures", small), ("large pictures encoded", large)):
        clock(name, cv2.imencode, ".webp", picture, _LOSSLESS)
    clock("pages", level_page, "title", entry, None, None, tracks)


def main(levels: Positional[tuple[str, ...]], recordings: tuple[Path, ...] = ()) -> None:
    """Print the machine, the time of each part and of the whole, and the size of the site.

    Args:
        levels: as for ``nclone-env gallery``.
        recordings: likewise.
    """
    faults: list[NcloneError] = []
    clock = Clock()
    job = Showing(levels, tuple(map(str, recordings)), on_fault=faults.append)
    entries: Sequence[Entry] = clock("levels and recordings read and checked", lambda: job.entries)
    for number in (0, -1):  # kernels are compiled or loaded
        measure_level(Clock(), entries[number])
    clock("sprites", sprite_sheet, 4)
    for entry in entries:
        measure_level(clock, entry)
    print(describe())
    for part, seconds in clock.seconds.most_common():
        print(f"{part:<40} {seconds:7.2f} s")
    began, used = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        with ThreadPoolExecutor(available_cores()) as executor:
            run(job, site, executor)
        wall, used = time.perf_counter() - began, time.process_time() - used
        sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    runs = sum(len(entry.runs) for entry in entries)
    print(f"{len(entries)} levels, {runs} runs: written in {wall:.1f} s, {used:.1f} s of processor time; ", end="")
    print(f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB; {len(faults)} left out")


if __name__ == "__main__":
    tyro.cli(main)
