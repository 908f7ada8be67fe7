"""Time from Ctrl-C to the end of a process, on a level with the most entities of every kind and a ninja that lives.

    python -m profiling.speed.interruption [--seconds 3] [--names step simulate ...]

Each call or command runs in a process of its own and gets SIGINT after some seconds. `profiling.speed.slow_levels`
makes the level, which plays some 100 frames a second. `train` finishes its update, saves and ends, so it is small here;
a second Ctrl-C ends it at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nclone_env.config import OBSERVATION_NAMES
from nclone_env.level.formats.map_bytes import write_map
from profiling.speed.slow_levels import everything

LEVEL, FOLDER = "LEVEL", "FOLDER"
BEGIN = "import sys, warnings, numpy as np, nclone_env\nwarnings.simplefilter('ignore')\n"
STEP = """
options = dict(num_threads={threads}, frame_skip={skip}, observations={observations!r}, observation={observation!r})
envs = nclone_env.NPlusPlusVectorEnv(levels=(LEVEL,), num_envs={num_envs}, **options)
print("ready", flush=True)
envs.reset(seed=0)
while True:
    envs.step(np.zeros({num_envs}, np.int64))
"""
COMMAND = """
from nclone_env.cli.app import main
print("ready", flush=True)
while True:
    status = main({words!r})
    if status not in (0, 1):
        sys.exit(status)
"""
SIMULATE = """
print("ready", flush=True)
nclone_env.simulate(LEVEL, bytes(200_000))
"""


def step(num_envs: int = 4096, threads: int = 1, skip: int = 4, observations: Sequence[str] = (), **observation) -> str:
    """Return the code that resets environments and steps them without end."""
    shown = tuple(observations) or ("game_state",)
    fields = {"num_envs": num_envs, "threads": threads, "skip": skip, "observations": shown}
    return STEP.format(**fields, observation=observation)


def command(*words: str) -> str:
    """Return the code that runs a command until it is interrupted."""
    return COMMAND.format(words=[*words])


REPLAY = f"{FOLDER}/b.replay"
TWICE = "train, a second Ctrl-C"
SMALL = ("--num-envs", "16", "--num-steps", "16", "--max-frames", "400")
CASES = {
    "step, 1 thread": step(),
    "step, 2 threads": step(threads=2),
    "step, frame_skip 60": step(skip=60),
    "action_outcomes, 600 frames": step(1, observations=("action_outcomes",), outcome_frames=600),
    **{name: step(16, observations=(name,)) for name in OBSERVATION_NAMES},
    "simulate": SIMULATE,
    "levels list": command("levels", "list", LEVEL),
    "levels validate": command("levels", "validate", LEVEL),
    "levels convert": command("levels", "convert", LEVEL, f"{FOLDER}/a.map", "--force"),
    "levels show": command("levels", "show", LEVEL, "--output", f"{FOLDER}/a.png", "--force"),
    "levels generate": command("levels", "generate", "--count", "100", "--output", f"{FOLDER}/p.txt", "--force"),
    "replay record": command(
        "replay", "record", LEVEL, "--inputs", "1000R", "--output", f"{FOLDER}/a.replay", "--force"
    ),
    "watch --output": command("watch", f"{FOLDER}/long.replay", "--output", f"{FOLDER}/a.mp4", "--force"),
    "replay verify": command("replay", "verify", f"{FOLDER}/long.replay"),
    "gallery": command("gallery", LEVEL, "--recordings", f"{FOLDER}/long.replay", "--output", f"{FOLDER}/g", "--force"),
    "solve": command("solve", LEVEL, "--seconds", "600", "--output", f"{FOLDER}/s", "--force"),
    "profile": command("profile", "--levels", LEVEL, "--num-envs", "64", "--output-dir", f"{FOLDER}/m"),
    "train": command("train", "--levels", LEVEL, "--output", FOLDER, "--name", "once", *SMALL),
    TWICE: command("train", "--levels", LEVEL, "--output", FOLDER, "--name", "twice", *SMALL),
}


def seconds_to_end(code: str, seconds: float, before: int = 0) -> tuple[float, int]:
    """Run code until it is ready and some seconds more; return the seconds from SIGINT to its end, and its status.

    So many SIGINT come before it, with half a second between two.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
    )
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        assert process.poll() is None, "the process ended before it was ready"
    time.sleep(seconds)
    for _ in range(before):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert process.poll() is None, "the process ended before it was interrupted"
    began = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate()
    return time.perf_counter() - began, process.returncode


def prepare(folder: Path) -> Path:
    """Write the level, and a recording of 1,000 frames on it; return the level."""
    from nclone_env.level.load import load_level
    from nclone_env.replay.recording import Recording

    level = folder / "slow.map"
    level.write_bytes(write_map(everything(np.random.default_rng(0))))
    Recording.of(load_level(level), np.zeros(1000, np.uint8), {}, 0).save(folder / "long.replay")
    return level


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of work before Ctrl-C")
    parser.add_argument("--names", nargs="+", default=list(CASES), choices=list(CASES), help="calls and commands")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if this process ignores it, as jobs do
    with tempfile.TemporaryDirectory() as folder:
        level = prepare(Path(folder))
        for name in arguments.names:
            code = BEGIN + CASES[name].replace(LEVEL, repr(str(level)) if "main(" not in CASES[name] else str(level))
            seconds, status = seconds_to_end(code.replace(FOLDER, folder), arguments.seconds, before=name == TWICE)
            print(f"{name:<28}{seconds:6.2f} s   exit status {status}", flush=True)


if __name__ == "__main__":
    main()
