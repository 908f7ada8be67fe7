"""Could a network take the place of the simulator in ``action_outcomes``, and which of its columns matter?

A network learns the outcomes of all six actions from ``game_state`` and ``locals``, on steps of the bundled policy with
look-ahead and of random actions. The table has the share of the variance that it explains on other levels, for each
column, and between the six actions of a step alone. Then the bundled policy, which is not trained again, plays those
levels with some columns as predicted in the place of the simulated ones:

    nclone-env levels generate --output train.txt --count 1000 --seed 1
    python -m profiling.training.look_ahead train.txt#0-799 --others train.txt#800-999
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

import numpy as np
import torch
import tyro
from torch import Tensor, nn
from torch.nn.functional import grid_sample, mse_loss

from nclone_env.config import EnvironmentConfig
from nclone_env.game import NUM_ACTIONS
from nclone_env.level import resolve
from nclone_env.obs.spec import ACTION_OUTCOME
from nclone_env.train import Policy, load_policy, one_thread_per_call
from nclone_env.train.collect.environments import make_environments, play_episodes
from profiling.measure import describe, timed

POLICY = "generated-lookahead"
NAMES = tuple(str(each.name) for each in ACTION_OUTCOME)
PLAYED = {
    "as simulated": (),
    "death and completion predicted": (0, 1),
    "all others predicted": (2, 3, 4, 5, 6, 7),
    "all predicted": tuple(range(8)),
}
"""Which columns the network predicts in an evaluation."""
_SIZE, _SQUARE, _TILE = 25, 12.0, 24.0
_RANDOM, _BATCH, _PART = 0.15, 512, 2000

Steps = Mapping[str, Tensor]


class Predictor(nn.Module):
    """Predicts the outcomes of all actions, (n, 6, 8), in multiples of ``scale``.

    Args:
        scale: (8,), deviations of the columns.
        units: of each layer.
        points: places in the surroundings that the network chooses in each step and reads all planes at; 0: none.
    """

    def __init__(self, scale: Tensor, units: int = 256, points: int = 0):
        super().__init__()
        self.scale, self.points = scale, points
        self.grid = nn.Linear(3 * _SIZE**2, units // 2)
        width = 30 + units // 2
        self.where = nn.Sequential(nn.Linear(width, units // 2), nn.ReLU(), nn.Linear(units // 2, 2 * points or 1))
        sizes = (width + 3 * points, units, units, NUM_ACTIONS * len(NAMES))
        layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
        self.last = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
        if points:
            nn.init.uniform_(self.where[-1].bias, -0.6, 0.6)

    def forward(self, seen: Steps) -> Tensor:
        """Return the outcomes (n, 6, 8) for n observations."""
        state, planes = seen["game_state"], seen["locals"].float() / 255
        features = torch.cat([state, self.grid(planes.flatten(1)).relu()], dim=1)
        if self.points:
            half = _SIZE * _SQUARE / 2
            inside = ((state[:, :2] + 1) / 2 * _TILE % _SQUARE - _SQUARE / 2) / half  # of the middle square
            places = self.where(features).view(-1, 1, self.points, 2) + inside[:, None, None]
            read = grid_sample(planes, places, padding_mode="border", align_corners=False)
            features = torch.cat([features, read.flatten(1)], dim=1)
        return self.last(features).view(-1, NUM_ACTIONS, len(NAMES))

    def outcomes(self, seen: Steps) -> Tensor:
        """Return the outcomes in the range of the observation, without gradients."""
        with torch.inference_mode():
            return (self(seen) * self.scale).clamp(-1, 1)


def environment(policy: Policy, levels: tuple[str, ...]) -> EnvironmentConfig:
    """Return environments of a policy with look-ahead in which the network sees its surroundings as well."""
    seen = dataclasses.replace(policy.config.environment.observation, locals_size=_SIZE, locals_planes=3)
    return policy.environment.replace(
        levels=levels, observations=(*policy.config.environment.observations, "locals"), observation=seen
    )


def collect(policy: Policy, levels: tuple[str, ...], steps: int, seed: int) -> Steps:
    """Return some steps of the policy on levels, from as many environments as there are levels."""
    count = sum(len(resolve(name)) for name in levels)
    envs = make_environments(environment(policy, levels), count)
    observations, _ = envs.reset(seed=seed)
    random = np.random.default_rng(seed)
    kept: list[dict[str, np.ndarray]] = []
    for number in range(-(-steps // count)):
        kept.append({name: array.copy() for name, array in observations.items()})
        chosen, others = policy.act(observations, seed=number + 10**6 * seed), random.integers(NUM_ACTIONS, size=count)
        observations, *_ = envs.step(np.where(random.random(count) < _RANDOM, others, chosen))
    envs.close()
    return {name: torch.from_numpy(np.concatenate([each[name] for each in kept])[:steps]) for name in kept[0]}


def fitted(steps: Steps, epochs: int, points: int) -> Predictor:
    """Return a network that has learned the outcomes of some steps."""
    torch.manual_seed(0)
    target = steps["action_outcomes"]
    network = Predictor(target.std((0, 1)) + 1e-3, points=points)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    batches = len(target) // _BATCH
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.01, epochs * batches)
    for _ in range(epochs):
        for rows in torch.randperm(len(target))[: batches * _BATCH].view(batches, _BATCH):
            part = {name: array[rows] for name, array in steps.items()}
            loss = mse_loss(network(part), part["action_outcomes"] / network.scale)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return network


def explained(network: Predictor, steps: Steps) -> tuple[Tensor, Tensor]:
    """Return the explained variance of each column, (8,), of all rows and of the differences between actions."""
    target = steps["action_outcomes"]
    starts = range(0, len(target), _PART)
    found = torch.cat([network.outcomes({name: array[i : i + _PART] for name, array in steps.items()}) for i in starts])
    error, means = found - target, target.mean((0, 1))
    between, differences = error - error.mean(1, keepdim=True), target - target.mean(1, keepdim=True)
    share = 1 - (error**2).mean((0, 1)) / ((target - means) ** 2).mean((0, 1))
    return share, 1 - (between**2).mean((0, 1)) / (differences**2).mean((0, 1))


def play(policy: Policy, network: Predictor, levels: tuple[str, ...], columns: tuple[int, ...]) -> tuple[float, float]:
    """Return the shares of episodes, two on each level, that are won and that end in a death."""
    config = environment(policy, levels)
    count = 2 * sum(len(resolve(name)) for name in levels)
    envs = make_environments(config, count)
    envs.assign_levels(np.arange(count) // 2)
    observations, _ = envs.reset(seed=0)

    def choose(seen: Mapping[str, np.ndarray], waiting: np.ndarray, step: int) -> np.ndarray:
        rows = np.flatnonzero(waiting)
        part = {name: array[rows] for name, array in seen.items()}
        if columns:
            predicted = network.outcomes({name: torch.from_numpy(array) for name, array in part.items()}).numpy()
            part["action_outcomes"][..., columns] = predicted[..., columns]
        actions = np.zeros(count, np.int64)
        actions[rows] = policy.act(part, seed=step)
        return actions

    played = play_episodes(envs, choose, observations, np.ones(count, np.bool_), config.max_steps)
    envs.close()
    lost = ~played["success"] & (played["frames"] < config.max_frames)
    return float(played["success"].mean()), float(lost.mean())


def main(
    levels: tyro.conf.Positional[tuple[str, ...]],
    others: tuple[str, ...],
    steps: int = 200_000,
    epochs: int = 7,
    points: tuple[int, ...] = (0, 96),
) -> None:
    """Print what the networks explain, and what the policy wins with them.

    Args:
        levels: that the networks learn from.
        others: that they are tested on.
        steps: steps to learn from; a quarter as many are tested on.
        epochs: epochs over these.
        points: places that each network chooses.
    """
    print(describe())
    policy = load_policy(POLICY, levels=levels)
    with one_thread_per_call():
        known, new = collect(policy, levels, steps, 1), collect(policy, others, steps // 4, 2)
        print(f"{'':<34}" + "".join(f"{name:>15}" for name in NAMES))
        for count in points:
            network, seconds = timed(lambda count=count: fitted(known, epochs, count))
            for title, shares in zip(("explained", "between actions"), explained(network, new), strict=True):
                print(f"{f'{count} points, {title}':<34}" + "".join(f"{share:>15.2f}" for share in shares.tolist()))
            for title, columns in PLAYED.items():
                won, died = play(policy, network, others, columns)
                print(f"{f'{count} points, {title}':<44} won {won:.1%}, died {died:.1%}")
            print(f"learned in {seconds:.0f} s")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
