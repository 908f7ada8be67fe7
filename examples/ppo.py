"""Proximal policy optimisation in one file: the readable trainer beside ``nclone-env train``, the fast one.

python examples/ppo.py --levels first-steps --seed 0

It has the same hyperparameters, and prints the share of recent episodes that were won.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.distributions import Categorical

from nclone_env import EnvironmentConfig, NPlusPlusVectorEnv
from nclone_env.env import WON


@dataclass
class Args:
    """Settings of a run."""

    levels: tuple[str, ...] = ("first-steps",)
    seed: int = 0
    total_timesteps: int = 2_000_000
    num_envs: int = 256
    num_steps: int = 64
    epochs: int = 4
    num_minibatches: int = 8
    hidden_size: int = 64
    learning_rate: float = 1.5e-3
    entropy_coef: float = 0.02
    value_coef: float = 0.5
    clip_coef: float = 0.2
    gae_lambda: float = 0.95
    max_grad_norm: float = 0.5
    num_threads: int | None = None
    """Threads of environments and layers; by default one per core."""


class Agent(nn.Module):
    """Policy and value function on top of two hidden layers that they share."""

    def __init__(self, inputs: int, actions: int, hidden: int, first_value: float):
        super().__init__()

        def linear(size: int, outputs: int, gain: float, bias: float = 0.0) -> nn.Linear:
            layer = nn.Linear(size, outputs)
            nn.init.orthogonal_(layer.weight, gain)
            nn.init.constant_(layer.bias, bias)
            return layer

        first, second = linear(inputs, hidden, 2**0.5), linear(hidden, hidden, 2**0.5)
        self.trunk = nn.Sequential(first, nn.ReLU(), second, nn.ReLU())
        self.actor, self.critic = linear(hidden, actions, 0.01), linear(hidden, 1, 1.0, first_value)

    def forward(self, seen: Tensor) -> tuple[Categorical, Tensor]:
        """Return the distributions of the actions and the values (n,) for n observations."""
        features = self.trunk(seen)
        return Categorical(logits=self.actor(features), validate_args=False), self.critic(features).squeeze(1)


class Rollout:
    """T steps of N environments, which write their results into its arrays."""

    def __init__(self, steps: int, envs: int, width: int):
        self.seen, self.values = torch.zeros(steps + 1, envs, width), torch.zeros(steps + 1, envs)
        self.actions = torch.zeros(steps, envs, dtype=torch.int64)
        self.log_probs, self.rewards, self.finals = (torch.zeros(steps, envs) for _ in range(3))
        self.terminated, self.truncated = (torch.zeros(steps, envs, dtype=torch.bool) for _ in range(2))

    def outputs(self, t: int) -> dict[str, np.ndarray]:
        """Return the arrays that step ``t`` writes: its results, and the observations of the next step."""
        results = {"rewards": self.rewards, "terminations": self.terminated, "truncations": self.truncated}
        return {"game_state": self.seen[t + 1].numpy()} | {name: rows[t].numpy() for name, rows in results.items()}


def collect(envs: NPlusPlusVectorEnv, agent: Agent, rollout: Rollout, recent: list[deque[bool]]) -> None:
    """Play T steps; values of the last observations of truncated episodes stand in for the rest of these."""
    rollout.seen[0] = rollout.seen[-1].clone()
    for t in range(len(rollout.actions)):
        distribution, rollout.values[t] = agent(rollout.seen[t])
        rollout.actions[t] = distribution.sample()
        rollout.log_probs[t] = distribution.log_prob(rollout.actions[t])
        *_, info = envs.step(rollout.actions[t].numpy(), out=rollout.outputs(t))
        if "final_obs" in info:
            ended = np.flatnonzero(info["_final_obs"])
            rollout.finals[t, ended] = agent(torch.from_numpy(info["final_obs"]["game_state"]))[1]
            final = info["final_info"]
            for level, outcome in zip(final["level"][ended], final["outcome"][ended], strict=True):
                recent[level].append(outcome == WON)
    rollout.values[-1] = agent(rollout.seen[-1])[1]


def advantages(rollout: Rollout, gamma: float, gae_lambda: float) -> Tensor:
    """Return generalised advantage estimates (T, N)."""
    values = rollout.values
    result, carried = torch.zeros_like(rollout.rewards), torch.zeros_like(rollout.rewards[0])
    for t in reversed(range(len(result))):
        over = rollout.terminated[t] | rollout.truncated[t]
        following = torch.where(rollout.truncated[t], rollout.finals[t], values[t + 1])
        following = following * ~rollout.terminated[t]
        error = rollout.rewards[t] + gamma * following - values[t]
        carried = result[t] = error + gamma * gae_lambda * carried * ~over
    return result


def update(agent: Agent, optimiser: torch.optim.Adam, rollout: Rollout, gain: Tensor, args: Args) -> None:
    """Improve the agent by some epochs over the rollout, given the advantages (T, N)."""
    seen, left = rollout.seen[:-1].flatten(0, 1), optimiser.param_groups[0]["lr"] / args.learning_rate
    fields = rollout.actions, rollout.log_probs, gain, gain + rollout.values[:-1]
    actions, old, gain, returns = (field.flatten() for field in fields)
    for _ in range(args.epochs):
        for rows in torch.randperm(len(seen), device=seen.device).chunk(args.num_minibatches):
            distribution, values = agent(seen[rows])
            ratio = (distribution.log_prob(actions[rows]) - old[rows]).exp()
            normed = (gain[rows] - gain[rows].mean()) / (gain[rows].std() + 1e-8)
            clipped = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            policy_loss = -torch.min(ratio * normed, clipped * normed).mean()
            value_loss = 0.5 * (values - returns[rows]).square().mean()
            entropy = distribution.entropy().mean()
            optimiser.zero_grad()
            (policy_loss + args.value_coef * value_loss - args.entropy_coef * left * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimiser.step()


def train(args: Args) -> tuple[Agent, list[float]]:
    """Train an agent; return it, and the share of recent episodes of each level that were won."""
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.num_threads or torch.get_num_threads())
    config = EnvironmentConfig.for_parallel_training(levels=args.levels)
    envs = NPlusPlusVectorEnv(config, args.num_envs, autoreset_mode="SameStep", num_threads=args.num_threads)
    rollout = Rollout(args.num_steps, args.num_envs, envs.single_observation_space["game_state"].shape[0])
    agent = Agent(rollout.seen.shape[2], int(envs.single_action_space.n), args.hidden_size, config.reward.shaping)
    optimiser = torch.optim.Adam(agent.parameters(), args.learning_rate, eps=1e-5)
    recent: list[deque[bool]] = [deque([False], 100) for _ in envs.level_names]
    envs.reset(seed=args.seed, out={"game_state": rollout.seen[-1].numpy()})
    updates, started = -(-args.total_timesteps // (args.num_envs * args.num_steps)), time.perf_counter()
    for number in range(updates):
        optimiser.param_groups[0]["lr"] = args.learning_rate * (1 - number / updates)
        with torch.no_grad():
            collect(envs, agent, rollout, recent)
            gain = advantages(rollout, config.reward.gamma, args.gae_lambda)
        update(agent, optimiser, rollout, gain, args)
        success = [float(np.mean(wins)) for wins in recent]
        steps, seconds = (number + 1) * args.num_envs * args.num_steps, time.perf_counter() - started
        print(f"{steps:>10,} steps  {seconds:5.0f} s  won: mean {np.mean(success):.3f}, worst level {min(success):.3f}")
    envs.close()
    return agent, success


if __name__ == "__main__":
    train(tyro.cli(Args))
