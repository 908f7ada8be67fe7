"""The training loop: the order of collection, advantage estimation, update and logging."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nclone_env.errors import ConfigError, StoppedError
from nclone_env.train.config import TrainConfig
from nclone_env.train.environments import MakeEnvironments, make_environments
from nclone_env.train.learn.gae import write_returns
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.levels.progress import OnLevel, unnoticed
from nclone_env.train.policy import ActorCritic
from nclone_env.train.ranks import ALONE, Ranks
from nclone_env.train.runs.curve import Row
from nclone_env.train.runs.exchange import ended_episodes
from nclone_env.train.runs.finite import check_finite
from nclone_env.train.runs.folder import checkpoint_file, settled_config
from nclone_env.train.runs.initial import initialise_policy
from nclone_env.train.runs.renewal import on_current_levels, renew_levels, stopped_by
from nclone_env.train.runs.restart import claim
from nclone_env.train.runs.resume import Source, load_source, restore_run, save_run, saved_levels, take_over_folder
from nclone_env.train.runs.run import Counters, Run, one_thread_per_call, set_up
from nclone_env.train.runs.settled import check_resumable
from nclone_env.train.runs.warm_start import WarmStart, evaluate_reference, warm_start
from nclone_env.train.runs.warm_up import Report, stage, warm_up


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


def train(
    config: TrainConfig,
    resume: str | Path | None = None,
    make_envs: MakeEnvironments = make_environments,
    on_update: Callable[[Row], None] = lambda row: None,
    *,
    init: str | Path | None = None,
    overwrite: bool = False,
    on_start: Callable[[Path], None] = lambda folder: None,
    on_stage: Report = lambda name, seconds: None,
    on_level: OnLevel = unnoticed,
    on_warm_start: Callable[[WarmStart], None] = lambda done: None,
    stop: Callable[[], bool] = lambda: False,
    ranks: Ranks = ALONE,
) -> TrainResult:
    """Train a policy; write checkpoints, the learning curve as CSV and TensorBoard files to the run folder.

    Args:
        config: configuration of the run.
        resume: checkpoint, or folder of a run, to continue from; the run then ends as it would have without the
            interruption. Without a ``name`` it continues in the folder of the checkpoint.
        make_envs: creates a vector environment for each group of environments.
        on_update: called with the row of the learning curve after each update.
        init: checkpoint, or folder of a run, whose policy the run begins with, except for the value function.
        overwrite: replace the run that the folder of ``name`` holds.
        on_start: called with the folder of the run before anything is computed.
        on_stage: called with the name and the seconds of each stage of the preparation.
        on_level: called as levels are planned or generated in the preparation, in each rank: what is done to them, to
            how many so far, and to how many in all.
        on_warm_start: called after demonstrations were cloned.
        stop: asked before each update; once it returns True in any rank the run is saved and ends. Also asked where
            ``on_level`` is called.
        ranks: the processes that train together, each of which makes this call; rank 0 writes the files.

    Raises:
        CheckpointError: if ``resume`` or ``init`` cannot be read or does not match ``config``.
        ConfigError: if both are given, or ``held_out`` or ``starts`` do not fit the levels,
            or no demonstration of ``config.clone.warm_start`` can be used.
        RunFolderError: if the folder holds another run, or another process is training in it.
        NonFiniteError: if a reward, an observation, a loss or a parameter is nan or infinite.
        RankError: if another rank was lost.
        StoppedError: if ``stop`` returned True before there was a run to save.
    """
    initial = None if init is None else checkpoint_file(init)
    if resume is not None and initial is not None:
        raise ConfigError(f"init: expected none with resume, got {init}; a resumed run has its own policy")
    claimed, path = claim(config, resume, overwrite, ranks)
    with one_thread_per_call(), closing(claimed) as folder:
        source = load_source(path, ranks)
        if source is not None:
            check_resumable(config, source.checkpoint, source.path)
        on_start(folder.path)
        with stage("environments", on_stage):
            generated = saved_levels(source) if source is not None and config.streams else None
            run = set_up(
                settled_config(config, folder), make_envs, folder, ranks, generated, _stoppable(on_level, stop)
            )
        with closing(run):
            warm_up(run, on_stage)
            if initial is not None:
                initialise_policy(run.policy, run.config, initial)
            begin(run, source, on_warm_start)
            del source  # its memory
            while not run.finished and not any(ranks.exchange(stopped_by(run, stop))):
                on_update(advance(run))
                if run.counters.updates % config.checkpoint_interval == 0:
                    save_run(run)
            save_run(run)
            return _result(run)


def _stoppable(on_level: OnLevel, stop: Callable[[], bool]) -> OnLevel:
    """Return ``on_level`` such that it raises ``StoppedError`` where ``stop`` returns True."""

    def call(what: str, done: int, count: int) -> None:
        on_level(what, done, count)
        if stop():
            raise StoppedError(f"stop: asked to end with {done:,}/{count:,} {what}, before the first update")

    return call


def _result(run: Run) -> TrainResult:
    return TrainResult(
        policy=run.policy,
        curve=run.curve.rows[:],
        counters=run.counters,
        solved=run.solved,
        interrupted=not run.finished,
        checkpoint=run.folder.checkpoint,
        held_out=() if run.held_out is None else run.held_out.digests,
    )


def begin(run: Run, source: Source | None, on_warm_start: Callable[[WarmStart], None] = lambda done: None) -> None:
    """Begin, from a clone or not, or continue from a checkpoint; save, so that the run can be resumed from now on."""
    seed = int(np.random.SeedSequence([run.config.seed, 0]).generate_state(1)[0] >> 1)
    for collector in run.collectors:
        collector.reset(seed)
    run.measure_environments()
    if source is not None:
        restore_run(run, source)
    elif run.config.clone.warm_start:
        on_warm_start(warm_start(run))
    run.network.load()
    take_over_folder(run, None if source is None else source.path)
    run.curve.begin()


def advance(run: Run) -> Row:
    """Collect a rollout, update the policy, evaluate it where it is due; return the row of the learning curve.

    Generated levels are exchanged before, where that is due.
    """
    renewed = renew_levels(run)
    started = time.perf_counter()
    collect_rollout(run)
    compute_returns(run)
    collected = time.perf_counter()
    statistics = update_policy(run)
    learned = time.perf_counter()
    evaluated = evaluate_held_out(run)
    log_update(run, statistics, collected - started, learned - collected, {**evaluated, **renewed})
    return run.curve.rows[-1]


def collect_rollout(run: Run) -> None:
    """Fill the storage with the next T steps of all environments."""
    step = run.counters.updates * run.config.num_steps

    def play(seat: int, first: int, last: int) -> None:
        for collector in run.collectors[first:last]:
            collector.play(seat, step)

    run.workers.run(run.job, play, 0, len(run.collectors))
    run.statistics.vector_steps += run.config.num_steps
    ended = list(ended_episodes(run))
    run.counters.episodes += sum(map(len, ended))
    ended = on_current_levels(run, ended)
    for episodes in ended:
        run.statistics.add(episodes)
    run.selection.update(ended)
    run.counters.timesteps += run.config.batch_size
    run.counters.updates += 1


def compute_returns(run: Run) -> None:
    """Compute the advantages and returns of the stored rollout."""
    write_returns(run.storage.arrays, run.config.environment.reward.gamma, run.config.ppo.gae_lambda)


def update_policy(run: Run) -> UpdateStatistics:
    """Update the policy on the stored rollout and prepare the storage for the next one.

    Raises:
        NonFiniteError: if the result is not finite.
    """
    number = run.counters.updates
    rate, entropy = learning_rate(run.config, number), entropy_coefficient(run.config, number)
    statistics = run.learner.update(number, rate, entropy, evaluate_reference(run))
    check_finite(run, statistics)
    run.storage.continue_from_end()
    return statistics


def learning_rate(config: TrainConfig, update: int) -> float:
    """Return the learning rate of an update, counted from 1."""
    return config.ppo.learning_rate * (_remaining(config, update) if config.ppo.anneal else 1.0)


def entropy_coefficient(config: TrainConfig, update: int) -> float:
    """Return the coefficient of the entropy bonus in an update, counted from 1."""
    return config.ppo.entropy_coef * (_remaining(config, update) if config.ppo.anneal else 1.0)


def _remaining(config: TrainConfig, update: int) -> float:
    """Return the share of the run that is left at an update, 1 at the first."""
    return max(0.0, 1 - (update - 1) / config.num_updates)


def evaluate_held_out(run: Run) -> Row:
    """Return what is measured on the held-out levels after this update; empty if it is not due."""
    interval, updates = run.config.evaluation.interval, run.counters.updates
    if run.held_out is None or interval == 0 or (updates % interval and not run.finished):
        return {}
    started = time.perf_counter()
    measured = run.held_out.play(run.workers, run.job, updates)
    return {**measured, "evaluation_seconds": time.perf_counter() - started}


def log_update(
    run: Run, statistics: UpdateStatistics, collecting: float, learning: float, others: Mapping[str, float]
) -> None:
    """Append the row of this update to the learning curve.

    Args:
        run: the run.
        statistics: of the update.
        collecting: seconds of the collection.
        learning: seconds of the update.
        others: columns about held-out and generated levels.
    """
    run.curve.append(
        {
            "timesteps": run.counters.timesteps,
            "updates": run.counters.updates,
            "episodes": run.counters.episodes,
            **run.statistics.summary(),
            **statistics._asdict(),
            "learning_rate": learning_rate(run.config, run.counters.updates),
            "steps_per_second": run.config.batch_size / (collecting + learning),
            "collect_seconds": collecting,
            "learn_seconds": learning,
            "kilobytes_per_environment": run.kilobytes_per_environment,
            **others,
        }
    )
