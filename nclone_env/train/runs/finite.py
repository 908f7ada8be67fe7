"""Detection of nan and infinity: from numbers that an update computes anyway; the search begins only when one fails."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from nclone_env.errors import NonFiniteError
from nclone_env.train.collect.collector import Collector
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.runs.run import Run

_MOST_NAMED, _MOST_EXAMINED = 3, 500


def check_finite(run: Run, statistics: UpdateStatistics) -> None:
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


def _first_culprit(run: Run, statistics: UpdateStatistics) -> str:
    """Describe what is not finite: an array of the first rank that has one, else the statistics."""
    found = [culprit for culprit in run.ranks.exchange(_culprit(run)) if culprit is not None]
    if found:
        return found[0]
    broken = [f"{name} = {value}" for name, value in statistics._asdict().items() if not math.isfinite(value)]
    return f"{', '.join(broken) or 'the step of the optimiser'} from a finite rollout{_parameters(run)}"


def _culprit(run: Run) -> str | None:
    """Describe the first array that is not finite, in the order in which they are computed; None if there is none."""
    for name, array in _arrays(run):
        places = np.argwhere(~np.isfinite(array))
        if len(places):
            return f"{name} is {array[tuple(places[0])]} {_place(run, places)}{_parameters_too(run, name)}"
    return None


def _arrays(run: Run) -> Iterator[tuple[str, np.ndarray]]:
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


def _place(run: Run, places: np.ndarray) -> str:
    """Describe the places (k, 2 or more) of entries: the first, and all levels."""
    step, index = places[0, :2]
    steps = np.unique(places[:, :2], axis=0)
    levels = sorted({level for place in steps[:_MOST_EXAMINED] for level in _level(run, *place)})
    more = f" and {len(levels) - _MOST_NAMED} more" if len(levels) > _MOST_NAMED else ""
    played = f", on {', '.join(levels[:_MOST_NAMED])}{more}" if levels else ""
    others = f" ({len(steps)} steps in all)" if len(steps) > 1 else ""
    number = run.collectors[0].first + index
    return f"at step {step} of the rollout in environment {number}{others}{played}"


def _level(run: Run, step: int, index: int) -> Iterator[str]:
    """Yield the name of the level that an environment plays at a step, if it is known."""
    collector = next(group for group in run.collectors if group.columns.first <= index < group.columns.last)
    level = _level_index(collector, step, index - collector.columns.first)
    if level is not None:
        yield collector.envs.level_names[level]


def _level_index(collector: Collector, step: int, index: int) -> int | None:
    places = collector.episodes.places
    later = np.flatnonzero((places[:, 1] == index) & (places[:, 0] >= step))
    if len(later):
        return int(collector.episodes.episodes["level"][later[0]])
    began = bool(((places[:, 1] == index) & (places[:, 0] == collector.columns.storage.num_steps - 1)).any())
    return None if began else int(collector.levels[index])  # of the last step: the next one's level is not known yet


def _parameters_too(run: Run, name: str) -> str:
    """Name the parameters that are not finite if they may be the cause."""
    return _parameters(run) if name in ("value", "log probability") else ""


def _parameters(run: Run) -> str:
    views = run.parameters.views(run.parameters.vector)
    broken = [name for name, view in views.items() if not np.isfinite(view).all()]
    more = f" and {len(broken) - _MOST_NAMED} more" if len(broken) > _MOST_NAMED else ""
    return f"; not finite by now: parameters {', '.join(broken[:_MOST_NAMED])}{more}" if broken else ""
