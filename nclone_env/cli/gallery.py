"""``nclone-env gallery``: write a web site of levels that are watched, played, edited and checked in the browser."""

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from tyro.conf import Positional

from nclone_env._files import there
from nclone_env._processes import threads
from nclone_env.cli.output import check_folder, claim, counted
from nclone_env.cli.progress import StatusLine, say
from nclone_env.cli.watch import played_files
from nclone_env.errors import ConfigError, NcloneError
from nclone_env.machine import default_workers
from nclone_env.replay import recording_files, recording_name
from nclone_env.train import other_kind


def make_gallery(
    levels: Positional[tuple[str, ...]] = (),
    output: Path = Path("gallery"),
    recordings: tuple[Path, ...] = (),
    title: str = "",
    shard: str | None = None,
    force: bool = False,
) -> int:
    """Write a web site of levels: watch runs and policies, play, make runs frame by frame, edit, check.

    It needs no server. Known solutions of built-in levels, and the recordings next to a generated pack, are included.
    Each run is replayed by the simulator first; a level or recording with an error is named and left out, and the exit
    status is 1.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#0-95) by path; the
            levels of the recordings if there are none.
        output: folder to write; open its index.html.
        recordings: .replay and attract files, such as those that solve writes; submissions of the benchmark, of which
            the fastest win on each level is shown, else the longest episode; or folders of both.
        title: of the site; the names of the levels by default.
        shard: part I/N of the levels, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the gallery.
        force: replace an existing gallery.
    """
    from nclone_env.gallery import check_output  # it needs OpenCV
    from nclone_env.jobs import Shard, Showing, run

    part = Shard.of(shard)
    if part:
        check_folder("output", output)
    else:
        check_output(output, force)
        output.parent.mkdir(parents=True, exist_ok=True)
        claim(output)
        check_output(output, force)
    line, faults, made = StatusLine(sys.stderr), [], []

    def report(fault: NcloneError) -> None:
        faults.append(fault)
        line.put(f"left out: {fault}")

    def count(level: Mapping[str, Any]) -> None:
        made.append(level["runs"])
        line.show(f"{len(made)}/{len(numbers)} levels")

    try:
        with TemporaryDirectory() as folder:
            files = (file for path in recordings for file in _with_submissions(path))
            given = tuple(str(_of_submission(file, Path(folder), part)) for file in files)
            job = Showing(levels, given, title or _title(levels), report)
            numbers = job.numbers(part)
            with threads(default_workers(len(numbers))) as executor:
                run(job, output, executor, count, shard=part)
    except OSError as error:
        raise ConfigError(f"output: {error.filename or output} cannot be written: {error.strerror}") from error
    finally:
        line.clear()
    where = f"journal {part.file} in {output}" if part else f"open {output / 'index.html'}"
    say(f"wrote {counted(len(made), 'level')} and {counted(sum(made), 'run')}; {where}")
    return int(bool(faults))


def _with_submissions(path: Path) -> list[Path]:
    """Return a path, and the submissions in a folder after it, or instead of it if it has no recordings."""
    submissions = [file for file in played_files(path) if file != path and other_kind(file) == "submission"]
    return submissions if submissions and not recording_files(path) else [path, *submissions]


def _of_submission(path: Path, folder: Path, part: object) -> Path:
    """Return a folder inside of ``folder`` with the recordings of a submission; another path as it is."""
    if other_kind(path) != "submission":
        return path
    if part is not None:
        raise ConfigError(f"shard: expected none with a submission, which is one file, got {path}; leave --shard out")
    from nclone_env.benchmark import recordings_of  # which imports torch

    target = Path(mkdtemp(dir=folder))
    for number, recording in enumerate(recordings_of(path)):
        recording.save(target / recording_name(number, f"{path.stem}-{recording.settings['level']}"))
    return target


def _title(levels: tuple[str, ...]) -> str:
    """Return a title from the names of levels."""
    names = [Path(name).stem if there(Path(name).exists) else name for name in levels]
    return ", ".join(names) if 0 < len(names) <= 3 else "Levels"
