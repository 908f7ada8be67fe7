"""``nclone-env solve``: search for inputs that complete levels."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from nclone_env._files import open_regular, write_file
from nclone_env._optional import optional_module
from nclone_env.cli.output import check_folder, claim_folder
from nclone_env.cli.progress import LiveLine
from nclone_env.cli.stop import stop_on_signals
from nclone_env.constants import CELEBRATING, FRAMES_PER_SECOND
from nclone_env.errors import ConfigError, LevelFormatError, UnsupportedLevelError
from nclone_env.level import Level, LevelRef, OpenedPacks, build_room, resolve
from nclone_env.options import check_integer
from nclone_env.plan import MOST_FRAMES, SEARCH_SUFFIX, Solution, compile_kernels, solve
from nclone_env.plan import smooth as smoothed
from nclone_env.replay import Recording, recording_name, recording_pictures, write_video
from nclone_env.sim.simulate import simulate

TABLE = "solutions.jsonl"
_DEFAULT_SECONDS = 4.0
_MOST_BYTES = 1 << 28  # of a table


@dataclass(frozen=True)
class Row:
    """The result on one level."""

    level: str
    completed: bool = False
    frames: int = 0
    """Frames of the solution."""
    seconds: float = 0.0
    """Seconds of the search."""
    simulated: int = 0
    """Frames simulated."""
    stage: str = ""
    """Stage of the search that found the solution."""
    gold: int = 0
    gold_total: int = 0
    """Pieces of gold that the solution collects, and those of the level."""
    score: int = 0
    """Frames on the game's clock at the end."""
    won: Mapping[str, int] = field(default_factory=dict)
    """Frames won by each stage after the first solution."""
    recording: str | None = None
    """File of the solution in the output folder."""
    video: str | None = None
    """File of its video."""
    error: str | None = None
    """Why there was no search."""

    def __str__(self) -> str:
        """Return the row of the table."""
        if self.error:
            return f"{self.level:<32.32}  {self.error}"
        frames, gold = (str(self.frames), f"{self.gold}/{self.gold_total}") if self.completed else ("-", "-")
        return (
            f"{self.level:<32.32}  {'yes' if self.completed else 'no':<9}  {frames:>6}  "
            f"{gold:>7}  {self.seconds:>7.2f}  {self.simulated:>16,}"
        )


_HEADER = f"{'level':<32}  completed  frames     gold  seconds  frames simulated"


