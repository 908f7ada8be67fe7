"""``nclone-env levels generate``: make levels, each with a recording that completes it."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nclone_env._processes import processes as processes_of
from nclone_env.cli.output import check_all_free, check_folder, counted
from nclone_env.cli.progress import LevelProgress, stop_on_signals
from nclone_env.errors import check_integer
from nclone_env.generate import (
    DEFAULT_FAMILIES,
    LEAST_DIFFICULTY,
    MOST_DIFFICULTY,
    TRAIN_SPLIT,
    CollectionFiles,
    generate_level,
    read_range,
)
from nclone_env.jobs import Generating, Shard, run


def generate_levels(
    output: Path,
    count: int = 100,
    seed: int = 0,
    family: tuple[str, ...] = DEFAULT_FAMILIES,
    difficulty: str = f"{LEAST_DIFFICULTY}..{MOST_DIFFICULTY}",
    split: str = TRAIN_SPLIT,
    processes: int = 1,
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
        processes: number of levels made at once, each in a process of its own.
        first: number of the first level.
        shard: part I/N of the levels, such as 1/4, for one of N processes: output is a folder for its journal, a
            restarted shard goes on with it, and 'merge' writes the pack.
        force: overwrite existing files.
    """
    check_integer("processes", processes, low=1)
    job = Generating(count, first, seed, family, read_range("difficulty", difficulty), split)
    part = Shard.of(shard)
    if shard:
        check_folder("output", output)
    else:
        check_all_free(job.files(output), force)
    numbers = part.numbers(count)
    progress, rejected, made = LevelProgress(), Counter[str](), 0

    def note(result: Mapping[str, Any]) -> None:
        nonlocal made
        made += 1
        rejected.update(result["row"]["rejected"])
        progress.level("levels generated", made, len(numbers))

    with (
        stop_on_signals("stopping after the levels in work; press Ctrl-C again to end at once") as stop,
        processes_of(processes) as executor,
    ):
        if executor is not None:
            generate_level("patrols")  # compiles the kernels for all processes
        run(job, output, executor, note, shard=part if shard else None, stop=stop)
    progress.clear()
    if rejected:
        print(f"rejected sketches: {', '.join(f'{reason} {times:,}' for reason, times in rejected.most_common())}")
    if shard:
        print(f"wrote {counted(made, 'level')} to journal {part.file} in {output}")
    elif made:
        files = CollectionFiles(output)
        print(f"wrote {counted(made, 'level')} to {files.pack}, rows to {files.table}, recordings to {files.folder}")
    return stop.exit_status if stop() else 0
