"""Time from Ctrl-C to the end of a command, on a level with the most entities of every kind.

    python -m profiling.speed.interruption [--seconds 3] [--names step simulate ...]

Each command runs in a process of its own and gets SIGINT after some seconds. `profiling.speed.slow_levels` makes the
level, which plays some 80 frames a second. `train` finishes its update, saves and ends; a second Ctrl-C ends at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from nclone_env.level.formats.map_bytes import write_map
from profiling.speed.slow_levels import everything

STEP = """
import numpy as np, nclone_env
envs = nclone_env.NPlusPlusVectorEnv(levels=({level!r},), num_envs=4096, num_threads={threads}, frame_skip={skip})
envs.reset(seed=0)
print("ready", flush=True)
envs.step(np.zeros(4096, np.int64))
"""
SIMULATE = """
import nclone_env
print("ready", flush=True)
nclone_env.simulate({level!r}, bytes(1_000_000))
"""
SOLVE = """
import sys
from nclone_env.cli.app import main
print("ready", flush=True)
sys.exit(main(["solve", {level!r}, "--seconds", "600", "--output", {folder!r}, "--force"]))
"""
TRAIN = """
import sys
from nclone_env.cli.app import main
print("ready", flush=True)
small = ["--num-envs", "16", "--num-steps", "16", "--max-frames", "400"]
sys.exit(main(["train", "--levels", {level!r}, "--output", {folder!r}, *small]))
"""
COMMANDS = {
    "step, 1 thread": STEP,
    "step, 2 threads": STEP.replace("{threads}", "2"),
    "step, frame_skip 60": STEP.replace("{skip}", "60"),
    "simulate": SIMULATE,
    "solve": SOLVE,
    "train": TRAIN,
}


def seconds_to_end(code: str, seconds: float) -> tuple[float, int]:
    """Run code until it is ready and some seconds more; return the seconds from SIGINT to its end, and its status."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    )
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        assert process.poll() is None, "the command ended before it was ready"
    time.sleep(seconds)
    assert process.poll() is None, "the command ended before it was interrupted"
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate()
    return time.perf_counter() - began, process.returncode


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of work before Ctrl-C")
    parser.add_argument("--names", nargs="+", default=list(COMMANDS), choices=list(COMMANDS), help="commands")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        level = Path(folder) / "slow.map"
        level.write_bytes(write_map(everything(np.random.default_rng(0))))
        for name in arguments.names:
            code = COMMANDS[name].format(level=str(level), folder=folder, threads=1, skip=4)
            seconds, status = seconds_to_end(code, arguments.seconds)
            print(f"{name:<22}{seconds:6.2f} s   exit status {status}", flush=True)


if __name__ == "__main__":
    main()
