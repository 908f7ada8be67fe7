"""The steps of an iteration of the training loop, in their order.

Nan and infinity are detected from numbers that an update computes anyway; the search for what is not finite begins only
when one fails.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from heapq import nlargest
from itertools import chain

import numpy as np

from nclone_env.errors import NonFiniteError
from nclone_env.train.collect.collector import Collector
from nclone_env.train.collect.device import DeviceCollector
from nclone_env.train.collect.rollout import RolloutStorage, StepFields
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.gae import write_returns
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.policies.device import on_host
from nclone_env.train.runs.curve import Row
from nclone_env.train.runs.run import TrainingRun
from nclone_env.train.runs.warm_start import evaluate_reference

_RECENT_UPDATES = 100
"""Updates over which the percentile of their time is taken."""


def is_stopped(run: TrainingRun) -> bool:
    """Return whether any rank is asked to stop."""
    return any(run.ranks.exchange(run.hooks.stop()))


def collect_rollout(run: TrainingRun) -> None:
    """Fill the storage with the next T steps of all environments."""
    step = run.counters.updates * run.config.num_steps
    for_each_collector(run, lambda collector, seat: collector.play(seat, step))
    run.statistics.vector_steps += run.config.num_steps
    run.counters.timesteps += run.config.batch_size
    run.counters.updates += 1
    if run.device is None:
        _record_episodes(run)


def for_each_collector(run: TrainingRun, call: Callable[[Collector | DeviceCollector, int], None]) -> None:
    """Call with each collector and the seat of a thread; on a device in this thread, whose libraries it has set up."""

    def work(seat: int, first: int, last: int) -> None:
        for collector in run.collectors[first:last]:
            call(collector, seat)

    if run.device is None:
        run.workers.run(work, 0, len(run.collectors))
    else:
        work(0, 0, len(run.collectors))


def _record_episodes(run: TrainingRun) -> None:
    """Take in the episodes that ended in the rollout; on a device after the update, before which nothing waits."""
    for collector in run.collectors:
        collector.finish()
    ended = list(_ended_episodes(run))
    run.counters.episodes += sum(map(len, ended))
    for episodes in ended:
        run.statistics.add(episodes)
    run.selection.update(ended)


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


def compute_returns(run: TrainingRun) -> None:
    """Compute the advantages and returns of the stored rollout; on a device they are computed with it."""
    if isinstance(run.storage, RolloutStorage):
        write_returns(run.storage.arrays, run.config.environment.reward.gamma, run.config.ppo.gae_lambda)


def update_policy(run: TrainingRun) -> UpdateStatistics:
    """Update the policy on the stored rollout and prepare the storage for the next one."""
    number, ppo = run.counters.updates, run.config.ppo
    rate, entropy = (annealed(run.config, each, number) for each in (ppo.learning_rate, ppo.entropy_coef))
    statistics = run.learner.update(number, rate, entropy, evaluate_reference(run))
    check_finite(run, statistics)
    run.storage.continue_from_end()
    if run.device is not None:
        _record_episodes(run)
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
    """Append the row of this update to the learning curve: seconds of its phases, and columns about held-out levels."""
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
    """
    vector = run.parameters.vector
    if math.isfinite(sum(statistics)) and math.isfinite(np.dot(vector, vector)):
        return
    of_ranks = run.ranks.exchange(next((name for name, array in _arrays(run) if not np.isfinite(array).all()), None))
    broken = [name for name, value in statistics._asdict().items() if not math.isfinite(value)]
    parameters = [name for name, view in run.parameters.views(vector).items() if not np.isfinite(view).all()]
    culprit = next(filter(None, of_ranks), ", ".join(broken or parameters) or "the sum of the squared parameters")
    raise NonFiniteError(
        f"update {run.counters.updates}: expected finite numbers, got nan or infinity in: {culprit}; the run stopped "
        f"without saving, {run.folder.checkpoint} holds its state after update {run.saved}. "
        "Check reward and observations, or lower learning_rate"
    )


def _arrays(run: TrainingRun) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a rollout stores, (T, N, ...) each, in the order in which it is computed."""
    arrays = StepFields(*map(on_host, run.storage.arrays))
    for name, seen in run.storage.observation_arrays.items():
        array = on_host(seen)
        if np.issubdtype(array.dtype, np.floating):
            yield f"observation {name!r}", array[run.storage.frame_stack - 1 :]
    yield "rewards", arrays.rewards
    yield "values", arrays.values
    yield "log probabilities", arrays.log_probs
    yield "values of final observations", np.where(arrays.truncated, arrays.final_values, 0)
    yield "advantages", arrays.advantages
    yield "returns", arrays.returns