def solve_levels(
    levels: Positional[tuple[str, ...]],
    seconds: float | None = None,
    frames: int | None = None,
    objective: Literal["time", "score", "all-gold"] = "time",
    seed: int = 0,
    threads: int = 1,
    hold: int = 1,
    smooth: float | None = None,
    output: Path = Path("solutions"),
    resume: bool = False,
    video: bool = False,
    force: bool = False,
) -> int:
    """Search for the best inputs that complete levels; record each solution, replayed and verified.

    The exit status is 0 if there was a search on every level, completed or not, and 1 if a level could not be searched.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#12) by path.
        seconds: seconds for each level; 4 if --frames is not given either.
        frames: frames to simulate for each level; the same number and seed give the same solutions.
        objective: as few frames as possible; the game's score, in which a piece of gold counts as two seconds; or as
            much gold as possible, then as few frames.
        seed: seed of the random choices.
        threads: threads that search: on several levels at once, and on each one with several if there are fewer levels.
        hold: inputs change only in frames that are multiples of it, as those of a policy with this frame skip.
        smooth: share by which a recording may be longer than the solution found, to change its inputs less often.
        output: folder for the recordings and for solutions.jsonl, the rows of the table.
        resume: keep the searches in the output folder, and go on with those that are there. --frames counts from the
            beginning of a search, --seconds from now.
        video: also export each solution as an MP4 video.
        force: replace the rows of the same levels in the table, and their recordings; those of other levels stay.
    """
    _check_budget(threads, hold, frames, seconds)
    packs: OpenedPacks = {}
    refs = [ref for name in levels for ref in resolve(name, packs)]
    if not refs:
        raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
    if seconds is None:
        seconds = _DEFAULT_SECONDS if frames is None else math.inf
    if resume and force:
        raise ConfigError("force: expected either --force or --resume, got both")
    if smooth is not None and (objective != "time" or not 0 <= smooth <= 1):
        raise ConfigError(f"smooth: expected a share from 0 to 1, with --objective time, got {smooth} with {objective}")
    if video:
        optional_module("imageio_ffmpeg", "video")  # missing: now, not after the search
    check_folder("output", output)
    output.mkdir(parents=True, exist_ok=True)
    claim_folder(output)
    before = _rows_before(output, {ref.name for ref in refs}, resume, force)
    compile_kernels()  # what is said about it comes before the table, and its time is not that of the search
    simulate(build_room(), [0])
    each = max(threads // len(refs), 1)
    started, table = time.perf_counter(), _Table(len(refs))
    with stop_on_signals("stopping; press Ctrl-C again to end at once") as stop:
        limit = math.inf if frames is None else frames
        task = _Task(seconds, limit, objective, seed, each, hold, smooth, output, resume, video, stop, table)
        rows = _run(task, refs, threads, output, before)
        table.clear()
    _print_total(rows, time.perf_counter() - started, output)
    _print_won(rows)
    return stop.exit_status if stop() else int(any(row.error for row in rows))


def _check_budget(threads: int, hold: int, frames: int | None, seconds: float | None) -> None:
    """Raise a ConfigError that names the option whose number is outside its range."""
    for name, value in (("threads", threads), ("hold", hold), ("frames", frames)):
        if value is not None:
            check_integer(name, value, low=1)
    if hold > MOST_FRAMES:
        raise ConfigError(f"hold: expected at most {MOST_FRAMES:,} frames, got {hold:,}")
    if seconds is not None and not seconds > 0:
        raise ConfigError(f"seconds: expected a number above 0, got {seconds}")


def _rows_before(output: Path, names: Set[str], resume: bool, force: bool) -> list[dict[str, Any]]:
    """Return the rows of the table in the output folder, to which those of more levels are added.

    Raises:
        ConfigError: if it cannot be written to, a level has a row that is neither to be kept nor replaced, or the table
            cannot be read.
    """
    table = output / TABLE
    if not table.exists():
        return []
    try:
        with open_regular(table, _MOST_BYTES) as file:
            rows: list[dict[str, Any]] = [json.loads(line) for line in file.read().splitlines()]
        known = [row["level"] for row in rows if row["level"] in names]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ConfigError(f"output: expected the rows of 'solve' in {table}, got others; move the file") from error
    if known and not (resume or force):
        more = f" and {len(known) - 1} more" if len(known) > 1 else ""
        fix = "--resume goes on with it, --force replaces it, or name another folder"
        raise ConfigError(f"output: {table} has a row of {known[0]}{more} already; {fix}")
    return rows


def _run(
    task: _Task, refs: Sequence[LevelRef], threads: int, output: Path, before: Sequence[Mapping[str, Any]]
) -> list[Row]:
    """Search on all levels, in order; print the table and keep it in the output folder as it grows.

    Rows of earlier searches stay in it until there is one of the same level.
    """
    rows: list[Row] = []
    print(_HEADER)
    with ThreadPoolExecutor(threads) as executor:
        for row in executor.map(task, range(len(refs)), refs):
            if row is not None:
                rows.append(row)
                task.table.add(row)
                finished = {row.level for row in rows}
                _remove_replaced(output, row, before)
                table = [*map(vars, rows), *(row for row in before if row["level"] not in finished)]
                write_file(output / TABLE, "".join(f"{json.dumps(row)}\n" for row in table).encode())
    return rows


def _remove_replaced(output: Path, row: Row, before: Sequence[Mapping[str, Any]]) -> None:
    """Remove recording and video of the row that a new one of the same level replaces, if it has others."""
    for old in before:
        if old["level"] == row.level:
            for name in {str(old.get("recording") or ""), str(old.get("video") or "")} - {"", row.recording, row.video}:
                if Path(name).name == name:
                    (output / name).unlink(missing_ok=True)


def _print_total(rows: list[Row], seconds: float, output: Path) -> None:
    """Print the number of completed levels, the frames simulated and the place of the results."""
    found, simulated = sum(row.completed for row in rows), sum(row.simulated for row in rows)
    print(
        f"{found} of {len(rows)} levels completed, {simulated:,} frames simulated, {seconds:.1f} s; "
        f"recordings and {TABLE} in {output}"
    )


def _print_won(rows: Sequence[Row]) -> None:
    """Print how many frames each stage has won after the first solutions."""
    won = Counter[str]()
    for row in rows:
        won.update(row.won)
    if won:
        print("won after the first solutions: " + ", ".join(f"{stage} {frames:,}" for stage, frames in won.items()))


@dataclass(frozen=True)
class _Task:
    """A search on one level; call it with the number and the reference of the level."""

    seconds: float
    frames: float
    objective: str
    seed: int
    threads: int
    hold: int
    smooth: float | None
    output: Path
    resume: bool
    video: bool
    stop: Callable[[], bool]
    table: _Table

    def __call__(self, number: int, ref: LevelRef) -> Row | None:
        """Return the row of the level, None if the command is to stop before its search."""
        if self.stop():
            return None
        try:
            level = ref.load()
            found = self._solve(number, level)
        except (LevelFormatError, UnsupportedLevelError) as error:
            return Row(ref.name, error=str(error))
        file, video = self._save(number, level, found) if found.completed else (None, None)
        names = ("completed", "frames", "seconds", "simulated", "stage", "gold", "gold_total", "score", "won")
        facts = {name: getattr(found, name) for name in names}
        return Row(ref.name, recording=file, video=video, **facts)

    def _solve(self, number: int, level: Level) -> Solution:
        def report(found: Solution) -> None:
            gold = "" if self.objective == "time" else f", {found.gold}/{found.gold_total} gold"
            self.table.say(f"{level.name}: {found.frames} frames{gold} after {found.seconds:.1f} s")

        self.table.say(f"{level.name}: searching")
        saved = self.output / f"{Path(recording_name(number, level.name)).stem}{SEARCH_SUFFIX}"
        found = solve(
            level,
            seconds=self.seconds,
            frames=self.frames,
            objective=self.objective,
            seed=self.seed,
            threads=self.threads,
            hold=self.hold,
            resume=saved if self.resume else None,
            on_solution=report,
            stop=self.stop,
        )
        if self.smooth is None or not found.completed:
            return found
        inputs = smoothed(level, found.inputs, slack=self.smooth, hold=self.hold)
        return replace(found, inputs=inputs, gold=int(simulate(level, inputs).gold[-1]))

    def _save(self, number: int, level: Level, found: Solution) -> tuple[str, str | None]:
        """Write the recording of a solution, and its video if asked for; return their file names."""
        recording = Recording.of(level, found.inputs, {"level": level.name}, self.seed)
        verdict = recording.verify()
        if not verdict.agrees or verdict.state != CELEBRATING:
            raise RuntimeError(f"solve: the solution of {level.name} is not reproduced: {verdict.reason}")
        name = recording_name(number, level.name)
        recording.save(self.output / name)
        if not self.video:
            return name, None
        video = f"{Path(name).stem}.mp4"
        write_video(recording_pictures(recording), self.output / video, FRAMES_PER_SECOND)
        return name, video


class _Table:
    """The rows of the table and, on a terminal, what goes on, in a line below them that is overwritten."""

    def __init__(self, total: int):
        self._total, self._finished, self._line = total, 0, LiveLine(sys.stdout)
        self.clear = self._line.clear

    def add(self, row: Row) -> None:
        """Print a finished row."""
        self._finished += 1
        self._line.put(str(row))

    def say(self, text: str) -> None:
        """Tell what goes on."""
        self._line.show(f"[{self._finished}/{self._total}] {text}")
