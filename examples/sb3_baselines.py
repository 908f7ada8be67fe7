"""Train algorithms of Stable-Baselines3 on a track with several seeds, and write a submission to the benchmark.

python examples/sb3_baselines.py --algorithm qr-dqn --steps 500000 --output qr-dqn.zip
"""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from sb3_contrib import QRDQN, RecurrentPPO
from stable_baselines3 import DQN, PPO

from nclone_env import EnvironmentConfig
from nclone_env.benchmark import Run, Submission, evaluate, load_track, verify
from nclone_env.train import NPlusPlusVecEnv

ENVS = 64
ROLLOUTS = {"n_steps": 128, "batch_size": 2048, "n_epochs": 4, "learning_rate": 1e-3, "ent_coef": 0.02, "gamma": 0.995}
REPLAY = {
    "learning_rate": 5e-4,
    "batch_size": 512,
    "buffer_size": 500_000,
    "learning_starts": 20_000,
    "train_freq": 4,
    "gradient_steps": 8,
    "target_update_interval": 10_000,
    "exploration_fraction": 0.3,
    "exploration_final_eps": 0.02,
    "gamma": 0.995,
}
ALGORITHMS: dict[str, tuple[str, Any, str, dict[str, Any]]] = {
    "ppo": ("PPO (Stable-Baselines3)", PPO, "MultiInputPolicy", ROLLOUTS),
    "dqn": ("DQN (Stable-Baselines3)", DQN, "MultiInputPolicy", REPLAY),
    "qr-dqn": (
        "QR-DQN (sb3-contrib)",
        QRDQN,
        "MultiInputPolicy",
        {**REPLAY, "policy_kwargs": {"n_quantiles": 32}},
    ),
    "recurrent-ppo": (
        "recurrent PPO (sb3-contrib)",
        RecurrentPPO,
        "MultiInputLstmPolicy",
        {**ROLLOUTS, "policy_kwargs": {"lstm_hidden_size": 64}},
    ),
}
"""Title, class, policy and settings of each."""


@dataclass
class Args:
    """What to train."""

    algorithm: Literal["ppo", "dqn", "qr-dqn", "recurrent-ppo"] = "ppo"
    track: str = "Builtin-v1"
    levels: tuple[str, ...] = ("first-steps", "jumps", "hazards")
    """Levels to train on, which the track must allow."""
    budget: str = "4m"
    steps: int = 4_000_000
    seeds: tuple[int, ...] = (0,)
    output: Path = Path("sb3.zip")


def play(args: Args, seed: int) -> Run:
    """Train with one seed, and play the track."""
    _, algorithm, policy, settings = ALGORITHMS[args.algorithm]
    config = EnvironmentConfig.for_parallel_training(levels=args.levels)
    env = NPlusPlusVecEnv(config, num_envs=ENVS, num_threads=torch.get_num_threads())
    model = algorithm(policy, env, seed=seed, device="cpu", **settings)
    began = time.process_time()
    model.learn(args.steps - args.steps % (ENVS * settings.get("n_steps", 1)))
    claimed = {"steps": model.num_timesteps, "seconds": round(time.process_time() - began, 1)}
    env.close()
    return evaluate(model, load_track(args.track), seed=seed, environment=config).claiming(claimed)


def main(args: Args) -> None:
    """Write the submission of all seeds."""
    runs = tuple(play(args, seed) for seed in args.seeds)
    title, command = ALGORITHMS[args.algorithm][0], shlex.join(["python", *sys.argv])
    Submission(args.track, "state", args.budget, title, runs, command).save(args.output)
    print(verify(args.output))


if __name__ == "__main__":
    main(tyro.cli(Args))
