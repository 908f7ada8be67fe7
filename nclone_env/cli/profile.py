"""``nclone-env profile``: where the memory and the time of environments, training runs and scripts go; and ``run``."""

import re
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from nclone_env._table import format_bytes
from nclone_env.cli.profile_script import OutputFolder, WriteOptions
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError, check_integer, shortened
from nclone_env.machine import available_bytes, check_fits
from nclone_env.memory import Target, comparison, measured
from nclone_env.memory import estimate as estimate_memory
from nclone_env.options import group, option
from nclone_env.profiler import Contract, EnvironmentTarget, Form, Mode, TrainingTarget
from nclone_env.train import TrainConfig

EXCEEDED = 1  # exit status: a profile is larger than the one compared with


@dataclass(frozen=True)
class ReportOptions(WriteOptions):
    """How long to profile, and what to write."""

    steps: int | None = None
    """Steps of each pass; by default enough for a verdict."""
    interval: int | None = None
    """Most steps between two snapshots; by default a twentieth of the steps."""
    memray: bool = False
    """Also record all allocations with memray, and write its flame graph."""
    estimate: bool = False
    """Print what so many environments will take, before they are made, and stop."""
    memory_limit: str | None = None
    """With --estimate: memory that may be used, such as 8GB or 512MB; by default what is available in the cgroup or the
    machine."""


@dataclass(frozen=True)
class EnvironmentOptions:
    """The environments to profile."""

    num_envs: int = 16
    """Number of environments."""
    seed: int = 0
    """Seed of the environments and of the random actions."""
    config: EnvironmentConfig = group(EnvironmentConfig)
    """Their configuration."""


@dataclass(frozen=True)
class ProfiledRun(TrainConfig):
    """The configuration of a run in a temporary folder."""

    output: Path = option(Path("runs"), on_command_line=False)
    name: str = option("", on_command_line=False)


_UNITS = ("", "K", "M", "G", "T")
_BYTES = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgtKMGT]?)i?[bB]?")
_ENVIRONMENTS, _REPORT, _TRAINING = EnvironmentOptions(), ReportOptions(), ProfiledRun()
_Environment = Annotated[EnvironmentOptions, tyro.conf.arg(name="")]
_Report = Annotated[ReportOptions, tyro.conf.arg(name="")]
_Training = Annotated[ProfiledRun, tyro.conf.arg(name="")]


def vector(
    environment: _Environment = _ENVIRONMENTS,
    options: _Report = _REPORT,
    contract: Contract = "default",
    autoreset: Mode = "next-step",
) -> int:
    """Profile the native vector environment.

    Args:
        environment: the environments.
        options: length and reports.
        contract: who owns the observations: ``default`` or ``out`` (arrays of the caller).
        autoreset: when the next episode begins.
    """
    target = EnvironmentTarget(environment.config, environment.seed, contract=contract, autoreset=autoreset)
    return profile(target, environment.num_envs, 1000, options)


def _form(form: Form, text: str) -> Callable[..., int]:
    """Return the command for a form of environments that has no options of its own."""

    def command(environment: _Environment = _ENVIRONMENTS, options: _Report = _REPORT) -> int:
        target = EnvironmentTarget(environment.config, environment.seed, form)
        return profile(target, environment.num_envs, 1000, options)

    command.__doc__ = text
    return command


single = _form("single", "Profile a list of single environments, made by ``create_environment``.")
gym = _form("gym", "Profile a list of environments made by ``gymnasium.make``, with its wrappers.")
sync = _form("sync", "Profile Gymnasium's SyncVectorEnv around single environments.")
workers = _form("async", "Profile Gymnasium's AsyncVectorEnv: a worker process for each environment, summed by PSS.")
sb3 = _form("sb3", "Profile the native vector environment behind Stable-Baselines3's interface.")


