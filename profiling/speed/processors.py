"""Is code for a baseline of the architecture as fast as code for exactly this processor, and are results the same bits?

    python -m profiling.speed.processors [--names host x86-64-v3 x86-64-v2]

Fresh processes take turns, one for each name, and do the same work on one thread. A row has the median of their
processor time relative to the first name, turn by turn, and whether results are those of the first name: simulator and
environments must agree everywhere, training where the matrix library and fused multiply-adds are the same. The kernels
are compiled before the first turn: a minute for each name.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tyro

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv, simulate
from nclone_env.level.build import everything
from profiling.measure import compiled_for, describe, timed

NAMES = ("host", "x86-64-v3", "x86-64-v2")
LEVELS = ("first-steps", "jumps", "hazards")


def play_level() -> bytes:
    """Simulate a level with every kind of entity and random inputs; return the path."""
    inputs = np.repeat(np.random.default_rng(0).integers(0, 8, 50_000, dtype=np.uint8), 4).tobytes()
    path = simulate(everything(), inputs)
    return path.x.tobytes() + path.y.tobytes()


def step_state() -> bytes:
    """Step environments that observe the state."""
    return step(EnvironmentConfig.for_parallel_training(levels=LEVELS), 256, 2_000)


def step_frames() -> bytes:
    """Step environments with the default observations."""
    return step(EnvironmentConfig(levels=LEVELS), 64, 500)


def step(config: EnvironmentConfig, num_envs: int, steps: int) -> bytes:
    """Make random steps; return a digest of everything that is observed."""
    envs, digest = NPlusPlusVectorEnv(config, num_envs, num_threads=1), hashlib.sha256()
    envs.reset(seed=0)
    for actions in np.random.default_rng(1).integers(0, 6, (steps, num_envs)):
        observations, rewards, *_ = envs.step(actions)
    for array in (*observations.values(), rewards):
        digest.update(np.ascontiguousarray(array))
    envs.close()
    return digest.digest()


def train_briefly() -> bytes:
    """Train a little; return the parameters."""
    from nclone_env.train import TrainConfig, train

    with TemporaryDirectory() as folder:
        config = TrainConfig.of(
            num_envs=256, num_steps=64, total_timesteps=256 * 64 * 6, num_threads=1, levels=LEVELS, output=Path(folder)
        )
        policy = train(config).policy
    return b"".join(value.numpy().tobytes() for value in policy.state_dict().values())


WORK: dict[str, Callable[[], bytes]] = {
    "simulator": play_level,
    "environment, state": step_state,
    "environment, frames + state": step_frames,
    "training": train_briefly,
}


def measure() -> None:
    """Print the processor seconds and the digest of each work, as JSON; the shortest of three times after the first."""
    result = {}
    for name, work in WORK.items():
        digest = hashlib.sha256(work()).hexdigest()[:16]
        result[name] = (min(timed(work, time.process_time)[1] for _ in range(3)), digest)
    print(json.dumps(result))


def measured(name: str) -> dict[str, tuple[float, str]]:
    """Measure in a fresh process whose kernels are compiled for a processor."""
    variables = {**compiled_for(name), "NCLONE_ENV_QUIET": "1"}
    command = [sys.executable, "-c", "from profiling.speed.processors import measure; measure()"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(names: tuple[str, ...] = NAMES, turns: int = 5) -> None:
    """Print the table.

    Args:
        names: processors, as LLVM calls them; ``host`` is this one.
        turns: processes for each.
    """
    print(describe())
    for name in names:
        measured(name)
    rounds = [{name: measured(name) for name in names} for _ in range(turns)]
    for work in WORK:
        cells = [f"{work:28}"]
        for name in names:
            ratio = np.median([each[name][work][0] / each[names[0]][work][0] for each in rounds])
            same = all(each[name][work][1] == rounds[0][names[0]][work][1] for each in rounds)
            cells.append(f"{name} {ratio:.3f} {'equal' if same else 'DIFFERENT'}")
        print("  ".join(cells), flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
