"""``nclone-env profile``: where the memory and the time of environments, training runs and scripts go; and ``run``.

A program of a user runs in an interpreter of its own.
"""

import functools
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from nclone_env._files import suffix_of, there
from nclone_env._table import format_bytes
from nclone_env.cli.output import check_folder
from nclone_env.config import EnvironmentConfig, ObservationName
from nclone_env.errors import ConfigError, check_integer, optional_module, shortened
from nclone_env.machine import available_bytes, check_fits
from nclone_env.memory import Target, comparison, measured, write_report
from nclone_env.memory import estimate as estimate_memory
from nclone_env.options import group, option
from nclone_env.profiler import Contract, EnvironmentTarget, Form, Mode, TrainingTarget
from nclone_env.train import TrainConfig, require_training_extra

OutputFolder = Annotated[Path, tyro.conf.arg(name="output", aliases=["--output-dir"])]
GROWING, UNDECIDED = 1, 2
"""Exit statuses with ``--fail-on-growth``."""
_CALL = "import sys; from nclone_env.memory import call; del sys.argv[0]; call(sys.argv[0])"
"""What runs MODULE:FUNCTION, the first argument."""
_NO_CACHES = "glibc.malloc.tcache_count=0"
EXCEEDED = 1  # exit status: a profile is larger than the one compared with


@dataclass(frozen=True)
class WriteOptions:
    """What to write, and with which status to exit."""

    output_dir: OutputFolder = Path(".")
    """Folder of the reports."""
    json: bool = False
    """Also write the statistics as JSON, which ``nclone-env profile compare`` reads."""
    html: bool = False
    """Also write a page of HTML with pictures, which needs no network."""
    fail_on_growth: bool = False
    """Exit with status 1 if memory grows, with 2 if there is too little to tell."""

    def check(self) -> None:
        """Raise an error if the reports cannot be written: now, not after the measurements."""
        check_folder("output", self.output_dir)
        if self.html:
            optional_module("jinja2", "profile")

    def status(self, verdict: str) -> int:
        """Return the exit status."""
        return {"growing": GROWING, "undecided": UNDECIDED}.get(verdict, 0) if self.fail_on_growth else 0


@dataclass(frozen=True)
class ScriptOptions(WriteOptions):
    """What to measure of a program, and what to write."""

    seconds: float | None = None
    """Interrupt the program after this time, as Ctrl-C does, and report; by default it runs to its end."""
    trace: bool = True
    """Find the source lines by tracemalloc, which slows down code that makes many small objects; it ends after 20 s
    of processor time in which nothing grew."""


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
_SCRIPT = ScriptOptions()


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


def train(
    training: _Training = _TRAINING,
    options: _Report = _REPORT,
    recipe: Annotated[Path | None, tyro.conf.arg(name="config")] = None,
    ranks: int = 1,
) -> int:
    """Profile the updates of a training run: rollout, network, optimiser, environments.

    The run trains in a temporary folder.

    Args:
        training: configuration of the run.
        options: length and reports.
        recipe: as of ``train``, which takes the same one by default.
        ranks: with --estimate: processes of torchrun on this machine.
    """
    check_integer("ranks", ranks, low=1)
    if ranks > 1 and not options.estimate:
        raise ConfigError(f"ranks: expected with --estimate, got {ranks} without; one process is profiled")
    return profile(TrainingTarget(training, ranks), training.num_envs, 40, options, lambda: _say_recipe(recipe))


def train_command(args: Sequence[str]) -> Callable[..., int]:
    """Return the command with the options of the recipe that ``train`` takes with these arguments."""
    if args[:2] != ["profile", "train"]:
        return train
    from nclone_env.cli.train import chosen_recipe

    recipe = chosen_recipe(args)
    if recipe is None:
        return train
    require_training_extra()
    from nclone_env.train import read_recipe

    config = read_recipe(recipe).config
    run = ProfiledRun(**{each.name: getattr(config, each.name) for each in fields(config)})
    return functools.partial(train, training=run, recipe=Path(recipe))


