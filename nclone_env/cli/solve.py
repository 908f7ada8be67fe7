"""``nclone-env solve``: search for inputs that complete levels."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nclone_env._files import write_file
from nclone_env.cli.stop import stop_on_signals
from nclone_env.constants import CELEBRATING
from nclone_env.errors import ConfigError, LevelFormatError, UnsupportedLevelError
from nclone_env.level.level import Level
from nclone_env.level.reference import LevelRef, OpenedPacks, resolve
from nclone_env.plan.solve import Solution, solve
from nclone_env.replay.recording import Recording, recording_name

TABLE = "solutions.jsonl"
_DEFAULT_SECONDS = 4.0


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
    recording: str | None = None
    """File of the solution in the output folder."""
    error: str | None = None
    """Why there was no search."""

    def __str__(self) -> str:
        """Return the row of the table."""
        if self.error:
            return f"{self.level:<32.32}  {self.error}"
        frames = str(self.frames) if self.completed else "-"
        return (
            f"{self.level:<32.32}  {'yes' if self.completed else 'no':<9}  {frames:>6}  {self.seconds:>7.2f}  "
            f"{self.simulated:>16,}"
        )


_HEADER = f"{'level':<32}  completed  frames  seconds  frames simulated"


def solve_levels(
    levels: Positional[tuple[str, ...]],
    seconds: float | None = None,
    frames: int | None = None,
    seed: int = 0,
    threads: int = 1,
    output: Path = Path("solutions"),
) -> int:
    """Search for the shortest inputs that complete levels; record each solution, replayed and verified.

    The exit status is 0 if there was a search on every level, completed or not, and 1 if a level could not be searched.

    Args:
        levels: built-in sets or levels by name, level files, folders or packs (pack.txt, pack.txt#12) by path.
        seconds: seconds for each level; 4 if --frames is not given either.
        frames: frames to simulate for each level; the same number and seed give the same solutions.
        seed: seed of the random choices.
        threads: number of levels searched at once.
        output: folder for the recordings and for solutions.jsonl, the rows of the table.
    """
    if threads < 1:
        raise ConfigError(f"threads: expected a whole number of at least 1, got {threads}")
    packs: OpenedPacks = {}
    refs = [ref for name in levels for ref in resolve(name, packs)]
    if not refs:
        raise ConfigError("levels: expected at least one level, got none; name a set, a level or a file")
    if seconds is None:
        seconds = _DEFAULT_SECONDS if frames is None else math.inf
    output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with stop_on_signals("stopping; press Ctrl-C again to end at once") as stop, _progress(len(refs)) as shown:
        task = _Task(seconds, math.inf if frames is None else frames, seed, output, stop, shown)
        rows = _run(task, refs, threads, output)
    found = sum(row.completed for row in rows)
    simulated = sum(row.simulated for row in rows)
    print(
        f"{found} of {len(rows)} levels completed, {simulated:,} frames simulated, "
        f"{time.perf_counter() - started:.1f} s; recordings and {TABLE} in {output}"
    )
    return stop.exit_status if stop() else int(any(row.error for row in rows))


def _run(task: _Task, refs: Sequence[LevelRef], threads: int, output: Path) -> list[Row]:
    """Search on all levels, in order; print the table and keep it in the output folder as it grows."""
    rows: list[Row] = []
    print(_HEADER)
    with ThreadPoolExecutor(threads) as executor:
        for row in executor.map(task, range(len(refs)), refs):
            if row is not None:
                rows.append(row)
                task.shown(row, f"{row}\n")
                write_file(output / TABLE, "".join(f"{json.dumps(vars(row))}\n" for row in rows).encode())
    return rows


@dataclass(frozen=True)
class _Task:
    """A search on one level; call it with the number and the reference of the level."""

    seconds: float
    frames: float
    seed: int
    output: Path
    stop: Callable[[], bool]
    shown: Callable[[Row | None, str], None]

    def __call__(self, number: int, ref: LevelRef) -> Row | None:
        """Return the row of the level, None if the command is to stop before its search."""
        if self.stop():
            return None
        try:
            level = ref.load()
            found = self._solve(level)
        except (LevelFormatError, UnsupportedLevelError) as error:
            return Row(ref.name, error=str(error))
        file = self._save(number, level, found) if found.completed else None
        return Row(ref.name, found.completed, found.frames, found.seconds, found.simulated, found.stage, file)

    def _solve(self, level: Level) -> Solution:
        def report(found: Solution) -> None:
            self.shown(None, f"{level.name}: {found.frames} frames after {found.seconds:.1f} s")

        self.shown(None, f"{level.name}: searching")
        return solve(
            level,
            seconds=self.seconds,
            frames=self.frames,
            seed=self.seed,
            on_solution=report,
            stop=self.stop,
        )

    def _save(self, number: int, level: Level, found: Solution) -> str:
        """Write the recording of a solution; return its file name."""
        recording = Recording.of(level, found.inputs, {"level": level.name}, self.seed)
        verdict = recording.verify()
        if not verdict.agrees or verdict.state != CELEBRATING:
            raise RuntimeError(f"solve: the solution of {level.name} is not reproduced: {verdict.reason}")
        name = recording_name(number, level.name)
        recording.save(self.output / name)
        return name


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Row | None, str], None]]:
    """Yield a function that prints a finished row, or on a terminal what goes on, in a line that is overwritten."""
    live, finished = sys.stdout.isatty(), 0

    def show(row: Row | None, text: str) -> None:
        nonlocal finished
        if row is not None:
            finished += 1
            sys.stdout.write(f"\r\x1b[K{text}" if live else text)
        elif live:
            sys.stdout.write(f"\r\x1b[K[{finished}/{total}] {text}")
        sys.stdout.flush()

    yield show
    if live:
        sys.stdout.write("\r\x1b[K")
