"""Detection of nan and infinity: from numbers that an update computes anyway; the search begins only when one fails."""

import math
from collections.abc import Iterator

import numpy as np

from nclone_env.errors import NonFiniteError
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
            cause = _parameters(run) if name in ("value", "log probability") else ""
            return f"{name} is {array[tuple(places[0])]} {_place(run, places)}{cause}"
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
    played = f", on {_listed(levels)}" if levels else ""
    others = f" ({len(steps)} steps in all)" if len(steps) > 1 else ""
    number = run.collectors[0].first + index
    return f"at step {step} of the rollout in environment {number}{others}{played}"


def _level(run: Run, step: int, index: int) -> list[str]:
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


def _parameters(run: Run) -> str:
    views = run.parameters.views(run.parameters.vector)
    broken = [name for name, view in views.items() if not np.isfinite(view).all()]
    return f"; not finite by now: parameters {_listed(broken)}" if broken else ""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
