"""The steps of an iteration of the training loop, in their order.

Nan and infinity are detected from numbers that an update computes anyway; the search for what is not finite begins only
when one fails.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain

import numpy as np

from nclone_env._processes import BackgroundError
from nclone_env.errors import ConfigError, NonFiniteError
from nclone_env.train.collect.selection import spread_levels
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.gae import write_returns
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.runs.curve import Row
from nclone_env.train.runs.resume import save_run
from nclone_env.train.runs.run import TrainingRun, assigns_levels
from nclone_env.train.runs.warm_start import evaluate_reference

_RECENT_UPDATES = 100
"""Updates over which the percentile of their time is taken."""
_POLL_SECONDS = 0.2
_MOST_NAMED, _MOST_EXAMINED = 3, 500  # parameters or levels in a message, and steps whose level is looked for


def exchange_levels(run: TrainingRun) -> Row:
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


def is_stopped(run: TrainingRun) -> bool:
    """Return whether any rank is asked to stop; before, wait until it is or generated levels that are due are there."""
    return any(run.ranks.exchange(_is_stopped_here(run)))


def _is_stopped_here(run: TrainingRun) -> bool:
    while not run.hooks.stop():
        if run.stream is None or run.stream.ready(run.counters.updates, _POLL_SECONDS):
            return False
    return True


def collect_rollout(run: TrainingRun) -> None:
    """Fill the storage with the next T steps of all environments."""
    step = run.counters.updates * run.config.num_steps

    def play(seat: int, first: int, last: int) -> None:
        for collector in run.collectors[first:last]:
            collector.play(seat, step)

    run.workers.run(play, 0, len(run.collectors))
    run.statistics.vector_steps += run.config.num_steps
    ended = list(_ended_episodes(run))
    run.counters.episodes += sum(map(len, ended))
    ended = _on_current_levels(run, ended)
    for episodes in ended:
        run.statistics.add(episodes)
    run.selection.update(ended)
    run.counters.timesteps += run.config.batch_size
    run.counters.updates += 1


def _ended_episodes(run: TrainingRun) -> Iterator[np.ndarray]:
    """Yield the ``FINISHED`` records of all ranks in the rollout just collected, in an order that all ranks share.

    Those of one process are the arrays of its groups. Those of several are one array, sorted by step and environment.
    """
    if run.ranks.count == 1:
        for collector in run.collectors:
            yield collector.episodes.episodes
        return
    records = np.concatenate([collector.episodes.episodes for collector in run.collectors])
    places = np.concatenate([each.episodes.places + np.array([0, each.first], np.int32) for each in run.collectors])
    all_records, all_places = (np.concatenate(column) for column in zip(*run.ranks.exchange((records, places))))
    yield all_records[np.lexsort(all_places.T[::-1])]


def _on_current_levels(run: TrainingRun, ended: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return ``FINISHED`` records without those on generated levels that have left; note those on new ones."""
    if run.stream is None:
        return list(ended)
    for collector in run.collectors:
        own = collector.episodes
        run.stream.meet(own.places[:, 1].astype(np.int64) + collector.columns.first, own.episodes)
    return [episodes[episodes["level"] < run.stream.plan.in_use] for episodes in ended]


def compute_returns(run: TrainingRun) -> None:
    """Compute the advantages and returns of the stored rollout."""
    write_returns(run.storage.arrays, run.config.environment.reward.gamma, run.config.ppo.gae_lambda)


def update_policy(run: TrainingRun) -> UpdateStatistics:
    """Update the policy on the stored rollout and prepare the storage for the next one.

    Raises:
        NonFiniteError: if the result is not finite.
    """
    number, ppo = run.counters.updates, run.config.ppo
    rate, entropy = (annealed(run.config, each, number) for each in (ppo.learning_rate, ppo.entropy_coef))
    statistics = run.learner.update(number, rate, entropy, evaluate_reference(run))
    check_finite(run, statistics)
    run.storage.continue_from_end()
    return statistics


def annealed(config: TrainConfig, coefficient: float, update: int) -> float:
    """Return a coefficient of the algorithm in an update, counted from 1."""
    return coefficient * max(0.0, 1 - (update - 1) / config.num_updates) if config.ppo.anneal else coefficient


def evaluate_held_out(run: TrainingRun) -> Row:
    """Return what is measured on the held-out levels after this update; empty if it is not due."""
    interval, updates = run.config.evaluation.interval, run.counters.updates
    if run.held_out is None or interval == 0 or (updates % interval and not run.finished):
        return {}
    started = time.perf_counter()
    measured = run.held_out.play(run.workers, updates)
    return {**measured, "evaluation_seconds": time.perf_counter() - started}


