"""What does an edit of the package recompile? For each of twenty modules, before the first training step after an edit.

    python -m profiling.speed.edits

Works on a copy of the package with all kernels of training in its cache. Each module gets a comment at its end, and
then a new constant, which may change every kernel that can reach it.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import tyro

import nclone_env
from nclone_env.jit.folder import CODE_SUFFIX, PART_SUFFIX
from profiling.measure import describe

MODULES = (
    "game",
    "config",
    "cli/train",
    "env/compiled/step",
    "obs/rows",
    "env/vector",
    "level/routes/distance",
    "obs/game_state",
    "obs/locals",
    "plan/archive",
    "render/compose",
    "replay/video",
    "sim/entities/drone",
    "sim/entities/laser/turret",
    "sim/ninja_move",
    "sim/query",
    "sim/frame",
    "train/learn/adam",
    "train/policies/mlp_kernels",
    "train/reports/report",
)


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


def after_edit(folder: Path, module: str, text: str) -> Cost:
    """Return the cost after a line is added to a module, beyond what is in the cache; both are as before afterwards."""
    path, cache, kept = folder / "nclone_env" / f"{module}.py", folder / "cache", folder / "kept"
    source = path.read_text()
    shutil.copytree(cache, kept)
    try:
        path.write_text(f"{source}{text}\n")
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
        print("| Edited | constant: processor, s | kernels | parts | comment: processor, s | compiled |")
        print("|---|---:|---:|---:|---:|---:|")
        for row in ("nothing, empty cache", "nothing"):
            print(f"| {row} | {format_cost(warm_up(folder))} | | |")
        comments, constants = [], []
        for module in MODULES:
            comments.append(after_edit(folder, module, "# a comment"))
            constants.append(after_edit(folder, module, "EDITED = 1"))
            compiled = comments[-1].kernels + comments[-1].parts
            print(
                f"| `{module}` | {format_cost(constants[-1])} | {comments[-1].seconds:.1f} | {compiled} |", flush=True
            )
        print(f"| median | {median(constants):.1f} | | | {median(comments):.1f} | |")


def median(costs: list[Cost]) -> float:
    """Return the median of the seconds."""
    return statistics.median(cost.seconds for cost in costs)


def format_cost(cost: Cost) -> str:
    """Return the cells of a row."""
    return f"{cost.seconds:.1f} | {cost.kernels} | {cost.parts}"


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
