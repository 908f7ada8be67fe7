"""Measure the success rates of the page of the tutorial about rewards: three rewards, four seeds, one level."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from nclone_env import RewardConfig
from nclone_env.train import TrainConfig, evaluate, train

LEVEL = Path("docs/tutorial/flight.toml")
REWARDS = {"default": RewardConfig(), "`gold=5`": RewardConfig(gold=5.0), "`death=-0.25`": RewardConfig(death=-0.25)}


def main(seeds: int = 4, timesteps: int = 1_000_000, episodes: int = 100) -> None:
    """Print the success rate of sampled actions by reward and seed as a table.

    Args:
        seeds: number of runs with each reward.
        timesteps: steps of a run.
        episodes: episodes of the evaluation of a run.
    """
    print(f"| Reward |{''.join(f' Seed {seed} |' for seed in range(seeds))}\n|---|{'---:|' * seeds}")
    with TemporaryDirectory() as folder:
        for name, reward in REWARDS.items():
            rates = []
            for seed in range(seeds):
                config = TrainConfig.of(
                    levels=(str(LEVEL),), reward=reward, seed=seed, total_timesteps=timesteps, output=Path(folder)
                )
                policy = train(config).policy
                (result,) = evaluate(policy, config.evaluated_environment, "sampled", episodes)
                rates.append(result.success_rate)
            print(f"| {name} |{''.join(f' {rate:.0%} |' for rate in rates)}", flush=True)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
