"""Preparation of a run, so that its first update is as fast as the others: nothing is left to compile or to touch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from nclone_env.train.collect.episodes import FINISHED
from nclone_env.train.learn.gae import write_returns
from nclone_env.train.runs.run import Run

Report = Callable[[str, float], None]
"""Called with the name of a stage and its seconds."""


def warm_up(run: Run, report: Report) -> None:
    """Compile kernels, commit memory and pass once through the pipeline; parameters and counters are left as they are.

    Episodes begin meanwhile: reset the environments afterwards.
    """
    with stage("storage", report):
        run.storage.commit()
    with stage("collection", report):
        run.workers.run(run.job, lambda seat, first, last: _play(run, seat, first, last), 0, len(run.collectors))
        run.statistics.add(np.zeros(0, FINISHED))
    with stage("update" if run.device is None else f"update on {run.device}", report):
        write_returns(run.storage.arrays, run.config.environment.reward.gamma, run.config.ppo.gae_lambda)
        run.learner.warm_up()
    if run.held_out is not None:
        with stage("held-out levels", report):
            run.held_out.warm_up(run.workers, run.job)


def _play(run: Run, seat: int, first: int, last: int) -> None:
    for collector in run.collectors[first:last]:
        collector.warm_up(seat)


@contextmanager
def stage(name: str, report: Report) -> Iterator[None]:
    """Report a stage of the preparation with its seconds."""
    started = time.perf_counter()
    yield
    report(name, time.perf_counter() - started)
