"""The exchange of generated levels between two updates."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from nclone_env._processes import BackgroundError
from nclone_env.errors import ConfigError
from nclone_env.train.collect.selection import spread_levels
from nclone_env.train.runs.curve import Row
from nclone_env.train.runs.resume import save_run
from nclone_env.train.runs.run import Run, assigns_levels

_POLL_SECONDS = 0.2


def exchange_levels(run: Run) -> Row:
    """Swap in the next batch of generated levels when it is due; return its columns of the learning curve.

    Episodes under way end on their level. What was measured on the levels that leave is dropped.

    Raises:
        BackgroundError, ConfigError: as :meth:`LevelStream.advance`; the run is saved before.
    """
    stream = run.stream
    if stream is None or not stream.due(run.counters.updates):
        return {}
    success = stream.first_success()
    try:
        waited = stream.advance(run.counters.updates)
    except (ConfigError, BackgroundError):  # no more levels, or no process that makes them
        save_run(run)
        raise
    started = time.perf_counter()
    levels, plan = stream.levels, stream.plan
    for group in run.groups:
        group.exchange_levels(levels)
    run.statistics.renew([level.name for level in levels[: plan.in_use]], plan.kept)
    share = run.ranks.share(run.config.num_envs)
    spread_levels(run.groups, share, plan.in_use, assign=assigns_levels(run.config, plan.in_use))
    run.selection.renew(plan.kept, stream.current.starts)
    exchanged = time.perf_counter() - started
    return {"new_level_success": success, "wait_seconds": waited, "exchange_seconds": exchanged}


def is_stopped(run: Run) -> bool:
    """Return whether any rank is asked to stop; before, wait until it is or generated levels that are due are there."""
    return any(run.ranks.exchange(_is_stopped_here(run)))


def _is_stopped_here(run: Run) -> bool:
    while not run.hooks.stop():
        if run.stream is None or run.stream.ready(run.counters.updates, _POLL_SECONDS):
            return False
    return True


def on_current_levels(run: Run, ended: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the episodes of a rollout without those on generated levels that have left; note those on new ones.

    Args:
        run: the run.
        ended: ``FINISHED`` records, an array or several.
    """
    if run.stream is None:
        return list(ended)
    for collector in run.collectors:
        own = collector.episodes
        run.stream.meet(own.places[:, 1].astype(np.int64) + collector.columns.first, own.episodes)
    return [episodes[episodes["level"] < run.stream.plan.in_use] for episodes in ended]
