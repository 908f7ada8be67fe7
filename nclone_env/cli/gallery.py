"""``nclone-env gallery``: write a web site of levels, with a player for the runs on them."""

from __future__ import annotations

import sys
from pathlib import Path

from tyro.conf import Positional

from nclone_env.cli.output import check_free, counted
from nclone_env.cli.progress import LiveLine
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
    from nclone_env.gallery import check_output, collect, write_site  # they need OpenCV

    check_output(output, force)
    output.parent.mkdir(parents=True, exist_ok=True)
    check_free(output, force=True)  # claims it
    check_output(output, force)
    for path in recordings:
        if not path.exists():
            raise ConfigError(f"recordings: expected files or folders, got {str(path)!r}, which does not exist")
    messages = _Messages()
    entries = collect(levels, recordings, messages.report)
    if not entries:
        raise ConfigError("levels: expected at least one level or recording, got none; name a set, a file or a folder")
    messages.total = len(entries)
    try:
        shown = write_site(output, title or _title(levels), entries, messages.report, messages.count)
    except OSError as error:
        raise ConfigError(f"output: {error.filename or output} cannot be written: {error.strerror}") from error
    finally:
        messages.clear()
    runs = sum(len(entry.runs) for entry in shown)
    print(f"wrote {counted(len(shown), 'level')} and {counted(runs, 'run')}; open {output / 'index.html'}")
    return 1 if messages.failed else 0


def _title(levels: tuple[str, ...]) -> str:
    """Return a title from the names of levels."""
    names = [Path(name).stem if Path(name).exists() else name for name in levels]
    return ", ".join(names) if 0 < len(names) <= 3 else "Levels"


class _Messages:
    """Messages on stderr: what is left out and, on a terminal, a line with the number of levels written.

    Attributes:
        total: number of levels.
        failed: whether an error was reported.
    """

    def __init__(self) -> None:
        self.total, self.failed, self._done = 0, False, 0
        self._line = LiveLine(sys.stderr)

    def report(self, fault: NcloneError) -> None:
        """Name what is left out, in place of the line, which returns with the next level."""
        self.failed = True
        self._line.put(f"left out: {fault}")

    def count(self) -> None:
        """Count a level that is written."""
        self._done += 1
        self._line.show(f"{self._done}/{self.total} levels")

    def clear(self) -> None:
        """Remove the line."""
        self._line.clear()
