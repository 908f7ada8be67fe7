"""Learn from a data set of Minari alone, by behaviour cloning or implicit Q-learning, and play a track.

nclone-env data export random.zip clone.zip --name nplusplus/mixed-v0
python examples/offline.py nplusplus/mixed-v0 --algorithm iql

Implicit Q-learning (Kostrikov et al., 2021) with discrete actions. Observations are one vector, ``game_state``.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import minari
import numpy as np
import torch
import tyro
from torch import Tensor, nn
from tyro.conf import Positional

from nclone_env import EnvironmentConfig
from nclone_env.benchmark import Run, evaluate, load_track


@dataclass
class Args:
    """Settings of a run."""

    dataset: Positional[str]
    algorithm: Literal["cloning", "iql"] = "iql"
    track: str = "Builtin-v1"
    seed: int = 0
    updates: int = 5_000
    batch_size: int = 1024
    hidden_size: int = 128
    learning_rate: float = 1e-3
    gamma: float = 0.99
    expectile: float = 0.8
    """Above 0.5 values are those of the better actions of the data."""
    temperature: float = 0.5
    """Advantage that makes an action e times more likely to be imitated."""
    target_rate: float = 0.005


class Transitions:
    """The steps of a data set: (n, ...) tensors of observations, actions, rewards, next observations and ends."""

    def __init__(self, dataset: minari.MinariDataset):
        episodes = [*dataset.iterate_episodes()]
        vectors = [episode.observations["game_state"] for episode in episodes]
        self.seen = torch.from_numpy(np.concatenate([rows[:-1] for rows in vectors]))
        self.following = torch.from_numpy(np.concatenate([rows[1:] for rows in vectors]))
        self.actions = torch.from_numpy(np.concatenate([episode.actions for episode in episodes]))
        self.rewards = torch.from_numpy(np.concatenate([episode.rewards for episode in episodes])).float()
        self.ends = torch.from_numpy(np.concatenate([episode.terminations for episode in episodes])).float()

    def sample(self, count: int) -> list[Tensor]:
        """Return the fields of random steps."""
        rows = torch.randint(len(self.actions), (count,))
        return [field[rows] for field in (self.seen, self.actions, self.rewards, self.following, self.ends)]


def network(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Return a network with two hidden layers."""
    sizes = (inputs, hidden), (hidden, hidden), (hidden, outputs)
    first, second, last = (nn.Linear(*size) for size in sizes)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)


def learn(data: Transitions, args: Args) -> nn.Module:
    """Return a policy, which maps observations (n, d) to logits (n, 6)."""
    torch.manual_seed(args.seed)
    sizes = data.seen.shape[1], args.hidden_size
    policy, value = network(*sizes, 6), network(*sizes, 1)
    critics = nn.ModuleList(network(*sizes, 6) for _ in range(2))
    targets = copy.deepcopy(critics).requires_grad_(False)
    optimiser = torch.optim.Adam([*policy.parameters(), *value.parameters(), *critics.parameters()], args.learning_rate)
    for _ in range(args.updates):
        seen, actions, rewards, following, ends = data.sample(args.batch_size)
        imitation = nn.functional.cross_entropy(policy(seen), actions, reduction="none")
        if args.algorithm == "cloning":
            loss = imitation.mean()
        else:
            chosen = actions[:, None]
            least = torch.stack([critic(seen).gather(1, chosen) for critic in targets]).min(dim=0).values[:, 0]
            advantage = least - value(seen)[:, 0]
            asymmetry = (args.expectile - (advantage < 0).float()).abs()
            with torch.no_grad():
                goal = rewards + args.gamma * (1 - ends) * value(following)[:, 0]
            errors = [(critic(seen).gather(1, chosen)[:, 0] - goal).square().mean() for critic in critics]
            weights = (advantage.detach() / args.temperature).exp().clamp(max=100.0)
            loss = (weights * imitation).mean() + (asymmetry * advantage.square()).mean() + sum(errors)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            for target, source in zip(targets.parameters(), critics.parameters(), strict=True):
                target.lerp_(source, args.target_rate)
    return policy


def main(args: Args) -> Run:
    """Learn, play the track and print the success of sampled and of most probable actions."""
    policy = learn(Transitions(minari.load_dataset(args.dataset)), args)
    environment = EnvironmentConfig(observations=("game_state",))
    run = evaluate(policy, load_track(args.track), seed=args.seed, environment=environment)
    for name, attempts in (("sampled", run.sampled), ("most probable", run.probable)):
        print(f"{args.algorithm}, {name} actions: {attempts.ends['won'].mean():.1%} of the episodes are won")
    return run


if __name__ == "__main__":
    main(tyro.cli(Args))
