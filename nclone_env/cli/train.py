"""``nclone-env train``: train a policy, then evaluate it; ``compare``: training runs side by side."""

from __future__ import annotations

import functools
import itertools
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from nclone_env.cli.output import check_episodes, check_folder, check_free, check_suffix
from nclone_env.cli.progress import LevelProgress, TrainingProgress, say, stop_on_signals
from nclone_env.errors import ConfigError, NcloneError, StoppedError
from nclone_env.train import Hooks, TrainConfig, require_training_extra

if TYPE_CHECKING:
    from nclone_env.train import Recipe

_STOPPING = (
    "stopping after this update or level; a second signal ends at once and loses what follows the last checkpoint"
)


def train(
    config: Annotated[TrainConfig, tyro.conf.arg(name="")],
    recipe: Annotated[Path | None, tyro.conf.arg(name="config")] = None,
    resume: Path | None = None,
    init: Path | None = None,
    overwrite: bool = False,
    episodes: int | None = None,
    video: bool = True,
) -> int:
    """Train a policy with PPO, evaluate it against a random baseline, and save the results.

    The run folder contains ``run.toml`` (all options, versions, machine, digests of levels), ``checkpoint.pt`` (the
    latest), ``best.pt`` (the best recent success), ``learning_curve.csv``, ``learning_curve.png``, ``levels.csv``
    (results of each level), ``evaluation.txt``, ``evaluation.csv``, ``episode.mp4`` and TensorBoard files.
    ``nclone-env compare`` compares runs, ``train --config RUN`` repeats one.

    Runs never mix: without ``--name`` a new run gets a new folder (``first-steps-seed0``, then
    ``first-steps-seed0-2``); with ``--name`` the folder must not hold another run, unless ``--overwrite`` replaces it.
    Ctrl-C or SIGTERM ends the run after the current update, saves it and prints the command that continues it; the exit
    status is then 130 or 143.

    Args:
        config: configuration of the run.
        recipe: name of a recipe (defaults, game-lookahead, game-motion, generated, generated-lookahead), file of
            options (TOML, such as the ``run.toml`` in the folder of each run), or the folder of a run to repeat.
            Options given here replace those of the file. By default game-lookahead for packs of levels by players,
            generated for generated levels, defaults for others; with ``--init`` the one of that bundled policy, if any.
        resume: run folder or checkpoint to continue from. All options are those of that run, except the ones given
            here; with ``--name`` the continuation gets a folder of its own.
        init: run folder, checkpoint or bundled policy that a new run begins with; value function and optimiser are new.
        overwrite: replace the run in the folder, or with ``--resume`` of an older checkpoint what follows it.
        episodes: evaluation episodes per level; by default as of ``evaluate``, on a sample of 625 of more levels.
        video: write a video of one evaluation episode.

    Returns:
        The exit status: 0, or 130 or 143 after a signal.
    """
    require_training_extra()
    from nclone_env.train import check_memory, joined_ranks, report_run  # requires torch, an optional dependency
    from nclone_env.train import train as run_training

    check_episodes(episodes)
    check_folder("output", config.run_folder)
    preparation, progress = LevelProgress(), TrainingProgress(config.total_timesteps)
    with stop_on_signals(_STOPPING) as stop, joined_ranks() as ranks:
        if recipe is not None:
            _check_recipe(recipe, config, init, ranks.first)
        hooks = _hooks(config, resume, preparation, progress, stop) if ranks.first else Hooks(stop=stop)
        try:
            check_memory(config, ranks, hooks)
            result = run_training(config, hooks, resume=resume, init=init, overwrite=overwrite, ranks=ranks)
        except StoppedError:
            if ranks.first:
                preparation.clear()
                say("stopped before the first update; nothing had to be saved, and planned solutions are kept")
            return stop.exit_status
    stopped = stop() or result.interrupted  # in the latter case by a signal to another rank
    if not ranks.first:
        return stop.exit_status if stopped else 0
    progress.finish()
    if stopped:
        say(f"stopped and saved after {result.counters.timesteps:,} timesteps; continue with")
        arguments = _arguments(result.checkpoint.parent, episodes, video)
        say(f"  {_program(ranks.local_count, ranks.count)} --resume {arguments}")
        return stop.exit_status
    reason = "every level solved" if result.solved else "total_timesteps reached"
    say(f"{reason} after {result.counters.timesteps:,} timesteps, {progress.seconds:.0f} s")
    evaluation = LevelProgress()
    report_run(config, result, episodes, video, evaluation.level, evaluation.put)
    return 0


