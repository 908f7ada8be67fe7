"""Kills and failing calls at every point of each scene, and what they leave behind."""

import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import injector
from .injector import CREATING, FILLING, NAMING, SYNCHRONISING, Outcome, Point
from .scenes import Scene

TEMPORARY = ".nclone_env-"
ERRORS = (
    *((call, error) for call in CREATING for error in ("ENOSPC", "EROFS", "EACCES")),
    *((call, error) for call in (*FILLING, *SYNCHRONISING, *NAMING) for error in ("ENOSPC", "EIO")),
)


@dataclass
class Result:
    """What came of all injections into a scene."""

    name: str
    points: int = 0
    kills: int = 0
    hits: int = 0
    old: int = 0
    new: int = 0
    between: int = 0
    """Of several files some are old and some new, each of them complete."""
    swept: int = 0
    """Kills that left temporary files, which the next run removed."""
    errors: int = 0
    refused: int = 0
    """Failing calls that ended in an error that names the file."""
    survived: int = 0
    """Failing calls in spite of which the file was written, or not needed."""
    damaged: list[str] = field(default_factory=list)


def sweep(scene: Scene, most: int | None = None) -> Result:
    """Kill a scene at its points, with an old file there and without, then fail its calls.

    Args:
        scene: the scene.
        most: number of points for each of the three, evenly spread; None: all.
    """
    result = Result(scene.name)
    with tempfile.TemporaryDirectory() as name:
        old, none = Path(name, "old"), Path(name, "none")
        for folder in (old, none):
            folder.mkdir()
        with _copy(none) as folder:
            scene.write(folder, 0)  # in this process, so that a child imports nothing
            scene.write(folder, 1)
        _written(scene, old, 0)
        for begin in (old, none):
            _kills(scene, begin, most, result)
        _failures(scene, old, most, result)
    return result


def _kills(scene: Scene, begin: Path, most: int | None, result: Result) -> None:
    """Kill a process at points, judge what it leaves in a folder that began as ``begin``, and run it again."""
    points, old, new = _undisturbed(scene, begin)
    result.points = result.points or len(points)
    for point in _spread(points, most):
        with _copy(begin) as folder:
            outcome = injector.kill_at(partial(scene.write, folder, 1), folder, point)
            result.kills += 1
            result.hits += outcome.hit
            try:
                state = judged(scene, folder, old, new)
                setattr(result, state, getattr(result, state) + 1)
                result.swept += bool(temporaries(folder))
                _written(scene, folder, 1)
                assert contents(scene, folder) == new, "the next run does not write what it should"
                assert not temporaries(folder), f"the next run leaves {temporaries(folder)}"
            except Exception as error:  # noqa: BLE001 - a damaged file fails in any way
                result.damaged.append(f"{scene.name}: killed at {point}: {type(error).__name__}: {error}")


def _failures(scene: Scene, begin: Path, most: int | None, result: Result) -> None:
    """Make calls fail, judge the errors and what is left."""
    points, old, new = _undisturbed(scene, begin)
    failing = [(point, error) for point in points for call, error in ERRORS if call == point.call]
    for point, error in _spread(failing, most):
        with _copy(begin) as folder:
            outcome = injector.fail_at(partial(scene.write, folder, 1), folder, point, error)
            result.errors += not outcome.astray
            try:
                state = judged(scene, folder, old, new)
                if outcome.astray:
                    continue
                assert outcome.failed, "no call failed"
                assert not temporaries(folder), f"{temporaries(folder)} are left"
                if outcome.status == 0:
                    assert scene.is_cache or state == "new", "the failure is not reported"
                    result.survived += 1
                else:
                    check_refusal(scene, folder, outcome)
                    result.refused += 1
            except Exception as wrong:  # noqa: BLE001 - as above
                result.damaged.append(f"{scene.name}: {error} at {point}: {wrong}; {outcome.said}")


def judged(scene: Scene, folder: Path, old: dict[str, object], new: dict[str, object]) -> str:
    """Return whether a folder holds the old files, the new ones, or some of each.

    Raises:
        AssertionError: if a file is lost, or neither the old nor the new one.
    """
    now = contents(scene, folder)
    for name in now.keys() | old.keys() | new.keys():
        if name in now:
            versions = [each[name] for each in (old, new) if name in each]
            assert now[name] in versions, f"{name} is neither the old nor the new one"
        else:
            assert name not in old or name not in new, f"{name} is lost"
    scene.together(folder)
    return "old" if now == old else "new" if now == new else "between"


def contents(scene: Scene, folder: Path) -> dict[str, object]:
    """Return what is in the files of a folder by name, without temporary ones."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    names = ((str(path.relative_to(folder)), path) for path in files)
    return {name: scene.read(path) for name, path in names if TEMPORARY not in name}


def temporaries(folder: Path) -> list[Path]:
    """Return what processes have not finished."""
    return list(folder.rglob(f"{TEMPORARY}*"))


def check_refusal(scene: Scene, folder: Path, outcome: Outcome) -> None:
    """Check that a run ended in one line that names a file in its folder.

    Raises:
        AssertionError: otherwise.
    """
    lines = [
        line for line in outcome.said.splitlines() if "Error" in line or line.startswith(("nclone-env:", "error:"))
    ]
    assert outcome.status == 1, f"exit status {outcome.status}"
    assert not scene.is_cache, "that a cache cannot be written is an error"
    assert len(lines) == 1, "it is not told in one line"
    assert str(folder) in lines[0], f"the file is not named: {lines[0]}"
    assert TEMPORARY not in lines[0], f"a temporary file is named: {lines[0]}"


def _undisturbed(scene: Scene, begin: Path) -> tuple[list[Point], dict[str, object], dict[str, object]]:
    """Return the points of a scene, the contents of its folder before, and after."""
    with _copy(begin) as folder:
        outcome = injector.traced(partial(scene.write, folder, 1), folder)
        assert outcome.status == 0, f"{scene.name}: {outcome.said}"
        return outcome.points, contents(scene, begin), contents(scene, folder)


def _written(scene: Scene, folder: Path, version: int) -> None:
    outcome = injector.run(partial(scene.write, folder, version))
    assert outcome.status == 0, f"{scene.name} ends with {outcome.status}: {outcome.said}"


@contextmanager
def _copy(begin: Path) -> Iterator[Path]:
    """Yield a copy of a folder."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(shutil.copytree(begin, Path(name, "files")))


def _spread(items: Sequence, most: int | None) -> list:
    """Return at most so many items, evenly spread, the first and the last among them."""
    if most is None or len(items) <= most:
        return list(items)
    places = (round(number * (len(items) - 1) / max(most - 1, 1)) for number in range(most))
    return [items[place] for place, _ in itertools.groupby(places)]
