"""Searches for the best inputs on many levels: a table and a folder of recordings."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from nclone_env._files import open_regular, write_file
from nclone_env._processes import never
from nclone_env.errors import ConfigError, LevelFormatError, UnsupportedLevelError
from nclone_env.game import CELEBRATING
from nclone_env.jobs.job import LevelJob
from nclone_env.jobs.shard import file_name
from nclone_env.level import Level
from nclone_env.plan import Solution, smooth, solve
from nclone_env.replay import Recording, recording_name, write_recording

TABLE = "solutions.jsonl"
_MOST_BYTES = 1 << 28  # of a table
_INTERVAL = 1.0  # seconds from one table to the next: it grows with the levels
_FACTS = ("completed", "frames", "seconds", "simulated", "stage", "gold", "gold_total", "score", "won")


@dataclass(frozen=True)
class Row:
    """The result on one level."""

    level: str
    completed: bool = False
    frames: int = 0
    """Frames of the solution."""
    seconds: float | None = 0.0
    """Seconds of the search; None in the table if it had a budget of frames alone."""
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
    error: str | None = None
    """Why there was no search."""


class Searched(TypedDict):
    """The result of a search: its row, and contents of its files by name."""

    row: Row
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Solving(LevelJob):
    """Searches on levels, as ``nclone-env solve`` does them; ``output`` is a folder.

    Attributes:
        seconds: for each level, or several numbers: the next one only if the level was not completed.
        frames: to simulate for each level, or several; without seconds the same arguments give the same files.
        objective: ``time``, ``score`` or ``all-gold``.
        seed: of the random choices.
        hold: inputs change only in frames that are multiples of it.
        smooth: share by which a recording may be longer than the solution, to change its inputs less often.
        watch: returns more arguments of :func:`nclone_env.plan.solve` for number and name of a level.
    """

    seconds: float | tuple[float, ...] | None = None
    frames: int | tuple[int, ...] | None = None
    objective: str = "time"
    seed: int = 0
    hold: int = 1
    smooth: float | None = None
    watch: Callable[[int, str], Mapping[str, Any]] | None = field(default=None, compare=False)
    result = Searched

    def task(self, number: int) -> Callable[[], dict[str, Any] | None]:
        """Return the search on a level."""
        ref = self.refs[number]
        try:
            level = ref.load()
        except LevelFormatError as error:
            return partial(_failed, ref.name, str(error))
        watched = self.watch(number, level.name) if self.watch else {}
        options = {"objective": self.objective, "seed": self.seed, "hold": self.hold, **watched}
        return partial(_search, number, level, self.smooth, self._budgets, options)

    @property
    def _budgets(self) -> Sequence[tuple[float, float]]:
        """Seconds and frames of searches, of which only the first one that completes a level counts."""
        seconds, frames = (
            (math.inf,) if budget is None else budget if isinstance(budget, tuple) else (budget,)
            for budget in (self.seconds, self.frames)
        )
        return [(each, most) for each in seconds for most in frames]

    def check(self, output: Path, force: bool) -> None:
        """Check that rows can be added to the table in the output folder.

        Raises:
            ConfigError: if the table cannot be read, or it has a row of one of the levels, or the folder a recording of
                one, unless ``force`` replaces it.
        """
        rows_before(output, set() if force else {ref.name for ref in self.refs})
        for number, ref in enumerate(() if force else self.refs):
            path = output / recording_name(number, ref.name)
            if path.exists():
                raise ConfigError(f"output: {path} already exists; --force replaces it, or name another folder")

    def write(self, output: Path, results: Iterable[Mapping[str, Any]]) -> None:
        """Write recordings as they come, and the table; rows of other levels that are there stay.

        Raises:
            ConfigError: if the table there is another file.
        """
        output.mkdir(parents=True, exist_ok=True)
        before = rows_before(output)
        rows: list[dict[str, Any]] = []
        untimed = {"seconds": None} if self.seconds is None else {}
        written = time.monotonic()
        try:
            for result in results:
                row = Row(**result["row"])
                for name, data in result["files"].items():
                    write_file(output / file_name(name), data)
                _remove_replaced(output, row, before)
                rows.append(vars(row) | untimed)
                if time.monotonic() - written > _INTERVAL:
                    _write_table(output, rows, before)
                    written = time.monotonic()
        finally:
            if rows:
                _write_table(output, rows, before)


def rows_before(output: Path, names: Set[str] = frozenset()) -> list[dict[str, Any]]:
    """Return the rows of the table in the output folder, to which those of more levels are added."""
    table = output / TABLE
    if not table.exists():
        return []
    try:
        with open_regular(table, _MOST_BYTES) as file:
            rows: list[dict[str, Any]] = [json.loads(line) for line in file.read().splitlines()]
        known = [level for level in [row["level"] for row in rows] if level in names]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ConfigError(f"output: expected the rows of 'solve' in {table}, got others; move the file") from error
    if known:
        more = f" and {len(known) - 1} more" if len(known) > 1 else ""
        fix = "--force replaces it, or name another folder"
        raise ConfigError(f"output: {table} has a row of {known[0]}{more} already; {fix}")
    return rows


def _write_table(output: Path, rows: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> None:
    names = {row["level"] for row in rows}
    table = [*rows, *(row for row in before if row["level"] not in names)]
    write_file(output / TABLE, "".join(f"{json.dumps(row)}\n" for row in table).encode())


def _remove_replaced(output: Path, row: Row, before: Sequence[Mapping[str, Any]]) -> None:
    """Remove the recording of the row that a new one of the same level replaces, if it has another."""
    for old in before:
        name = str(old.get("recording") or "")
        if old["level"] == row.level and name not in ("", row.recording) and Path(name).name == name:
            (output / name).unlink(missing_ok=True)


def _failed(name: str, error: str) -> dict[str, Any]:
    return {"row": vars(Row(name, error=error)), "files": {}}


def _search(
    number: int,
    level: Level,
    slack: float | None,
    budgets: Sequence[tuple[float, float]],
    options: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Search on a level; return its row and the contents of its files by name, None if it is not to begin."""
    if options.get("stop", never)():
        return None
    try:
        for seconds, frames in budgets:
            found = solve(level, seconds=seconds, frames=frames, **options)
            if found.completed:
                break
    except (LevelFormatError, UnsupportedLevelError) as error:
        return _failed(level.name, str(error))
    if slack is not None and found.completed:
        found = replace(found, inputs=smooth(level, found.inputs, slack=slack, hold=options["hold"]))
    facts: dict[str, Any] = {name: getattr(found, name) for name in _FACTS}
    files: dict[str, bytes] = {}
    if found.completed:
        facts["recording"] = recording_name(number, level.name)
        facts["gold"], files[facts["recording"]] = _recorded(level, found, options["seed"])
    return {"row": vars(Row(level.name, **facts)), "files": files}


def _recorded(level: Level, found: Solution, seed: int) -> tuple[int, bytes]:
    """Return the gold of a solution, and the file of its recording, verified."""
    recording = Recording.of(level, found.inputs, {"level": level.name}, seed)
    verdict = recording.verify()
    if not verdict.agrees or verdict.state != CELEBRATING:
        raise RuntimeError(f"solve: the solution of {level.name} is not reproduced: {verdict.reason}")
    return verdict.gold, write_recording(recording)