def _check_recipe(path: Path, config: TrainConfig, init: Path | None, is_first: bool) -> None:
    """Check that a run can be repeated, and print in what this computer and copy of the package differ.

    Of a recipe that ships with the package print its name and purpose.
    """
    from nclone_env.train import read_recipe

    recipe = read_recipe(path)
    recipe.check_inputs(config, init)
    if is_first:
        say_recipe(recipe)
        say(*(f"{recipe.path}: {difference}" for difference in recipe.differences()))


def say_recipe(recipe: Recipe) -> None:
    """Print the name and purpose of a recipe that ships with the package; of another nothing."""
    from nclone_env.train import purpose, recipe_names

    if recipe.name:
        others = ", ".join(name for name in recipe_names() if name != recipe.name)
        say(f"recipe {recipe.name}: {purpose(recipe.name)}; --config takes others: {others}", stream=sys.stderr)


def _hooks(
    config: TrainConfig,
    resume: Path | None,
    preparation: LevelProgress,
    progress: TrainingProgress,
    stop: Callable[[], bool],
) -> Hooks:
    """Return hooks that print how far the run is."""

    def announce(folder: Path) -> None:
        verb = "training" if resume is None else f"resuming {resume}:"
        on = f"on {', '.join(config.environment.levels)} with {config.num_envs} environments"
        say(f"{verb} {on}; writing to {folder}", *_rounding(config))
        sys.stdout.flush()

    def cloned(done: object) -> None:
        preparation.put(str(done))
        progress.begin()

    def prepared(name: str, seconds: float) -> None:
        preparation.stage(name, seconds)
        progress.begin()

    def survives(found: object) -> None:
        progress.put(f"the run learns to stay alive, not to reach the exit: {found}{_advice(config)}")

    return Hooks(announce, prepared, preparation.level, cloned, progress, stop, survives)


def _advice(config: TrainConfig) -> str:
    """Return the end of a sentence on a run that hardly wins: what teaches it to reach the exit."""
    if config.starts:
        return ""
    from nclone_env.train import DEFAULTS

    name = _recipe_for(config.environment.levels)
    return f"; {'--starts planned' if name == DEFAULTS else f'--config {name}'} begins episodes along solutions"


def _rounding(config: TrainConfig) -> list[str]:
    """Return a line that says how long a run is that is asked to end within its first update; else none."""
    update = config.num_envs * config.num_steps
    if config.total_timesteps >= update:
        return []
    size = f"{update:,} steps ({config.num_envs} environments x {config.num_steps} steps)"
    return [f"  total_timesteps {config.total_timesteps:,}: one update is {size}, and the run makes one"]


def train_command(args: Sequence[str]) -> Callable[..., int]:
    """Return the command with the defaults of these arguments: the options of ``--resume``, or of a recipe."""
    if args[:1] != ["train"]:
        return train
    named, resume = (_value(args, name) for name in ("--config", "--resume"))
    if resume is not None and named is not None:
        raise ConfigError(f"config: expected none with --resume, which has its options, got {named}; leave one out")
    recipe = chosen_recipe(args) if resume is None else None
    if recipe is None and resume is None:
        return train
    require_training_extra()
    from nclone_env.train import read_recipe, resumed_config

    if recipe is None:
        return functools.partial(train, config=resumed_config(str(resume)))
    read = read_recipe(recipe)
    return functools.partial(train, config=read.config, init=read.init, recipe=Path(recipe))


def chosen_recipe(args: Sequence[str]) -> str | None:
    """Return the recipe of a new run with these arguments, as ``--config`` names it; None for the defaults."""
    named = _value(args, "--config")
    return _recipe_not_named(args) if named is None else named


