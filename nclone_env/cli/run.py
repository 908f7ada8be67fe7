"""``nclone-env run``: random actions, as ``watch`` shows them, or headless for their speed or a profile."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from nclone_env.cli.profile import ReportOptions, profile
from nclone_env.cli.watch import Views, show
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.env import playable_levels
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING, DEAD, INPUT_OF_ACTION, NUM_ACTIONS
from nclone_env.profiler import VectorTarget
from nclone_env.replay import WatchedRun
from nclone_env.sim import simulate

_DEFAULTS = EnvironmentConfig()


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
    output_dir: Annotated[Path, tyro.conf.arg(name="output", aliases=["--output-dir"])] = Path("."),
    json: bool = False,
) -> int:
    """Step environments with uniform random actions, in a window or headless.

    Args:
        headless: step a vector environment without a window, and print its speed.
        profile_memory: write a memory and a time profile; requires --headless.
        profile_frames: vector steps per profiling pass.
        memory_snapshot_interval: vector steps between memory snapshots.
        num_envs: number of environments without a window.
        steps: number of vector steps without --profile-memory; in a window, most steps of an episode.
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
    if profile_memory and not headless:
        raise ConfigError("profile_memory: requires --headless, otherwise the window would be profiled too")
    config = EnvironmentConfig(levels=levels, observations=observations)
    target = VectorTarget(config, seed, autoreset="same-step")
    if profile_memory:
        options = ReportOptions(output_dir, json, steps=profile_frames, interval=memory_snapshot_interval)
        return profile(target, num_envs, profile_frames, options)
    if not headless:
        show(Views([lambda number: random_runs(config, steps, seed + number)], views=9))
        return 0
    with closing(target.make(num_envs)) as subject:
        subject.step()  # loads or compiles the kernels
        start = time.perf_counter()
        for _ in range(steps):
            subject.step()
        speed = num_envs * steps / (time.perf_counter() - start)
    print(f"{num_envs} environments, {steps:,} steps of random actions, seed {seed}")
    print(f"  {speed:,.0f} environment steps/s, including observations and resets")
    return 0


def random_runs(config: EnvironmentConfig, steps: int, seed: int) -> list[WatchedRun]:
    """Return an episode of random actions on each level, of so many steps at most."""
    random, runs = np.random.default_rng(seed), []
    for level in playable_levels(config).levels:
        inputs = np.repeat(np.take(INPUT_OF_ACTION, random.integers(NUM_ACTIONS, size=steps)), config.frame_skip)
        ended = np.flatnonzero(np.isin(simulate(level, inputs).state, (DEAD, CELEBRATING)))
        runs.append(WatchedRun(level, inputs[: ended[0] + 1 if len(ended) else None].tolist()))
    return runs
