"""The training loop: collection, advantage estimation, update, logging and saving in their order."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

from nclone_env.errors import checked
from nclone_env.train.collect.environments import MakeEnvironments, make_environments
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import SILENT, Hooks
from nclone_env.train.policies.network import ActorCritic
from nclone_env.train.ranks import ALONE, Ranks
from nclone_env.train.runs.begin import begun_run, short_run
from nclone_env.train.runs.curve import Row
from nclone_env.train.runs.resume import save_run
from nclone_env.train.runs.run import Counters, TrainingRun
from nclone_env.train.runs.steps import (
    collect_rollout,
    compute_returns,
    evaluate_held_out,
    is_stopped,
    log_update,
    update_policy,
)
from nclone_env.train.runs.survival import survival_of


@dataclass(frozen=True)
class TrainResult:
    """Result of a training run."""

    policy: ActorCritic
    curve: list[Row]
    counters: Counters
    solved: bool
    """Whether ``stop_at_success`` was reached."""
    interrupted: bool
    """Whether ``stop`` ended the run before it was complete."""
    checkpoint: Path
    """The latest checkpoint, in the folder of the run."""
    held_out: tuple[str, ...]
    """Digests of the held-out levels."""


@checked()
def train(
    config: TrainConfig,
    hooks: Hooks = SILENT,
    *,
    resume: str | Path | None = None,
    make_envs: MakeEnvironments = make_environments,
    init: str | Path | None = None,
    overwrite: bool = False,
    ranks: Ranks = ALONE,
) -> TrainResult:
    """Train a policy; write checkpoints, the learning curve as CSV and TensorBoard files to the run folder.

    The run is saved too when ``hooks.on_update`` raises an error, and on Ctrl-C: it ends the run after the update.

    Args:
        config: configuration of the run.
        hooks: told how far the run is, and asked whether to stop.
        resume: checkpoint, or folder of a run, to continue from; the run then ends as it would have without the
            interruption. Options that ``TrainConfig.of`` was not given are those of that run. Without a ``name`` it
            continues in the folder of the checkpoint.
        make_envs: creates a vector environment for each group of environments.
        init: checkpoint, or folder of a run, whose policy the run begins with, except for the value function.
        overwrite: replace the run that the folder of ``name`` holds.
        ranks: the processes that train together, each of which makes this call; rank 0 writes the files.

    Raises:
        CheckpointError: if ``resume`` or ``init`` cannot be read or does not match ``config``.
        ConfigError: if both are given, or ``held_out`` or ``starts`` do not fit the levels,
            or no demonstration of ``config.clone.warm_start`` can be used.
        RunFolderError: if the folder holds another run, or another process is training in it.
        NonFiniteError: if a reward, an observation, a loss or a parameter is nan or infinite.
        RankError: if another rank was lost.
        StoppedError: if ``hooks.stop`` returned True before there was a run to save.
    """
    with begun_run(config, hooks, resume, make_envs, init, overwrite, ranks) as run:
        with _interrupts_after_updates(run):
            while not run.finished and not is_stopped(run):
                row = advance(run)
                try:
                    hooks.on_update(row)
                except BaseException:
                    if ranks.count == 1:  # else the others are in their next update
                        save_run(run)
                    raise
                if run.counters.updates % config.checkpoint_interval == 0:
                    save_run(run)
                    _tell_survival(run)
            save_run(run)
            _tell_survival(run)
        return TrainResult(
            policy=run.policy,
            curve=run.curve.rows[:],
            counters=run.counters,
            solved=run.solved,
            interrupted=not run.finished,
            checkpoint=run.folder.checkpoint,
            held_out=() if run.held_out is None else run.held_out.digests,
        )


def _tell_survival(run: TrainingRun) -> None:
    """Tell the hooks, once, if the run only learns to stay alive."""
    survival = None if run.only_survives else survival_of(run)
    if survival is not None:
        run.only_survives = True
        run.hooks.on_survival(survival)


@contextmanager
def _interrupts_after_updates(run: TrainingRun) -> Iterator[None]:
    """Let Ctrl-C in a program that has no handler for it end the run after an update, saved; a second one at once."""
    default, asked, stop = signal.default_int_handler, list[int](), run.hooks.stop
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not default:
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, default)

    run.hooks = replace(run.hooks, stop=lambda: bool(asked) or stop())
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, default)
    if asked:
        raise KeyboardInterrupt


def compile_kernels() -> None:
    """Compile the kernels of a run, or load them: make two updates."""
    with TemporaryDirectory() as folder:
        train(short_run(output=folder))


def advance(run: TrainingRun) -> Row:
    """Collect a rollout, update the policy, evaluate it where it is due; return the row of the learning curve."""
    started = time.perf_counter()
    collect_rollout(run)
    compute_returns(run)
    collected = time.perf_counter()
    statistics = update_policy(run)
    learned = time.perf_counter()
    if run.device is not None:  # collection was begun, not waited for
        collected = started + float(run.collectors[0].step_seconds.sum())
    evaluated = evaluate_held_out(run)
    log_update(run, statistics, collected - started, learned - collected, evaluated)
    return run.curve.rows[-1]