def _recipe_not_named(args: Sequence[str]) -> str | None:
    """Return the name of the recipe of a run that names none; None for the defaults, and if there are no such levels.

    It is that of the bundled policy of ``--init``, whose network has the same options, none with another policy, and
    else that for the levels.
    """
    levels, init = _values(args, "--levels"), _value(args, "--init")
    if not levels and init is None:
        return None
    from nclone_env.train import DEFAULTS, is_named, recipe_names

    if init is not None:
        return init if init in recipe_names() and is_named(init) else None
    name = _recipe_for(levels)
    return None if name == DEFAULTS else name


def _recipe_for(levels: Iterable[str]) -> str:
    """Return the name of the recipe for levels, that of the defaults if there are none of these names."""
    from nclone_env.train import DEFAULTS, recipe_for

    with suppress(NcloneError), warnings.catch_warnings():  # the run reports both
        warnings.simplefilter("ignore")
        return recipe_for(levels)
    return DEFAULTS


def _value(args: Sequence[str], option: str) -> str | None:
    """Return the value of an option, the last one if it is given several times; None if it is not given."""
    return next(iter(_values(args, option)), None)


def _values(args: Sequence[str], option: str) -> list[str]:
    """Return the values of an option where it is given last, none if it is not given."""
    found: list[str] = []
    for index, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name == option:
            behind = itertools.takewhile(lambda word: not word.startswith("--"), args[index + 1 :])
            found = [value] if equals else list(behind)
    return found


def _arguments(folder: Path, episodes: int | None, video: bool) -> str:
    """Return the run folder and the options that are not those of the configuration, for commands to copy."""
    options = [*(["--episodes", str(episodes)] if episodes else []), *([] if video else ["--no-video"])]
    return shlex.join([str(folder), *options])


def _program(local_ranks: int, ranks: int) -> str:
    """Return how this program was started, for commands to copy."""
    if ranks > 1:
        nodes = f" --nnodes={ranks // local_ranks} ..." if ranks > local_ranks else ""
        return f"torchrun --nproc-per-node={local_ranks}{nodes} -m nclone_env train"
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m nclone_env train"
    known = shutil.which("nclone-env") or started.name != "nclone-env"
    return f"{'nclone-env' if known else shlex.quote(str(started))} train"


def compare(
    runs: Positional[tuple[Path, ...]],
    where: tuple[str, ...] = (),
    output: Path = Path("comparison.png"),
    csv: Path | None = None,
    rate: float = 0.9,
    force: bool = False,
) -> int:
    """Compare training runs: print tables, and plot their learning curves.

    Runs that differ only in their seed are one group, named after the options that distinguish it from others on the
    same levels. Its values are means over seeds, with the range in brackets and as a band in the plot. The first table
    has the success of sampled actions on each level, with as many columns as there are groups or levels, whichever are
    fewer. The second has a row for each group: success rates of the evaluation at the end of a run, recent success in
    training and on held-out levels, mean return and steps per second. The third has the interquartile mean of these
    rates over levels and seeds, with the 95 % interval of a stratified bootstrap, and what training took until the
    recent success reached a rate. Runs on other levels have tables and panels of their own.

    Args:
        runs: folders of runs, or checkpoints.
        where: only runs with these options, such as levels=first-steps learning_rate=0.001.
        output: PNG file to write.
        csv: file to write the values to as well, with all digits.
        rate: success rate for which the third table counts timesteps and seconds, above 0 and at most 1.
        force: overwrite existing files.

    Returns:
        The exit status: 1 if a folder was left out, which holds no checkpoint, no update so far, or the same run as
        another; else 0.
    """
    if not runs:
        raise ConfigError("runs: expected folders of runs, got none; pass for example runs/*")
    check_suffix("output", output, ".png")
    if csv is not None:
        check_suffix("csv", csv, ".csv")
    for path in filter(None, (output, csv)):
        check_free(path, force)
    if not 0 < rate <= 1:
        raise ConfigError(f"rate: expected a number above 0 and at most 1, got {rate}")
    require_training_extra()
    from nclone_env.train import compare_runs

    tables, reasons, written = compare_runs(runs, where, output, csv, rate)
    for reason in reasons:
        say(f"left out: {reason}", stream=sys.stderr)
    say(*tables.split("\n"))
    if written:
        say(f"wrote {' and '.join(map(str, written))}")
    return int(bool(reasons))
