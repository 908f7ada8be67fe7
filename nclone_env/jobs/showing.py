"""Galleries of many levels: a web site."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from nclone_env.benchmark import TRACK_NAMES, load_track
from nclone_env.errors import ConfigError, NcloneError
from nclone_env.gallery import Entry, LevelFiles, PlayedTrack, check_output, collect, level_files, write_site
from nclone_env.jobs.job import LevelJob, ignore
from nclone_env.jobs.shard import file_name
from nclone_env.render import all_glyphs


@dataclass(frozen=True)
class Showing(LevelJob):
    """A gallery, as ``nclone-env gallery`` writes it; ``output`` is a folder. The levels are read to write it, too.

    Attributes:
        recordings: recordings, or folders of them; if there are no levels theirs are shown.
        title: of the site.
        on_fault: called with each error of a level or recording, which is left out.
    """

    recordings: tuple[str, ...] = ()
    title: str = "Levels"
    on_fault: Callable[[NcloneError], None] = field(default=ignore, compare=False)
    result = LevelFiles

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """The levels with their runs.

        Raises:
            ConfigError: if there is none.
        """
        all_glyphs()  # once, before there are threads
        entries = collect(self.levels, map(Path, self.recordings), self.on_fault)
        if not entries:
            expected = "expected at least one level or recording, got none; name a set, a file or a folder"
            raise ConfigError(f"levels: {expected}")
        return entries

    @property
    def total(self) -> int:
        """Number of levels."""
        return len(self.entries)

    @property
    def digest(self) -> str:
        """Of levels and runs."""
        digest = hashlib.sha256()
        for entry in self.entries:
            digest.update(f"{entry.page} {entry.level.raw.digest}".encode())
            for run in entry.runs:
                digest.update(run.label.encode() + run.inputs.tobytes())
        return digest.hexdigest()[:16]

    def files(self, output: Path) -> Sequence[Path]:
        """Return the folder.

        Raises:
            ConfigError: if it is neither new nor a gallery.
        """
        check_output(output, force=True)
        return (output,)

    def task(self, number: int) -> Callable[[], dict[str, Any]]:
        """Return what makes the files of a level."""
        return partial(_files, self.entries[number])

    def write(self, output: Path, results: Iterable[Mapping[str, Any]]) -> None:
        """Write the site, all of it or nothing."""

        def written() -> Iterator[LevelFiles]:
            for made in (LevelFiles(**result) for result in results):
                for name in made.files:
                    file_name(name)
                yield made

        write_site(output, self.title, self.entries, written(), map(_played, TRACK_NAMES))


def _files(entry: Entry) -> dict[str, Any]:
    return level_files(entry)._asdict()


def _played(name: str) -> PlayedTrack:
    track = load_track(name)
    levels = [level.digest for level in track.levels]
    return PlayedTrack(name, track.digest, track.frame_skip, track.max_frames, track.attempts, levels)
