"""CPU seconds of programs under ``profile script``, against the same programs alone, and the answers."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import tyro

from profiling.checks.wheel_test import examples
from profiling.measure import describe

TRAINING = """
from nclone_env import EnvironmentConfig, TrainConfig, train

if __name__ == "__main__":
    environment = EnvironmentConfig(levels=("first-steps",), observations=("game_state",))
    train(TrainConfig(environment=environment, total_timesteps={steps}, output="runs", num_threads=1))
"""
CARTPOLE = """
import gymnasium

env = gymnasium.make("CartPole-v1")
env.reset(seed=0)
for step in range({steps}):
    if any(env.step(step % 2)[2:4]):
        env.reset()
"""
PROFILE = ("-m", "nclone_env", "profile", "script")
WAYS = {"alone": (), "--no-trace": (*PROFILE, "--no-trace"), "traced": PROFILE}


def main(updates: int = 100, cartpole: int = 6_000_000, rounds: int = 1) -> None:
    """Print a row per program and way, each in a fresh process.

    Args:
        updates: of 32,768 steps, of the training run.
        cartpole: steps of Gymnasium's environment.
        rounds: so many times, in turns.
    """
    print(describe())
    programs = {
        "README, first example": examples()[0],
        "training": TRAINING.format(steps=32768 * updates),
        "CartPole": CARTPOLE.format(steps=cartpole),
    }
    for name, code in programs.items():
        for _ in range(rounds):
            alone = 0.0
            for way, words in WAYS.items():
                seconds, said = run(code, words)
                alone = alone or seconds
                print(f"{name:<22} {way:<11} {seconds:6.1f} CPU s  {seconds / alone:4.1f} x  {said}", flush=True)


def run(code: str, words: tuple[str, ...]) -> tuple[float, str]:
    """Return the CPU seconds of a program, and what the profiler says of growth."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(code)
        before, environment = _seconds(), {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
        done = subprocess.run(
            [sys.executable, *words, str(script)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return _seconds() - before, " ".join(line.strip() for line in done.stdout.splitlines() if "growth" in line)


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    tyro.cli(main)
