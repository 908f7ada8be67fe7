"""``nclone-env run``: step environments with random actions to watch, benchmark or profile them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from nclone_env.cli.profile import ReportOptions, profile
from nclone_env.cli.targets import RandomActions, VectorTarget
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.env.compiled.records import WON
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv
from nclone_env.errors import ConfigError

_DEFAULTS = EnvironmentConfig()


@dataclass
class Episodes:
    """Counts of finished episodes."""

    finished: int = 0
    succeeded: int = 0

    def add(self, terminated: np.ndarray, truncated: np.ndarray, info: dict[str, Any]) -> None:
        """Count the episodes that ended in a step of the vector environment."""
        self.finished += int((terminated | truncated).sum())
        self.succeeded += int((info["outcome"] == WON).sum())

    def __str__(self) -> str:
        """Return a one-line summary."""
        if not self.finished:
            return "no episode finished; increase --steps"
        rate = self.succeeded / self.finished
        return f"{self.finished:,} episodes, {self.succeeded:,} succeeded ({rate:.1%})"


def run(
    headless: bool = False,
    profile_memory: bool = False,
    profile_frames: int = 1000,
    memory_snapshot_interval: int = 100,
    num_envs: int = 16,
    steps: int = 1000,
    levels: tuple[str, ...] = _DEFAULTS.levels,
    observations: tuple[ObservationName, ...] = _DEFAULTS.observations,
    seed: int = 0,
    output_dir: Path = Path("."),
    json: bool = False,
) -> int:
    """Step environments with uniform random actions, in a window or headless.

    Args:
        headless: step a vector environment without a window.
        profile_memory: write a memory and a time profile; requires --headless.
        profile_frames: vector steps per profiling pass.
        memory_snapshot_interval: vector steps between memory snapshots.
        num_envs: number of environments.
        steps: number of vector steps without --profile-memory.
        levels: built-in sets or levels by name, or level files by path.
        observations: names of the observations to compute.
        seed: seed of the environments and of the actions.
        output_dir: folder for the reports of the profile.
        json: also write the statistics of the profile as JSON.

    Returns:
        The exit code, 0.

    Raises:
        ConfigError: if a value is out of range, or ``profile_memory`` is used without ``headless``.
    """
    if num_envs < 1 or steps < 1:
        raise ConfigError(f"num_envs, steps: expected whole numbers of at least 1, got {num_envs} and {steps}")
    config = EnvironmentConfig(levels=levels, observations=observations)
    if profile_memory:
        if not headless:
            raise ConfigError("profile_memory: requires --headless, otherwise the window would be profiled too")
        options = ReportOptions(profile_frames, memory_snapshot_interval, output_dir, json)
        profile(VectorTarget(config, seed, autoreset="same-step"), num_envs, profile_frames, options)
    elif headless:
        run_headless(config, num_envs, steps, seed)
    else:
        show(levels, steps, seed)
    return 0


def run_headless(config: EnvironmentConfig, num_envs: int, steps: int, seed: int) -> None:
    """Step a vector environment; print throughput, episodes and success rate."""
    actions = RandomActions(num_envs, seed)
    episodes = Episodes()
    env = _vector(config, num_envs)
    env.reset(seed=seed)
    env.step(actions.next())  # loads or compiles the kernels
    env.reset(seed=seed)
    start = time.perf_counter()
    for _ in range(steps):
        _, _, terminated, truncated, info = env.step(actions.next())
        episodes.add(terminated, truncated, info)
    seconds = time.perf_counter() - start
    env.close()
    print(f"{num_envs} environments, {steps:,} steps of random actions, seed {seed}")
    print(f"  {num_envs * steps / seconds:,.0f} environment steps/s, including observations and resets")
    print(f"  {episodes}")


def show(levels: tuple[str, ...], steps: int, seed: int) -> None:
    """Play random actions in a window, each held for ``frame_skip`` frames; print the outcomes."""
    config = EnvironmentConfig.for_human(levels=levels, frame_skip=_DEFAULTS.frame_skip)
    actions = RandomActions(1, seed)
    env = NPlusPlusEnv(config)
    env.reset(seed=seed)
    finished = 0
    for _ in range(steps):
        _, _, terminated, truncated, info = env.step(int(actions.next()[0]))
        if terminated or truncated:
            finished += 1
            print(f"episode {finished}: {info['outcome']} on {info['level']}")
            env.reset()
    env.close()


def _vector(config: EnvironmentConfig, num_envs: int) -> NPlusPlusVectorEnv:
    return NPlusPlusVectorEnv(config, num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
