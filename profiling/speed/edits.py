"""What does an edit of the package recompile? For one value of each of some modules, before the first training step.

    python -m profiling.speed.edits

Works on a copy of the package with all kernels of training in its cache. Each module gets a comment at its end, and
then another value, which changes every kernel that reaches it by calls.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import tyro

import nclone_env
from nclone_env.jit.folder import CODE_SUFFIX, PART_SUFFIX
from profiling.measure import describe

EDITS = {
    "game": ("FALL_GRAVITY = 0.0666", "FALL_GRAVITY = 0.0667"),
    "config": ("Within(1, 64)", "Within(1, 63)"),
    "env/compiled/step": ("+= 1", "+= 1 + 0"),
    "level/routes/distance": ("_REACH = 2 ", "_REACH = 3 "),
    "obs/game_state": ("_TOP_SPEED = 8.0", "_TOP_SPEED = 9.0"),
    "obs/locals": ("_AS_FAR = 128.0", "_AS_FAR = 129.0"),
    "plan/archive": ("_DRAWN = 100", "_DRAWN = 101"),
    "render/compose": ("_PHASE_BITS = 2 ", "_PHASE_BITS = 3 "),
    "render/looks": ("circle(1.6)", "circle(1.7)"),
    "sim/entities/drone": ("_SIGHT = 12.0", "_SIGHT = 12.5"),
    "sim/entities/fixed": ("_BOOST = 2.0", "_BOOST = 2.5"),
    "sim/ninja_move": ("_LEAST_CRUSH = 0.05", "_LEAST_CRUSH = 0.06"),
    "train/policies/mlp_kernels": ("+= 1.0 if", "+= 2.0 if"),
    "train/reports/report": ('", "', '"; "'),
}
"""A text of each module, and what replaces its first occurrence."""


class Cost(NamedTuple):
    """What the kernels of training cost a process."""

    seconds: float
    """Of the processor."""
    kernels: int
    """Compiled for Python."""
    parts: int
    """Typed and lowered, as parts of them."""


def warm_up(folder: Path) -> Cost:
    """Compile what training needs, in one process, with the package and the cache in a folder."""
    before = {path: path.stat().st_mtime_ns for path in (folder / "cache").glob("*/*")}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": str(folder), "NCLONE_ENV_CACHE_DIR": str(folder / "cache")}
    program = "from nclone_env.cli.warmup import tasks\nfor task in tasks(['train']): task.run()"
    subprocess.run([sys.executable, "-c", program], env=environment | {"NCLONE_ENV_QUIET": "1"}, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    written = [path.suffix for path in (folder / "cache").glob("*/*") if path not in before]
    seconds = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return Cost(seconds, written.count(CODE_SUFFIX), written.count(PART_SUFFIX))


def after_edit(folder: Path, module: str, edit: Callable[[str], str]) -> Cost:
    """Return the cost after an edit of a module, beyond what is in the cache; both are as before afterwards."""
    path, cache, kept = folder / "nclone_env" / f"{module}.py", folder / "cache", folder / "kept"
    source = path.read_text()
    shutil.copytree(cache, kept)
    try:
        path.write_text(edit(source))
        return warm_up(folder)
    finally:
        path.write_text(source)
        shutil.rmtree(cache)
        kept.rename(cache)


def main() -> None:
    """Print the table."""
    print(describe())
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(Path(nclone_env.__file__).parent, folder / "nclone_env", ignore=shutil.ignore_patterns("_code"))
        shutil.copytree(Path(nclone_env.__file__).parents[1] / "levels", folder / "levels")
        print("| Edited | value: processor, s | kernels | parts | comment: processor, s | compiled |")
        print("|---|---:|---:|---:|---:|---:|")
        for row in ("nothing, empty cache", "nothing"):
            print(f"| {row} | {format_cost(warm_up(folder))} | | |")
        comments, constants = [], []
        for module, (old, new) in EDITS.items():
            comments.append(after_edit(folder, module, lambda source: f"{source}# a comment\n"))
            constants.append(after_edit(folder, module, partial(_replaced, old, new)))
            compiled = comments[-1].kernels + comments[-1].parts
            print(
                f"| `{module}` | {format_cost(constants[-1])} | {comments[-1].seconds:.1f} | {compiled} |", flush=True
            )
        print(f"| median | {median(constants):.1f} | | | {median(comments):.1f} | |")


def _replaced(old: str, new: str, source: str) -> str:
    if old not in source:
        raise ValueError(f"edits: expected {old!r} in the module, found none; name another text of it")
    return source.replace(old, new, 1)


def median(costs: list[Cost]) -> float:
    """Return the median of the seconds."""
    return statistics.median(cost.seconds for cost in costs)


def format_cost(cost: Cost) -> str:
    """Return the cells of a row."""
    return f"{cost.seconds:.1f} | {cost.kernels} | {cost.parts}"


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
