"""Proximal policy optimisation that never leaves a GPU: environments, rollouts, policy and updates are there.

python examples/ppo_gpu.py --levels first-steps --seed 0

Agent, advantages and update are those of ``ppo.py``. The environments write each step into the rollout, and the host
waits for the GPU once an update, for the line that it prints. An update costs some hundred launches however large it
is, so the batch is larger than that of the processor, and with it the learning rate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
import tyro
from ppo import Agent, Args, Rollout, advantages, update
from torch import Tensor

from nclone_env import EnvironmentConfig, create_vector_environment
from nclone_env.env import WON


@dataclass
class DeviceArgs(Args):
    """Settings of a run on a GPU."""

    num_envs: int = 4096
    num_steps: int = 16
    learning_rate: float = 4e-3
    device: str = "cuda"


def collect(envs: Any, agent: Agent, rollout: Rollout, episodes: Tensor) -> None:
    """Play T steps; count the ended and the won episodes of each level in ``episodes``, (L, 2)."""
    rollout.seen[0] = rollout.seen[-1].clone()
    for t in range(len(rollout.actions)):
        distribution, rollout.values[t] = agent(rollout.seen[t])
        waits = torch.empty_like(distribution.logits).exponential_()
        rollout.actions[t] = (distribution.probs / waits).argmax(1)  # a sample; multinomial would wait for the GPU
        rollout.log_probs[t] = distribution.log_prob(rollout.actions[t])
        results = {"rewards": rollout.rewards, "terminations": rollout.terminated, "truncations": rollout.truncated}
        out = {"game_state": rollout.seen[t + 1]} | {name: rows[t] for name, rows in results.items()}
        *_, info = envs.step(rollout.actions[t], out=out)
        rollout.finals[t] = agent(info["final_obs"]["game_state"])[1]  # of all: to ask which ended would be to wait
        final, ended = info["final_info"], info["_final_obs"]
        counted = torch.stack((ended, ended & (final["outcome"] == WON)), 1)
        episodes.index_add_(0, final["level"].long(), counted.float())
    rollout.values[-1] = agent(rollout.seen[-1])[1]


def train(args: DeviceArgs) -> tuple[Agent, list[float]]:
    """Train an agent; return it, and the share of recent episodes of each level that were won."""
    torch.manual_seed(args.seed)
    config = EnvironmentConfig.for_parallel_training(levels=args.levels)
    envs: Any = create_vector_environment(config, args.num_envs, device=args.device, autoreset_mode="SameStep")
    first, _ = envs.reset(seed=args.seed)
    place, width = first["game_state"].device, first["game_state"].shape[1]
    with torch.device(place):
        rollout = Rollout(args.num_steps, args.num_envs, width)
        agent = Agent(width, int(envs.single_action_space.n), args.hidden_size, config.reward.shaping)
    rollout.seen[-1] = first["game_state"]
    optimiser = torch.optim.Adam(agent.parameters(), args.learning_rate, eps=1e-5)
    episodes = torch.zeros(len(envs.level_names), 2, device=place)
    updates, started = -(-args.total_timesteps // (args.num_envs * args.num_steps)), time.perf_counter()
    for number in range(updates):
        optimiser.param_groups[0]["lr"] = args.learning_rate * (1 - number / updates)
        with torch.no_grad():
            episodes *= 0.8  # an average over the last five updates
            collect(envs, agent, rollout, episodes)
            gain = advantages(rollout, config.reward.gamma, args.gae_lambda)
        update(agent, optimiser, rollout, gain, args)
        success = [won / max(ended, 1.0) for ended, won in episodes.tolist()]
        steps, seconds = (number + 1) * args.num_envs * args.num_steps, time.perf_counter() - started
        mean = sum(success) / len(success)
        print(f"{steps:>10,} steps  {seconds:5.2f} s  won: mean {mean:.3f}, worst level {min(success):.3f}")
    envs.close()
    return agent, success


if __name__ == "__main__":
    train(tyro.cli(DeviceArgs))
