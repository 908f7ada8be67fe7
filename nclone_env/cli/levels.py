"""``nclone-env levels``: list, show, validate, convert and generate levels, and inspect the level cache."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from nclone_env._arrays import clear_cache
from nclone_env._files import suffix_of, write_file
from nclone_env._processes import processes as processes_of
from nclone_env.cli.output import (
    check_all_free,
    check_folder,
    check_free,
    check_suffix,
    counted,
    plain_name,
    release_claims,
)
from nclone_env.cli.progress import LevelProgress, say, stop_on_signals
from nclone_env.config import Theme
from nclone_env.errors import ConfigError, LevelFormatError, check_integer
from nclone_env.game import kind_name
from nclone_env.generate import DEFAULT_FAMILIES, LEAST_DIFFICULTY, MOST_DIFFICULTY
from nclone_env.jobs import Shard, Validating, run
from nclone_env.level import (
    GAME_MODE_NAMES,
    UNPUBLISHED,
    WRITERS,
    LevelRef,
    RawLevel,
    level_library,
    level_sets,
    listed_names,
    resolve,
)
from nclone_env.machine import default_workers


def list_levels(levels: Positional[tuple[str, ...]] = ()) -> int:
    """Print sets and packs with the names and titles of their levels; the exit status is 1 if one cannot be read.

    Args:
        levels: what ``train --levels`` takes, such as pack.txt#0-95; all built-in sets by default.
    """
    unreadable = False
    for name in levels or level_sets():
        refs = resolve(name)
        say(f"{name} ({counted(len(refs), 'level')})")
        for ref in refs:
            try:
                title = ref.load().raw.title
            except LevelFormatError as error:
                title, unreadable = f"error: {error}", True
            say(f"  {ref.name:<32} {title}")
    return int(unreadable)


def show_level(
    level: Positional[str],
    output: Path | None = None,
    crop: bool = True,
    theme: Theme = "light",
    force: bool = False,
) -> int:
    """Print a summary of a level and save a picture of it.

    Args:
        level: name of a built-in level, or path of a level file.
        output: PNG file to write; ``<name>.png`` in the current directory by default,
            ``<pack>-<number>.png`` for a level of a pack.
        crop: show the part of the world that the level uses, enlarged; else all of it, 1056 x 600 pixels.
        theme: colours, light or dark.
        force: overwrite an existing file.
    """
    ref = _only_level("level", level)
    name = ref.path.stem if ref.number is None else f"{ref.path.stem}-{ref.number}"
    target = output or Path(f"{plain_name(name, 'level')}.png")
    check_suffix("output", target, ".png")
    check_free(target, force)
    raw = ref.load().raw
    _print_summary(raw)
    _save(target, _png(raw, crop, theme))
    return 0


def validate_levels(
    levels: Positional[tuple[str, ...]], output: Path | None = None, shard: str | None = None, force: bool = False
) -> int:
    """Check levels and print all findings; the exit status is 1 if a level is malformed or unplayable, else 0.

    Levels with many moving entities are played for a moment: a slow one is a warning with its speed on this machine.

    Args:
        levels: built-in sets or levels by name, level files, folders of level files, packs, or levels of packs
            (pack.txt#12, pack.txt#0-95,100).
        output: also write the findings to a file of JSON lines, one for each level.
        shard: part I/N of the levels, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the file.
        force: overwrite an existing file.
    """
    job, faults = Validating(levels), 0
    part = Shard.of(shard)
    total = len(job.numbers(part))

    def show(row: Mapping[str, Any]) -> None:
        nonlocal faults
        for finding in row["findings"]:
            say(f"{finding['severity']}: {finding['text']}")
        faults += any(finding["severity"] == "error" for finding in row["findings"])

    if part:
        if output is None:
            raise ConfigError("output: expected a folder for the journal of the shard, got none; name one")
        check_folder("output", output)
    elif output:
        check_free(output, force)
    if output is None:
        for number in range(total):
            show(job.task(number)())
    else:
        with stop_on_signals("stopping; the findings so far are kept") as stop:
            run(job, output, on_result=show, shard=part, stop=stop)
        if stop():
            return stop.exit_status
    say(f"{counted(total, 'level')}, {faults} with errors")
    return 1 if faults else 0


def convert_level(source: Positional[str], target: Positional[Path], force: bool = False) -> int:
    """Convert a level to the text format or to map bytes.

    Args:
        source: name of a built-in level, or path of a level file in any format.
        target: file to write; the suffix selects the format: ``.toml`` text, ``.map`` map bytes.
        force: overwrite an existing file.
    """
    check_suffix("target", target, *WRITERS)
    check_free(target, force)
    raw = _only_level("source", source).load().raw
    _save(target, WRITERS[suffix_of(target)](raw))
    return 0


def generate_levels(
    output: Path,
    count: int = 100,
    seed: int = 0,
    family: tuple[str, ...] = DEFAULT_FAMILIES,
    difficulty: str = f"{LEAST_DIFFICULTY}..{MOST_DIFFICULTY}",
    split: str = "train",
    processes: int | None = None,
    first: int = 0,
    shard: str | None = None,
    force: bool = False,
) -> int:
    """Make levels and write a pack, a table (.jsonl) and a folder of recordings (-recordings) next to it.

    The same arguments give the same bytes on every machine, with any number of processes. Ctrl-C keeps the levels that
    are complete.

    Args:
        output: pack to write, such as pack.txt.
        count: number of levels.
        seed: seed of the collection; level n of a seed is always the same.
        family: families that take turns: rooms, caves, shafts, mazes, minefields, patrols, turrets, pads, slopes,
            motifs; all but the last if none is named.
        difficulty: least and greatest measured difficulty, 0..100.
        split: train or held-out; no level is ever in both.
        processes: number of levels made at once, each in a process of its own; by default one per core.
        first: number of the first level.
        shard: part I/N of the levels, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the pack.
        force: overwrite existing files.
    """
    from nclone_env.generate import CollectionFiles, compile_kernels, read_range  # the generator takes a second
    from nclone_env.jobs import Generating

    if processes is not None:
        check_integer("processes", processes, low=1)
    job = Generating(count, first, seed, family, read_range("difficulty", difficulty), split)
    part = Shard.of(shard)
    if part:
        check_folder("output", output)
    else:
        check_all_free(job.files(output), force)
    numbers = job.numbers(part)
    progress, rejected, made = LevelProgress(), Counter[str](), 0

    def note(result: Mapping[str, Any]) -> None:
        nonlocal made
        made += 1
        rejected.update(result["row"]["rejected"])
        progress.level("levels generated", made, len(numbers))

    with (
        stop_on_signals("stopping after the levels in work; press Ctrl-C again to end at once") as stop,
        processes_of(processes or default_workers(len(numbers))) as executor,
    ):
        if executor is not None:
            compile_kernels()  # for all processes
        run(job, output, executor, note, shard=part, stop=stop)
    progress.clear()
    if rejected:
        say(f"rejected sketches: {', '.join(f'{reason} {times:,}' for reason, times in rejected.most_common())}")
    if part:
        say(f"wrote {counted(made, 'level')} to journal {part.file} in {output}")
    elif made:
        files = CollectionFiles(output)
        say(f"wrote {counted(made, 'level')} to {files.pack}, rows to {files.table}, recordings to {files.folder}")
    return stop.exit_status if stop() else 0


def show_library(clear: bool = False) -> int:
    """List the cached arrays of levels with their sizes, most recently used first.

    Args:
        clear: remove all; they are rebuilt on the next use.
    """
    if clear:
        say(f"removed {counted(clear_cache(), 'group')} of arrays from {level_library().folder}")
    say(*level_library().listing().split("\n"))
    return 0


def _only_level(argument: str, name: str) -> LevelRef:
    """Return the level of a name."""
    refs = resolve(name)
    if len(refs) != 1:
        raise ConfigError(f"{argument}: expected one level, got {len(refs)} in {name!r}: {listed_names(refs)}")
    return refs[0]


def _print_summary(raw: RawLevel) -> None:
    say(f"title      {raw.title}")
    say(f"author     {raw.author or '-'}")
    say(f"level id   {'-' if raw.level_id == UNPUBLISHED else raw.level_id}")
    say(f"game mode  {GAME_MODE_NAMES.get(raw.game_mode, raw.game_mode)}")
    say(f"digest     {raw.digest[:16]}")
    say(f"source     {raw.source}")
    for kind, count in sorted(Counter(raw.records[:, 0].tolist()).items()):
        say(f"{count:>5}  {kind_name(kind)}")


def _png(raw: RawLevel, crop: bool, theme: Theme) -> bytes:
    """Return the picture of a level as a PNG file; a level that uses a part of the world is enlarged."""
    from nclone_env.render import encoded, level_picture, used_area_of, zoom_of  # only this command needs OpenCV

    scale = zoom_of(used_area_of(raw)) if crop else 1.0
    return encoded(level_picture(raw, scale, crop, theme), ".png")


def _save(target: Path, data: bytes) -> None:
    """Write a file and print its path."""
    write_file(target, data)
    release_claims()
    say(f"wrote {target} ({len(data)} bytes)")
