"""``nclone-env solve``: search for inputs that complete levels."""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from nclone_env.cli.arguments import read_whole_number
from nclone_env.cli.output import check_folder, claim
from nclone_env.cli.progress import StatusLine, StopRequest, say, stop_on_signals
from nclone_env.errors import ConfigError, check_integer, shortened
from nclone_env.jobs import Row, Shard, Solving, run
from nclone_env.machine import available_cores, default_workers
from nclone_env.plan import MEMORY, MOST_FRAMES, Solution, compile_kernels

_DEFAULT_SECONDS = 4.0
_HEADER = f"{'level':<32}  completed  frames     gold  seconds  frames simulated"


def solve_levels(
    levels: Positional[tuple[str, ...]],
    seconds: float | None = None,
    frames: int | None = None,
    ladder: str | None = None,
    objective: Literal["time", "score", "all-gold"] = "time",
    seed: int = 0,
    threads: int | None = None,
    hold: int = 1,
    smooth: float | None = None,
    output: Path = Path("solutions"),
    shard: str | None = None,
    force: bool = False,
) -> int:
    """Search for the best inputs that complete levels; record each solution, replayed and verified.

    The exit status is 0 if there was a search on every level, completed or not, and 1 if a level could not be searched.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#12) by path.
        seconds: seconds for each level; 4 if --frames is not given either.
        frames: frames to simulate for each level; the same number and seed give the same solutions.
        ladder: budgets in place of --seconds or --frames, such as 1s,10s,60s or 1e5,1e6: each level is searched again
            with the next one until it is completed.
        objective: as few frames as possible; the game's score, in which a piece of gold counts as two seconds; or as
            much gold as possible, then as few frames.
        seed: seed of the random choices.
        threads: threads that search: on several levels at once, and on each one with several if there are fewer levels;
            by default one per core, or as many as there is memory for.
        hold: inputs change only in frames that are multiples of it, as those of a policy with this frame skip.
        smooth: share by which a recording may be longer than the solution found, to change its inputs less often.
        output: folder for the recordings and for solutions.jsonl, the rows of the table.
        shard: part I/N of the levels, such as 1/4, for one of N processes: results go to a journal in the output
            folder, a restarted shard goes on with it, and 'merge' joins those of all.
        force: replace the rows of the same levels in the table, and their recordings; those of other levels stay.
    """
    _check_budget(threads, hold, frames, seconds)
    check_integer("seed", seed, low=0)
    threads = threads or default_workers(available_cores(), MEMORY)
    times, counts = _budget_of(seconds, frames, ladder)
    part = Shard.of(shard)
    if force and part:
        raise ConfigError("force: expected it without --shard, whose results are in a journal; leave it out")
    if smooth is not None and (objective != "time" or not 0 <= smooth <= 1):
        raise ConfigError(f"smooth: expected a share from 0 to 1, with --objective time, got {smooth} with {objective}")
    table = _Table()
    job = Solving(levels, times, counts, objective, seed, hold, smooth, partial(table.watch, objective))
    numbers = job.numbers(part)
    check_folder("output", output)
    output.mkdir(parents=True, exist_ok=True)
    if not part:
        claim(output)
        job.check(output, force)
    compile_kernels()  # what is said about it comes before the table, and its time is not that of the search
    table.begin(len(numbers), max(threads // max(len(numbers), 1), 1))
    with (
        stop_on_signals("stopping; press Ctrl-C again to end at once") as table.stop,
        ThreadPoolExecutor(threads) as executor,
    ):
        run(job, output, executor, table.add, shard=part, stop=table.stop)
    table.finish(f"journal {part.file} in {output}" if part else f"recordings and solutions.jsonl in {output}")
    return table.stop.exit_status if table.stop() else int(any(row.error for row in table.rows))


def _check_budget(threads: int | None, hold: int, frames: int | None, seconds: float | None) -> None:
    """Raise a ConfigError that names the option whose number is outside its range."""
    for name, value in (("threads", threads), ("hold", hold), ("frames", frames)):
        if value is not None:
            check_integer(name, value, low=1)
    if hold > MOST_FRAMES:
        raise ConfigError(f"hold: expected at most {MOST_FRAMES:,} frames, got {hold:,}")
    if seconds is not None and not seconds > 0:
        raise ConfigError(f"seconds: expected a number above 0, got {seconds}")


def _budget_of(seconds: float | None, frames: int | None, ladder: str | None) -> tuple[Any, Any]:
    """Return seconds and frames of each search, None without such a budget; a tuple has the steps of a ladder."""
    if ladder is None:
        return seconds or (None if frames else _DEFAULT_SECONDS), frames
    if seconds or frames:
        raise ConfigError("ladder: expected neither --seconds nor --frames with it; leave them out")
    words = ladder.split(",")
    is_timed = all(word.endswith("s") for word in words)
    try:
        steps: tuple[Any, ...] = tuple(float(word[:-1]) if is_timed else read_whole_number(word) for word in words)
    except ValueError:
        steps = ()
    if not steps or not steps[0] > 0 or list(steps) != sorted(set(steps)):
        raise ConfigError(f"ladder: expected growing budgets such as 1s,10s,60s or 1e5,1e6, got {shortened(ladder)}")
    return (steps, None) if is_timed else (None, steps)


def _line(row: Row) -> str:
    """Return the row of the table, with the end of a long name, where levels of a pack and files differ."""
    name = f"{row.level[-32:]:<32}"
    if row.error:
        return f"{name}  {row.error}"
    frames, gold = (str(row.frames), f"{row.gold}/{row.gold_total}") if row.completed else ("-", "-")
    return (
        f"{name}  {'yes' if row.completed else 'no':<9}  {frames:>6}  "
        f"{gold:>7}  {row.seconds:>7.2f}  {row.simulated:>16,}"
    )


class _Table(StatusLine):
    """The rows of the table and, on a terminal, what goes on, in a line below them that is overwritten.

    ``rows`` are the finished ones, ``stop`` is whether to stop the searches.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.stop = StopRequest()

    def begin(self, total: int, threads: int) -> None:
        """Print the header of the rows of so many levels, with so many threads each."""
        self._total, self._threads, self._began = total, threads, time.perf_counter()
        say(_HEADER)

    def watch(self, objective: str, number: int, level: str) -> Mapping[str, Any]:
        """Return arguments of a search that tell what goes on."""
        begun = iter([f"{level}: searching"])

        def stop() -> bool:
            for text in begun:
                self._say(text)
            return self.stop()

        def report(found: Solution) -> None:
            gold = "" if objective == "time" else f", {found.gold}/{found.gold_total} gold"
            self._say(f"{level}: {found.frames} frames{gold} after {found.seconds:.1f} s")

        return {"threads": self._threads, "stop": stop, "on_solution": report}

    def add(self, result: Mapping[str, Any]) -> None:
        """Print a finished row."""
        row = Row(**result["row"])
        self.rows.append(row)
        self.put(_line(row))

    def finish(self, written: str) -> None:
        """Print the number of completed levels, the frames simulated and what was written; then what was won where."""
        self.clear()
        found, simulated = sum(row.completed for row in self.rows), sum(row.simulated for row in self.rows)
        seconds = time.perf_counter() - self._began
        say(f"{found} of {len(self.rows)} levels completed, {simulated:,} frames simulated, {seconds:.1f} s; {written}")
        won = Counter[str]()
        for row in self.rows:
            won.update(row.won)
        if won:
            stages = ", ".join(f"{stage} {frames:,}" for stage, frames in won.items())
            say(f"frames saved after the first solutions: {stages}")

    def _say(self, text: str) -> None:
        self.show(f"[{len(self.rows)}/{self._total}] {text}")
