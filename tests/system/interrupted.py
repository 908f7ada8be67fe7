"""Runs of ``nclone-env train`` in child processes that signals interrupt; prints as JSON what came of them.

A child sends the signals to itself at the n-th time that it comes to a point of the program, so that every point can be
hit, half-written files too. Children are forked: they inherit the compiled kernels. The picture of the learning curve
is left empty: it is drawn after training. The clock of each child is 2 seconds ahead of the one before: a resumed run
waits for a second in which no TensorBoard file was begun.
"""

import itertools
import json
import os
import random
import shlex
import signal
import sys
import time
from pathlib import Path

from nclone_env.cli.app import main
from nclone_env.train import loop
from nclone_env.train.policies import checkpoint
from nclone_env.train.reports import plots
from nclone_env.train.runs.curve import LearningCurve

from ..train.runs import contents, shown

POINTS = ("collect", "update", "updated", "half written", "written", "renamed", "curve")
UPDATES = 12
ROUNDS = 2  # times that each point is hit in a run, and runs
LEVELS = ("first-steps/01-walk", "first-steps/02-step")
STARTED = itertools.count(1)


class Trap:
    """Sends signals to this process when it comes to a point for the n-th time."""

    def __init__(self, point, count, signals):
        self.point, self.count, self.signals = point, count, signals

    def at(self, point):
        """Return whether this is the time; the caller then calls :meth:`spring`."""
        self.count -= point == self.point
        return point == self.point and self.count == 0

    def spring(self):
        for number in self.signals:
            os.kill(os.getpid(), number)

    def __call__(self, point):
        if self.at(point):
            self.spring()


def set_trap(trap):
    """Place the points in this process."""
    collect, update, write = loop.collect_rollout, loop.update_policy, LearningCurve.write_csv

    def collect_rollout(run):
        trap("collect")
        collect(run)

    def update_policy(run):
        trap("update")
        statistics = update(run)
        trap("updated")
        return statistics

    def write_csv(self):
        trap("curve")
        return write(self)

    def fill_file(path, fill, real=checkpoint.fill_file):
        def filling(temporary):
            fill(temporary)
            if trap.at("half written"):
                os.truncate(temporary, temporary.stat().st_size // 2)
                trap.spring()
            trap("written")

        real(path, filling)
        trap("renamed")

    loop.collect_rollout, loop.update_policy, LearningCurve.write_csv = collect_rollout, update_policy, write_csv
    checkpoint.fill_file = fill_file


def options(output, name, seed=0, threads=1):
    """Return the command of a run."""
    return [
        *("train", "--levels", *LEVELS, "--num-envs", "32", "--num-steps", "16", "--hidden-size", "16"),
        *("--total-timesteps", str(32 * 16 * UPDATES), "--checkpoint-interval", "2"),
        *("--max-frames", "120", "--num-threads", str(threads), "--seed", str(seed)),
        *("--output", str(output), "--name", name, "--episodes", "1", "--no-video"),
    ]


def child(arguments, log, trap=None, seconds=None):
    """Run the command in a child process, with its output in a file; return its exit code.

    Args:
        arguments: of the program.
        log: file for its output.
        trap: sends signals from inside the process.
        seconds: after which the process is killed, wherever it is.
    """
    ahead, now = 2 * next(STARTED), time.time
    process = os.fork()
    if process == 0:
        time.time = lambda: now() + ahead
        with log.open("w") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
            sys.stdout, sys.stderr = (open(number, "w", closefd=False, buffering=1) for number in (1, 2))  # noqa: SIM115
            if trap is not None:
                set_trap(trap)
            code = 1
            try:
                code = main(arguments)
            finally:
                os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)  # it is not reaped yet, so the number is still its own
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed_run(output, seed):
    """Kill a run at every point, in random order, and at random times; resume it until it ends.

    Returns:
        The points, the number of half-written checkpoints, and what the run leaves behind.
    """
    dice, path, kills, leftovers = random.Random(seed), output / f"killed-{seed}", [], 0
    arguments = options(output, path.name, threads=1 + seed % 2)
    for point in dice.sample(POINTS * ROUNDS, len(POINTS) * ROUNDS) + ["any time"] * ROUNDS:
        if point == "any time":
            code = child(arguments, output / "log", seconds=dice.uniform(0, 1))
        else:
            code = child(arguments, output / "log", Trap(point, dice.randint(1, 3), [signal.SIGKILL]))
        if code != 0:
            assert code == -signal.SIGKILL, (output / "log").read_text()
            kills.append(point)
            leftovers += len(list(path.glob(".*.pt")))
        if (path / "checkpoint.pt").exists():
            arguments = ["train", "--resume", str(path), "--episodes", "1", "--no-video"]
    code = child(arguments, output / "log")
    assert code == 0, (output / "log").read_text()
    return {"kills": kills, "leftovers": leftovers, **state(path)}


def stopped_run(output, name, signals):
    """Send signals to a run in its third update; return its exit code and what it says, then resume it as it says."""
    path, log = output / name, output / f"{name}.log"
    code = child(options(output, name), log, Trap("update", 3, signals))
    said = log.read_text()
    updates = contents(path / "checkpoint.pt")["counters"]["updates"]
    commands = [line.strip() for line in said.splitlines() if "train --resume" in line]
    again = shlex.split(commands[0]) if commands else ["train", "--resume", str(path), "--episodes", "1", "--no-video"]
    code_after = child(again[again.index("train") :], log)
    return {"code": code, "said": said, "updates": updates, "code_after": code_after, **state(path)}


def state(path):
    """Return what a run leaves behind."""
    return {
        "files": sorted(entry.name for entry in path.iterdir()),
        "latest": contents(path / "checkpoint.pt"),
        "best": contents(path / "best.pt"),
        "csv": len((path / "learning_curve.csv").read_text().splitlines()),
        "shown": shown(path),
    }


def run(output):
    assert child(options(output, "reference"), output / "log") == 0, (output / "log").read_text()
    assert child(options(output, "other", seed=1), output / "log") == 0
    return {
        "reference": state(output / "reference"),
        "other": state(output / "other"),
        "killed": [killed_run(output, seed) for seed in range(1, ROUNDS + 1)],
        "stopped": {
            "SIGINT": stopped_run(output, "interrupted", [signal.SIGINT]),
            "SIGTERM": stopped_run(output, "terminated", [signal.SIGTERM]),
            "both": stopped_run(output, "twice", [signal.SIGTERM, signal.SIGINT]),
        },
    }


if __name__ == "__main__":
    given = Path(sys.argv[1])
    os.fsync = lambda descriptor: None  # what was written survives the process, if not a power failure
    plots._png = lambda figure: b""
    main(options(given, "warm"))  # loads the kernels that the children inherit
    sys.stdout.flush()
    (given / "results.json").write_text(json.dumps(run(given)))