def log_update(
    run: TrainingRun, statistics: UpdateStatistics, collecting: float, learning: float, others: Mapping[str, float]
) -> None:
    """Append the row of this update to the learning curve.

    Args:
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
            "learning_rate": annealed(run.config, run.config.ppo.learning_rate, run.counters.updates),
            "steps_per_second": run.config.batch_size / (collecting + learning),
            "collect_seconds": collecting,
            "learn_seconds": learning,
            **_slowest(run, collecting + learning),
            "kilobytes_per_environment": run.kilobytes_per_environment,
            **others,
        }
    )


def _slowest(run: TrainingRun, seconds: float) -> Row:
    """Return the 95th percentiles of the steps of the slowest group, and of the updates up to this one.

    Lists and arrays would have another size in each update; the allocators keep some of each size, which looks like a
    leak.
    """
    for collector in run.collectors:
        collector.step_seconds.sort()
    steps = max(float(collector.step_seconds[_rank(len(collector.step_seconds))]) for collector in run.collectors)
    collecting, learning = (
        run.curve.rows.last(name, _RECENT_UPDATES - 1) for name in ("collect_seconds", "learn_seconds")
    )
    count = len(collecting) + 1
    updates = chain((seconds,), (float(one + other) for one, other in zip(collecting, learning)))
    return {"step_p95_seconds": steps, "update_p95_seconds": nlargest(count - _rank(count), updates)[-1]}


def _rank(count: int) -> int:
    """Return the place of the smallest number that 95 % do not exceed, among so many in ascending order."""
    return math.ceil(0.95 * count) - 1


def check_finite(run: TrainingRun, statistics: UpdateStatistics) -> None:
    """Check the results of an update, before the storage is prepared for the next rollout.

    A nan or an infinity in rewards or observations reaches the losses or the norm of the gradient, and one in the
    gradient or the optimiser reaches the parameters, so their sums are all there is to look at.

    Raises:
        NonFiniteError: if one is not finite.
    """
    vector = run.parameters.vector
    if math.isfinite(sum(statistics)) and math.isfinite(np.dot(vector, vector)):
        return
    number = run.counters.updates
    raise NonFiniteError(
        f"update {number}: {_first_culprit(run, statistics)}; the run stopped without saving, "
        f"{run.folder.checkpoint} holds its state after update {run.saved}. "
        "Check reward and observations of these levels, or lower learning_rate"
    )


def _first_culprit(run: TrainingRun, statistics: UpdateStatistics) -> str:
    """Describe what is not finite: an array of the first rank that has one, else the statistics."""
    found = [culprit for culprit in run.ranks.exchange(_culprit(run)) if culprit is not None]
    if found:
        return found[0]
    broken = [f"{name} = {value}" for name, value in statistics._asdict().items() if not math.isfinite(value)]
    return f"{', '.join(broken) or 'the step of the optimiser'} from a finite rollout{_parameters(run)}"


def _culprit(run: TrainingRun) -> str | None:
    """Describe the first array that is not finite, in the order in which they are computed; None if there is none."""
    for name, array in _arrays(run):
        places = np.argwhere(~np.isfinite(array))
        if len(places):
            cause = _parameters(run) if name in ("value", "log probability") else ""
            return f"{name} is {array[tuple(places[0])]} {_place(run, places)}{cause}"
    return None


def _arrays(run: TrainingRun) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a rollout stores, (T, N, ...) each, in the order in which it is computed."""
    arrays = run.storage.arrays
    for name, array in run.storage.observation_arrays.items():
        if np.issubdtype(array.dtype, np.floating):
            yield f"observation {name!r}", array[run.storage.frame_stack - 1 :]
    yield "reward", arrays.rewards
    yield "value", arrays.values
    yield "log probability", arrays.log_probs
    yield "value of a final observation", np.where(arrays.truncated, arrays.final_values, 0)
    yield "advantage", arrays.advantages
    yield "return", arrays.returns


def _place(run: TrainingRun, places: np.ndarray) -> str:
    """Describe the places (k, 2 or more) of entries: the first, and all levels."""
    step, index = places[0, :2]
    steps = np.unique(places[:, :2], axis=0)
    levels = sorted({level for place in steps[:_MOST_EXAMINED] for level in _level(run, *place)})
    played = f", on {_listed(levels)}" if levels else ""
    others = f" ({len(steps)} steps in all)" if len(steps) > 1 else ""
    number = run.collectors[0].first + index
    return f"at step {step} of the rollout in environment {number}{others}{played}"


def _level(run: TrainingRun, step: int, index: int) -> list[str]:
    """Return the name of the level that an environment plays at a step, if it is known."""
    group = next(group for group in run.collectors if group.columns.first <= index < group.columns.last)
    own, names = index - group.columns.first, group.envs.level_names
    ends = group.episodes.places[:, 0][group.episodes.places[:, 1] == own]
    levels = group.episodes.episodes["level"][group.episodes.places[:, 1] == own]
    if (ends >= step).any():
        return [names[levels[ends >= step][0]]]
    if run.config.num_steps - 1 in ends:  # the next episode has no step yet
        return []
    return [names[group.levels[own]]]


def _parameters(run: TrainingRun) -> str:
    views = run.parameters.views(run.parameters.vector)
    broken = [name for name, view in views.items() if not np.isfinite(view).all()]
    return f"; not finite by now: parameters {_listed(broken)}" if broken else ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
