"""The beginning of a run, so that its first update is as fast as the others: nothing is left to compile or to touch."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.obs import frame_specs
from nclone_env.options import flat
from nclone_env.train.collect.environments import MakeEnvironments, make_environments
from nclone_env.train.collect.episodes import FINISHED
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import SILENT, Hooks
from nclone_env.train.policies.acting import one_thread_per_call
from nclone_env.train.policies.checkpoint import (
    Checkpoint,
    check_resumable,
    initial_policy,
    initialise_policy,
    load_checkpoint,
    restore_config,
    translated,
)
from nclone_env.train.policies.device import on_host
from nclone_env.train.policies.files import policy_file
from nclone_env.train.policies.network import make_policy
from nclone_env.train.ranks import ALONE, Ranks
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.folder import config_in, launchers, lock_folder_for_all, name_job
from nclone_env.train.runs.record import note_resumption, write_record
from nclone_env.train.runs.resume import restore_run, save_run, score
from nclone_env.train.runs.run import TrainingRun, assemble, make_workers, set_up
from nclone_env.train.runs.steps import compute_returns, for_each_collector
from nclone_env.train.runs.trackers import check_tracker
from nclone_env.train.runs.warm_start import warm_start


@contextmanager
def begun_run(
    config: TrainConfig,
    hooks: Hooks = SILENT,
    resume: str | Path | None = None,
    make_envs: MakeEnvironments = make_environments,
    init: str | Path | None = None,
    overwrite: bool = False,
    ranks: Ranks = ALONE,
) -> Iterator[TrainingRun]:
    """Provide a run before its next update, with a checkpoint in its folder; arguments and errors as of ``train``."""
    initial = None if init is None else policy_file(init)
    if resume is not None and initial is not None:
        raise ConfigError(f"init: expected none with resume, got {init}; a resumed run has its own policy")
    check_tracker(config.track)
    job = launchers(ranks)
    locked, path = lock_folder_for_all(config, resume, overwrite, ranks, job)
    with one_thread_per_call(), closing(locked) as folder:
        checkpoint = None if path is None else ranks.from_first(partial(load_checkpoint, path))
        if checkpoint is not None:
            config = config.continuing(restore_config(checkpoint))
            check_resumable(config, checkpoint)
        other = None if initial is None else initial_policy(config, initial)
        hooks.on_start(folder.path)
        with hooks.stage("environments"):
            run = set_up(config_in(folder, config), make_envs, folder, ranks, hooks)
        with closing(run):
            warm_up(run)
            if other is not None:
                initialise_policy(run.policy, other)
            _begin(run, checkpoint, job, init)
            del checkpoint, other  # their memory
            yield run


def warm_up(run: TrainingRun) -> None:
    """Compile kernels, commit memory and pass once through the pipeline; parameters and counters are left as they are.

    Episodes begin meanwhile: reset the environments afterwards.
    """
    with run.hooks.stage("storage"):
        run.storage.commit()
    with run.hooks.stage("collection"):
        for_each_collector(run, lambda collector, seat: collector.warm_up(seat))
        run.statistics.add(np.zeros(0, FINISHED))
    with run.hooks.stage("update" if run.device is None else f"update on {run.device}"):
        compute_returns(run)
        run.learner.warm_up()
    if run.held_out is not None:
        with run.hooks.stage("held-out levels"):
            run.held_out.warm_up(run.workers)


def short_run(**fields: Any) -> TrainConfig:
    """Return the configuration of a run of two updates with the default network."""
    return TrainConfig.of(num_envs=4, num_steps=2, num_minibatches=2, total_timesteps=16, **fields)


def compile_learner() -> None:
    """Compile the kernels of network and update, which need no environments, only the shapes of observations."""
    config = short_run()
    boxes = {spec.name: spaces.Box(-1, 1, spec.shape, spec.dtype.type) for spec in frame_specs(config.environment)}
    policy = make_policy(config, {name: box.shape or () for name, box in boxes.items()})
    with closing(make_workers(config, ALONE)) as workers:
        parts, learner = assemble(config, policy, spaces.Dict({**boxes}), config.num_envs, workers)
        parts.network.outputs(0, {name: on_host(rows[0]) for name, rows in parts.storage.observation_arrays.items()})
        learner.warm_up()


def _begin(
    run: TrainingRun, checkpoint: Checkpoint | None, job: Collection[str], init: str | Path | None = None
) -> None:
    """Begin, from a clone or not, or continue from a checkpoint; save, so that the run can be resumed from now on."""
    seed = int(np.random.SeedSequence([run.config.seed, 0]).generate_state(1)[0] >> 1)
    for collector in run.collectors:
        collector.reset(seed)
    run.measure_environments()
    if checkpoint is not None:
        restore_run(run, checkpoint)
    elif run.config.clone.warm_start:
        run.hooks.on_warm_start(warm_start(run))
    run.network.load()
    _take_over_folder(run, None if checkpoint is None else checkpoint.path, job, init)
    if run.ranks.first:
        run.curve.begin(run.config.track, flat(run.config))


def _take_over_folder(run: TrainingRun, source: Path | None, job: Collection[str], init: str | Path | None) -> None:
    """Remove another run from the folder, or continue the one it holds; write the first checkpoint."""
    folder = run.folder
    continued = source is not None and source.parent.resolve() == folder.path.resolve()
    if source is not None and continued and source.name == folder.checkpoint.name:
        run.saved = run.counters.updates
    if run.ranks.first and continued and folder.best.exists():
        with suppress(CheckpointError), translated(folder.best):  # a damaged one is replaced by the next
            run.best = score(Rows.of(load_checkpoint(folder.best).curve))
    save_run(run, replaces=not continued)
    if run.ranks.first:
        name_job(folder, job)
        if continued and folder.record.exists():
            note_resumption(folder.path, run.config, run.counters.timesteps)
        else:
            write_record(folder.path, run.config, init, run.ranks, source, run.levels)
