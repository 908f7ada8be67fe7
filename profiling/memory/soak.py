"""Growth of memory over a very long run, with a log that the next call continues.

    python -m profiling.memory.soak state --steps 1e9 --log soak-state.jsonl
    python -m profiling.memory.soak pictures --steps 1e7
    python -m profiling.memory.soak training --steps 3e8
    python -m profiling.memory.soak updates --steps 768000

`state` steps 4,096 environments that see `game_state`, `pictures` 64 that see `player_frame`, with random actions;
`training` trains a policy with the defaults, `updates` one with 128 steps an update, so that what grows with the
number of updates shows. A row of the log has the steps so far, the seconds, the process and its resident memory. The
first tenth of a process's rows is left out of the growth: it touches pages for the first time.
Steps of earlier calls with the same log count, so a soak can be split; the growth stated is the largest of a process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nclone_env
from nclone_env.memory.measure.process import resident_bytes

LEVELS = ("first-steps", "jumps", "hazards")
_SECONDS_BETWEEN_ROWS = 2.0


class Log:
    """Rows of a soak, kept in a file.

    Args:
        path: JSON lines; those of earlier calls are continued.
        steps: steps to make in all.
    """

    def __init__(self, path: Path, steps: int):
        self.rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._path, self._target = path, steps
        self._before = self._steps = self.rows[-1]["steps"] if self.rows else 0
        self._began = self._noted = time.perf_counter()

    @property
    def done(self) -> bool:
        """Whether all steps are made."""
        return self._steps >= self._target

    def add(self, steps: int) -> None:
        """Count steps; add a row every few seconds."""
        self._steps += steps
        now = time.perf_counter()
        if now - self._noted > _SECONDS_BETWEEN_ROWS or self.done:
            self._noted = now
            row = {
                "steps": self._steps,
                "seconds": now - self._began,
                "process": os.getpid(),
                "rss": resident_bytes().rss,
            }
            self.rows.append(row)
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    def summary(self) -> str:
        """Return steps, rows and the largest growth of a process."""
        growths = []
        for _, group in itertools.groupby(self.rows, key=lambda row: row["process"]):
            resident = [row["rss"] for row in group]
            later = resident[len(resident) // 10 :]
            growths.append(max(later) - min(later))
        speed = (self._steps - self._before) / (time.perf_counter() - self._began)
        return (
            f"{self._steps:,} steps in {len(growths)} processes, {len(self.rows)} rows: the resident memory of a "
            f"process varies by at most {max(growths) / 1024:,.0f} KiB ({speed:,.0f} steps/s)"
        )


def step_environments(observation: str, num_envs: int) -> Callable[[Log], None]:
    """Return a function that steps environments until the log is complete."""

    def run(log: Log) -> None:
        config = nclone_env.EnvironmentConfig.for_parallel_training(levels=LEVELS, observations=(observation,))
        envs = nclone_env.create_vector_environment(config, num_envs=num_envs)
        observations, _ = envs.reset(seed=0)
        out = {name: np.empty_like(array) for name, array in observations.items()}
        out["rewards"] = np.empty(num_envs)
        actions = np.random.default_rng(0).integers(0, 6, (997, num_envs))
        while not log.done:
            for row in actions:
                envs.step(row, out=out)
                assert np.isfinite(out["rewards"]).all()
                log.add(num_envs)
                if log.done:
                    break
        envs.close()

    return run


def train_policy(**fields: int) -> Callable[[Log], None]:
    """Return a function that trains a policy, with these fields of the configuration, until the log is complete."""

    def run(log: Log) -> None:
        from nclone_env.train import Hooks, TrainConfig, train

        steps = [0]

        def note(row: dict[str, float]) -> None:
            log.add(int(row["timesteps"]) - steps[0])
            steps[0] = int(row["timesteps"])

        with tempfile.TemporaryDirectory() as folder:
            config = TrainConfig.of(levels=LEVELS, output=Path(folder), total_timesteps=10**10, **fields)
            train(config, Hooks(on_update=note, stop=lambda: log.done))

    return run


KINDS: dict[str, Callable[[Log], None]] = {
    "state": step_environments("game_state", 4096),
    "pictures": step_environments("player_frame", 64),
    "training": train_policy(checkpoint_interval=200),
    "updates": train_policy(num_envs=16, num_steps=8, num_minibatches=1, hidden_size=16, checkpoint_interval=100),
}


def main() -> None:
    """Go on with the soak and print its summary."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--steps", type=float, required=True, help="steps in all, those of the log included")
    parser.add_argument("--log", type=Path, help="file of the rows; soak-KIND.jsonl in the current folder by default")
    arguments = parser.parse_args()
    log = Log(arguments.log or Path(f"soak-{arguments.kind}.jsonl"), int(arguments.steps))
    try:
        KINDS[arguments.kind](log)
    finally:
        if log.rows:
            print(log.summary())


if __name__ == "__main__":
    main()