def train(training: _Training = _TRAINING, options: _Report = _REPORT, ranks: int = 1) -> int:
    """Profile the updates of a training run: rollout, network, optimiser, environments.

    The run trains in a temporary folder.

    Args:
        training: configuration of the run.
        options: length and reports.
        ranks: with --estimate: processes of torchrun on this machine.
    """
    check_integer("ranks", ranks, low=1)
    if ranks > 1 and not options.estimate:
        raise ConfigError(f"ranks: expected with --estimate, got {ranks} without; one process is profiled")
    return profile(TrainingTarget(training, ranks), training.num_envs, 40, options)


def compare(
    before: tyro.conf.Positional[Path],
    after: tyro.conf.Positional[Path],
    percent: float = 5.0,
    least_bytes: float = 64.0,
) -> int:
    """Compare two profiles written with --json; exit with status 1 if a row increased beyond the tolerance.

    Args:
        before: profile to compare with.
        after: profile that must not be larger.
        percent: increase of a row that is tolerated.
        least_bytes: increase of a row that is always tolerated.
    """
    text, exceeded = comparison(before, after, percent, least_bytes)
    print(text)
    return EXCEEDED if exceeded else 0


def profile(target: Target, num_envs: int, steps: int, options: ReportOptions) -> int:
    """Profile a target, write the reports, print the answer and the paths of the reports.

    Args:
        steps: steps of each pass, unless the options say otherwise.

    Returns:
        The exit status: 0, or that of the verdict if the options ask for it.
    """
    if options.estimate:
        check_integer("num_envs", num_envs, low=1)
        return estimate(target, num_envs, options)
    if options.memory_limit is not None:
        raise ConfigError("memory_limit: expected with --estimate, got it without; add --estimate, or leave it out")
    options.check()
    length = steps if options.steps is None else options.steps
    found = measured(target, num_envs, length, options.interval, print, options.memray)
    print(options.write(found, options.output_dir), end="")
    return options.status(found)


def estimate(target: Target, num_envs: int, options: ReportOptions) -> int:
    """Print the memory that a target will have."""
    limit, available = parse_bytes(options.memory_limit), available_bytes()
    known = "what is available is unknown here" if available is None else f"{format_bytes(available)} available"
    allowed = known if limit is None else f"{format_bytes(limit)} allowed"
    print("measuring one and two in fresh processes", file=sys.stderr)
    found = estimate_memory(target, num_envs, allowed)
    print(found.text)
    check_fits("num_envs", num_envs, found.each, found.shared, limit)
    return 0


def parse_bytes(text: str | None) -> int | None:
    """Return the bytes of a number with a unit: B, KB, MB, GB or TB, each 1,024 of the one before."""
    if text is None:
        return None
    match = _BYTES.fullmatch(text.strip())
    if not match:
        raise ConfigError(
            f"memory_limit: expected a number and B, KB, MB, GB or TB, such as 8GB, got {shortened(text)}"
        )
    return int(float(match[1]) * 1024 ** _UNITS.index(match[2].upper()))


def run(
    headless: bool = False,
    profile_memory: bool = False,
    profile_frames: int = 1000,
    memory_snapshot_interval: int = 100,
    num_envs: int = 16,
    steps: int = 1000,
    levels: tuple[str, ...] = _ENVIRONMENTS.config.levels,
    observations: tuple[ObservationName, ...] = _ENVIRONMENTS.config.observations,
    seed: int = 0,
    output_dir: OutputFolder = Path("."),
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
    """
    if num_envs < 1 or steps < 1:
        raise ConfigError(f"num_envs, steps: expected whole numbers of at least 1, got {num_envs} and {steps}")
    if profile_memory and not headless:
        raise ConfigError("profile_memory: requires --headless, otherwise the window would be profiled too")
    config = EnvironmentConfig(levels=levels, observations=observations)
    target = EnvironmentTarget(config, seed, autoreset="same-step")
    if profile_memory:
        options = ReportOptions(output_dir, json, steps=profile_frames, interval=memory_snapshot_interval)
        return profile(target, num_envs, profile_frames, options)
    if not headless:
        from nclone_env.cli.watch import Views, random_runs, show

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
