"""How long do first calls take on a machine that has compiled nothing, and what do they compile?

    python -m profiling.checks.first_start /path/to/venv/bin/python ...

Each interpreter has the package installed, best from a wheel with machine code. Every row is a fresh process with an
empty environment and an empty cache: the first example of the README up to its first step, and commands. It has the
wall time, the processor time, the kernels that were compiled, and the first line on stderr.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro
from tyro.conf import Positional

from profiling.checks.wheel_test import examples

COMMAND = "import sys; from nclone_env.cli.app import main; sys.exit(main())"
WINDOW_SECONDS = 10
"""Windows are closed by Ctrl-C after this time."""
TRAIN = ("train", "--levels", "first-steps", "--num-envs", "64", "--num-steps", "32", "--total-timesteps", "2048")
SOLVE = ("solve", "first-steps/01-walk", "--frames", "300000", "--output", "solved")
ROWS: dict[str, tuple[str, ...]] = {
    "run": ("run", "--headless", "--steps", "100"),
    "solve": SOLVE,
    "replay verify": ("replay", "verify", "solved/000-first-steps-01-walk.replay"),
    "levels generate": ("levels", "generate", "--count", "1", "--output", "generated"),
    "train, one update": (*TRAIN, "--episodes", "1", "--no-video", "--name", "run"),
    "evaluate": ("evaluate", "runs/run", "--episodes", "2", "--no-video"),
    "play (window)": ("play", "first-steps/01-walk"),
    "watch (window)": ("watch", "runs/run"),
}


def first_step() -> str:
    """Return the first example of the README up to its first step, which it prints."""
    before, _, _ = examples()[0].partition("for ")
    return f"{before}print(env.step(env.action_space.sample())[1:])\n"


def start(arguments: Sequence[str], folder: Path, closed: bool) -> str:
    """Run a process with nothing in its environment and an empty cache; return the cells of its row.

    Args:
        arguments: interpreter and its arguments.
        folder: where it runs.
        closed: whether it opens a window, to be closed.
    """
    with TemporaryDirectory() as home:
        environment = {"PATH": "/usr/bin:/bin", "HOME": home, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        if closed:
            with suppress(subprocess.TimeoutExpired):
                process.wait(WINDOW_SECONDS)
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        compiled = len(list(Path(home).rglob("*.nbc")))
    line = next(iter(errors.strip().splitlines()), "")
    return f"{'-' if closed else f'{wall:.1f}'} | {processor:.1f} | {compiled} | {process.returncode} | {line[:90]} |"


def main(interpreters: Positional[tuple[str, ...]] = (sys.executable,)) -> None:
    """Print the tables.

    Args:
        interpreters: paths of interpreters with the package.
    """
    for interpreter in interpreters:
        print(f"{interpreter}\n| | wall, s | processor, s | compiled | exit | stderr |\n|---|---:|---:|---:|---:|---|")
        with TemporaryDirectory() as name:
            for turn in ("first step", "first step again"):
                print(f"| {turn} | {start([interpreter, '-c', first_step()], Path(name), False)}", flush=True)
            for row, arguments in ROWS.items():
                command = [interpreter, "-c", COMMAND, *arguments]
                print(f"| {row} | {start(command, Path(name), 'window' in row)}", flush=True)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    tyro.cli(main, description=__doc__)