def _say_recipe(path: Path | None) -> None:
    from nclone_env.cli.train import say_recipe
    from nclone_env.train import read_recipe

    if path is not None:
        say_recipe(read_recipe(path))


def script(
    path: tyro.conf.Positional[str],
    arguments: tyro.conf.Positional[tuple[str, ...]] = (),
    options: Annotated[ScriptOptions, tyro.conf.arg(name="")] = _SCRIPT,
) -> int:
    """Profile a script, a module, or a function without arguments given as MODULE:FUNCTION.

    Snapshots are taken by time. For growth per step, call ``nclone_env.memory.profile`` in the script instead. The
    exit status is that of the script.

    Args:
        path: file or module to run, or MODULE:FUNCTION to call.
        arguments: of the script; options of the script follow ``--``.
        options: length and reports.
    """
    if os.name == "nt":
        raise ConfigError(
            "script: expected a system of POSIX, got Windows; call nclone_env.memory.profile in the program"
        )
    if options.seconds is not None and not options.seconds > 0:
        raise ConfigError(f"seconds: expected more than 0, got {options.seconds:g}")
    options.check()
    target, folder = _target(path)
    order = {
        "name": path,
        "folder": str(options.output_dir.absolute()),  # the program may change the working directory
        **{option: getattr(options, option) for option in ("json", "html", "trace", "seconds")},
    }
    command = [sys.executable, *_interpreter_options(), *target, *arguments]
    is_own = sys.argv[1:3] == ["profile", "script"]  # this process was started to run the program
    if is_own and not options.fail_on_growth and options.seconds is None:  # its exit status is that of the program
        os.execve(sys.executable, command, _environment(folder, {**order, "parent": None}, is_own))
    return _ended(command, folder, order, options, is_own)


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


def profile(
    target: Target, num_envs: int, steps: int, options: ReportOptions, on_start: Callable[[], object] = bool
) -> int:
    """Profile a target for so many steps, unless the options say otherwise; return the exit status.

    ``on_start`` is called once, before anything is measured.
    """
    if options.estimate:
        check_integer("num_envs", num_envs, low=1)
        on_start()
        return estimate(target, num_envs, options)
    if options.memory_limit is not None:
        raise ConfigError("memory_limit: expected with --estimate, got it without; add --estimate, or leave it out")
    options.check()
    _leave_out_caches_of_threads()
    on_start()
    length = steps if options.steps is None else options.steps
    found = measured(target, num_envs, length, options.interval, print, options.memray)
    print(write_report(found, options.output_dir, options.json, options.html), end="")
    return options.status(found.verdict)


