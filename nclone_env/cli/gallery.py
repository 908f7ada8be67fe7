"""``nclone-env gallery``: write a web site of levels, with a player for the runs on them."""

from __future__ import annotations

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.errors import ConfigError, NcloneError


def make_gallery(
    levels: Positional[tuple[str, ...]] = (),
    output: Path = Path("gallery"),
    recordings: tuple[Path, ...] = (),
    title: str = "",
    force: bool = False,
) -> int:
    """Write a web site of levels, with a player for the runs on them; it needs no server.

    Known solutions of built-in levels, and the recordings next to a generated pack, are included. Each run is replayed
    by the simulator first; a level or recording with an error is named and left out, and the exit status is 1.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#0-95) by path; the
            levels of the recordings if there are none.
        output: folder to write; open its index.html.
        recordings: .replay and attract files, or folders of them, such as those that solve writes.
        title: of the site; the names of the levels by default.
        force: replace an existing gallery.
    """
    from nclone_env.gallery.collect import collect  # they need OpenCV
    from nclone_env.gallery.site import check_output, write_site

    check_output(output, force)
    for path in recordings:
        if not path.exists():
            raise ConfigError(f"recordings: expected files or folders, got {str(path)!r}, which does not exist")
    faults: list[NcloneError] = []

    def report(fault: NcloneError) -> None:
        faults.append(fault)
        sys.stderr.write(f"left out: {fault}\n")

    exhibits = collect(levels, recordings, report)
    if not exhibits:
        raise ConfigError("levels: expected at least one level or recording, got none; name a set, a file or a folder")
    progress = _Progress(len(exhibits))
    try:
        output.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_site(output, title or _title(levels), exhibits, report, progress)
    except OSError as error:
        progress.finish()
        raise ConfigError(f"output: {error.filename or output} cannot be written: {error.strerror}") from error
    progress.finish()
    runs = sum(len(exhibit.runs) for exhibit in exhibits)
    print(f"wrote {len(exhibits)} levels and {runs} runs; open {output / 'index.html'}")
    return 1 if faults else 0


def _title(levels: tuple[str, ...]) -> str:
    """Return a title from the names of levels."""
    names = [Path(name).stem if Path(name).exists() else name for name in levels]
    return ", ".join(names) if 0 < len(names) <= 3 else "Levels"


class _Progress:
    """A line with the number of levels written, on a terminal only."""

    def __init__(self, total: int):
        self._done, self._total, self._live = 0, total, sys.stderr.isatty()

    def __call__(self) -> None:
        """Count a level."""
        self._done += 1
        if self._live:
            sys.stderr.write(f"\r\x1b[K{self._done}/{self._total} levels")
            sys.stderr.flush()

    def finish(self) -> None:
        """Remove the line."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
