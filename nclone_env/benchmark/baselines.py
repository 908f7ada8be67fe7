"""Baselines: each plays a track with one seed, and trains for it if it learns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.actions import NUM_ACTIONS
from nclone_env.benchmark.attempts import Run
from nclone_env.benchmark.entries import of_inputs, of_run
from nclone_env.benchmark.evaluation import evaluate
from nclone_env.benchmark.track import MODES, Track, track_levels, training_levels
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError
from nclone_env.obs import GAME_STATE, columns
from nclone_env.plan import solve
from nclone_env.train import Hooks, TrainConfig, train

_AT = columns(GAME_STATE)
_ASIDE, _UP = 0.1, -0.35
_CLONED_LEVELS = 256
"""Of the generator; demonstrations of the planner on so many take some minutes."""
_SHARE = 0.98
"""Of a budget of frames: a search ends with the trial that spends it, a few thousand frames later."""


@dataclass(frozen=True)
class Order:
    """What a baseline is to play."""

    track: Track
    mode: str
    budget: str
    seed: int
    packs: Mapping[str, Path]
    output: Path
    """Folder of training runs."""
    hooks: Hooks
    with_policy: bool = True
    """Include the policy that was trained."""
    steps: int | None = None
    """Environment steps of training; None: those of the budget."""


class RandomPolicy:
    """Chooses each action with equal probability."""

    def reset(self, seed: int) -> None:
        """Begin a sequence of random numbers."""
        self._random = np.random.default_rng(seed)

    def __call__(self, observations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return actions (n,) for n observations."""
        return self._random.integers(NUM_ACTIONS, size=len(next(iter(observations.values()))))


def nearest_exit(observations: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return actions (n,) that follow the shortest path to the objective, and jump where it leads up."""
    state = observations["game_state"]
    right, down = state[:, _AT.path_direction_x], state[:, _AT.path_direction_y]
    direction = np.where(right > _ASIDE, 2, np.where(right < -_ASIDE, 1, 0))
    ahead = np.where(right > 0, state[:, _AT.clearance_right], state[:, _AT.clearance_left])
    up = (down < _UP) | ((ahead == 0) & (direction > 0))
    can_press = (state[:, _AT.airborne] > 0) | (state[:, _AT.jump_held] == 0)
    return 3 * (up & can_press) + direction


def play_random(order: Order) -> Run:
    """Play random actions."""
    return _untrained(RandomPolicy(), order, next(iter(MODES[order.mode]), "game_state"))


def play_nearest_exit(order: Order) -> Run:
    """Follow the shortest path; every attempt is the same."""
    return _untrained(nearest_exit, order, "game_state")


def _untrained(policy: Any, order: Order, name: ObservationName) -> Run:
    """Play a function of one observation."""
    environment = EnvironmentConfig(observations=(name,))
    options: dict[str, Any] = {
        "seed": order.seed,
        "environment": environment,
        "packs": order.packs,
        "hooks": order.hooks,
    }
    return evaluate(policy, order.track, order.mode, **options).claiming({"steps": 0, "seconds": 0})


def play_ppo(order: Order) -> Run:
    """Train the PPO of this package and play its policy."""
    most = order.track.budgets[order.budget].get("steps")
    if most is None:
        raise ConfigError(f"budget: expected one in steps for the baseline ppo, got {order.budget}")
    steps = most if order.steps is None else order.steps
    config = _config(order, {})
    if not config.batch_size <= steps <= most:
        raise ConfigError(f"steps: expected {config.batch_size:,} to {most:,} for {order.budget}, got {steps:,}")
    result = train(config.replace(total_timesteps=steps - steps % config.batch_size), order.hooks)
    return of_run(result.checkpoint, order.track, order.mode, order.packs, order.with_policy, order.hooks)


def _config(order: Order, options: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration of a training run for a track, with some options besides those of the track."""
    source, mode = _PPO[order.track.source], _MODES[order.mode]
    packs = {"levels": training_levels(order.track, order.packs)} if order.track.source == "packs" else {}
    return TrainConfig.of(**{**source, **mode, **packs, **options}, seed=order.seed, output=order.output)


_MODES: Mapping[str, Mapping[str, Any]] = {
    "state": {},
    "look-ahead": {"observations": ("game_state", "action_outcomes")},
    "pixels": {"observations": ("player_frame", "global_view"), "picture_size": 64, "frame_stack": 2},
}
_OF_MANY_LEVELS: Mapping[str, Any] = {
    "observations": ("game_state", "locals"),
    "locals_planes": 3,
    "locals_size": 9,
    "local_position": True,
    "paths": "doors",
    "starts": ("planned",),
    "max_frames": 2400,
    "shared_trunk": False,
    "hidden_size": 96,
    "update_epochs": 3,
}
_PPO: Mapping[str, Mapping[str, Any]] = {
    "builtin": {"levels": ("first-steps", "jumps", "hazards"), "observations": ("game_state",)},
    "generated": {"levels": ("generated",), **_OF_MANY_LEVELS},
    "packs": _OF_MANY_LEVELS,
}


def play_clone(order: Order) -> Run:
    """Clone solutions of the planner on training levels, without any update of PPO after, and play the clone."""
    if "seconds" not in order.track.budgets[order.budget]:
        raise ConfigError(f"budget: expected one in seconds for the baseline clone, got {order.budget}")
    cloned: list[Any] = []
    hooks = replace(order.hooks, on_warm_start=cloned.append, stop=lambda: bool(cloned))
    options: dict[str, Any] = {"warm_start": ("planned",), "starts": ()}
    if order.track.source == "generated":
        options["generated_count"] = _CLONED_LEVELS
    began = time.process_time()
    checkpoint = train(_config(order, options), hooks).checkpoint
    seconds = round(time.process_time() - began, 1)
    run = of_run(checkpoint, order.track, order.mode, order.packs, order.with_policy, order.hooks)
    return run.claiming({**run.claimed, "seconds": seconds, "demonstrations": len(cloned[0].demonstrated.sources)})


def play_planner(order: Order) -> Run:
    """Search on each level with so many simulated frames as the budget allows."""
    frames = order.track.budgets[order.budget].get("frames")
    if frames is None:
        raise ConfigError(f"track: expected Planning-v1 for the baseline planner, got {order.track.name}")
    levels, found, simulated = track_levels(order.track, order.packs), [], []
    began = time.process_time()
    for number, level in enumerate(levels):
        solution = solve(level, frames=_SHARE * frames, seed=order.seed, max_frames=order.track.max_frames)
        found.append(solution.inputs)
        simulated.append(solution.simulated)
        order.hooks.on_level("levels searched", number + 1, len(levels))
    claimed = {"frames": max(simulated), "seconds": round(time.process_time() - began, 1), "simulated": simulated}
    return of_inputs(order.track, levels, order.seed, found).claiming(claimed)


BASELINES: Mapping[str, Callable[[Order], Run]] = {
    "ppo": play_ppo,
    "clone": play_clone,
    "random": play_random,
    "nearest-exit": play_nearest_exit,
    "planner": play_planner,
}
"""The baselines by name."""