def _leave_out_caches_of_threads() -> None:
    """Start this command once more without the caches of the C library's threads: freed blocks in them count as in use.

    The variable is read when a process starts, and by glibc alone.
    """
    before = os.environ.get("GLIBC_TUNABLES", "")
    if sys.platform == "linux" and sys.argv[1:2] in (["profile"], ["run"]) and _NO_CACHES not in before:
        sys.stdout.flush()
        os.environ["GLIBC_TUNABLES"] = ":".join(filter(None, (before, _NO_CACHES)))
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def estimate(target: Target, num_envs: int, options: ReportOptions) -> int:
    """Print the memory that a target will have."""
    limit, available = parse_bytes(options.memory_limit), available_bytes()
    known = "what is available is unknown here" if available is None else f"{format_bytes(available)} available"
    allowed = known if limit is None else f"{format_bytes(limit)} allowed"
    print("measuring one and two in fresh processes", file=sys.stderr)
    text, each, shared = estimate_memory(target, num_envs, allowed)
    print(text)
    check_fits("num_envs", num_envs, each, shared, limit)
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
    """
    if num_envs < 1 or steps < 1:
        raise ConfigError(f"num_envs, steps: expected whole numbers of at least 1, got {num_envs} and {steps}")
    check_integer("seed", seed, low=0)
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


def _target(path: str) -> tuple[list[str], str | None]:
    """Return what ``python`` is told to run for a path, and the folder from which the program imports first."""
    file = Path(os.path.normpath(path))
    folders = [file, *file.parents][:-1]
    if folders and all(each.name.isidentifier() and there((each / "__init__.py").is_file) for each in folders):
        path = ".".join(file.parts)  # a package: python -m runs it, and can import from it
    elif there(lambda: file.is_file() or file.is_dir()):
        is_archive = file.is_dir() or (suffix_of(file) != ".py" and zipfile.is_zipfile(file))
        return [f"./{path}" if path.startswith("-") else path], os.path.realpath(
            file if is_archive else file.resolve().parent
        )
    module, _, _ = path.partition(":")
    sys.path.insert(0, os.getcwd())  # as ``python -m`` does
    try:
        exists = importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        exists = False
    finally:
        del sys.path[0]
    if exists and ":" in path:
        return ["-c", _CALL, path], os.getcwd()
    if ":" in path:
        found = "path: expected MODULE:FUNCTION that can be imported, got"
        raise ConfigError(f"{found} {shortened(path)}: No module named {shortened(module)}")
    if not exists:
        raise ConfigError(
            f"path: expected a script, a module or MODULE:FUNCTION, got {shortened(path)}, which is no file"
            f"{'; leave it out: the script is run by this interpreter' if path.startswith('python') else ''}"
        )
    return ["-m", path], os.getcwd()


def _interpreter_options() -> list[str]:
    """Return the options that this interpreter was started with, for that of the program.

    The profiler gets in by the environment: the options that ignore it become those they imply, and the variables that
    Python reads are left out.
    """
    options: list[str] = []
    words = iter(sys.orig_argv[1:])
    for word in words:
        letters = word[1:] if word[:1] == "-" and word[1:2] != "-" else ""
        for place, letter in enumerate(letters):
            if letter in "cm":
                return options
            if letter in "WX":
                options.append(f"-{letter}{letters[place + 1 :] or next(words)}")
                break
            options += {"E": [], "I": ["-s", "-P"]}.get(letter, [f"-{letter}"])
        if not letters:
            break
    return options


def _environment(folder: str | None, order: Mapping[str, Any], is_own: bool) -> dict[str, str]:
    """Return the environment in which the interpreter of the program begins the profile and then forgets it."""
    environment = _first_environment() if is_own else dict(os.environ)
    if sys.flags.ignore_environment:
        environment = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
    package = Path(__file__).parents[1]
    before = {"PYTHONPATH": environment["PYTHONPATH"]} if "PYTHONPATH" in environment else {}
    told = {"package": str(package.parent), "folder": folder, "environment": before, "passenger": order}
    path = filter(None, (str(package / "memory" / "hook"), environment.get("PYTHONPATH")))
    return {**environment, "PYTHONPATH": os.pathsep.join(path), "NCLONE_PASSENGER": json.dumps(told)}


def _first_environment() -> dict[str, str]:
    """Return the environment of this process before any library changed it."""
    try:
        items = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environ)
    pairs = (os.fsdecode(item).partition("=") for item in items if item)
    return {name: value for name, _, value in pairs}


def _ended(
    command: Sequence[str], folder: str | None, order: Mapping[str, Any], options: ScriptOptions, is_own: bool
) -> int:
    """Run a command to its end; return the exit status of the program, or what the options say of its verdict."""
    answer, told = os.pipe()
    environment = _environment(folder, {**order, "parent": told}, is_own)
    process = subprocess.Popen(command, env=environment, pass_fds=(told,))
    os.close(told)
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)} if is_main else {}
    for number in before:
        signal.signal(number, lambda number, _: process.send_signal(number))
    try:
        while process.returncode is None:
            with suppress(KeyboardInterrupt):  # the program got it, too
                process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    os.set_blocking(answer, False)  # a copy of the program may still have the other end
    with suppress(BlockingIOError), open(answer, encoding="utf-8") as lines:
        interrupted, _, verdict = lines.read().partition(" ")
    status = process.returncode
    if status == 0 or (interrupted and status == -signal.SIGINT):
        return options.status(verdict)
    if is_own and status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status if status >= 0 else 128 - status
