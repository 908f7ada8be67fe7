"""Train the PPO of ``ppo.py`` on the built-in levels with several seeds, and write a submission to the benchmark.

python examples/ppo_baseline.py --seeds 0 1 2
"""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tyro
from ppo import Args, train
from torch import nn

from nclone_env import EnvironmentConfig
from nclone_env.benchmark import Run, Submission, evaluate, load_track, verify


@dataclass
class Baseline:
    """What to train."""

    steps: int = 4_000_000
    seeds: tuple[int, ...] = (0,)
    output: Path = Path("ppo.zip")


def play(baseline: Baseline, seed: int) -> Run:
    """Train with one seed, and play the track."""
    args = Args(levels=("first-steps", "jumps", "hazards"), seed=seed)
    args.total_timesteps = baseline.steps - baseline.steps % (args.num_envs * args.num_steps)
    began = time.process_time()
    agent, _ = train(args)
    claimed = {"steps": args.total_timesteps, "seconds": round(time.process_time() - began, 1)}
    policy = nn.Sequential(agent.trunk, agent.actor)
    environment = EnvironmentConfig.for_parallel_training()
    return evaluate(policy, load_track("Builtin-v1"), seed=seed, environment=environment).claiming(claimed)


def main(baseline: Baseline) -> None:
    """Write the submission of all seeds."""
    runs = tuple(play(baseline, seed) for seed in baseline.seeds)
    command = shlex.join(["python", *sys.argv])
    Submission("Builtin-v1", "state", "4m", "PPO in one file (CleanRL style)", runs, command).save(baseline.output)
    print(verify(baseline.output))


if __name__ == "__main__":
    main(tyro.cli(Baseline))
