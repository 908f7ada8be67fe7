"""Scores: rates of success and speed, their interquartile means with intervals, and performance profiles.

Definitions follow Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice, 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nclone_env.benchmark.attempts import Run
from nclone_env.benchmark.track import Track
from nclone_env.train import as_numbers, interquartile_mean, interval

MEASURES = ("success", "probable", "any", "speed")
"""Success of sampled actions, of the most probable actions, of any of the attempts; and speed."""
_DIGITS, _SAMPLES = 4, 2000


@dataclass(frozen=True)
class Score:
    """A measure over all levels and seeds."""

    iqm: float
    """Interquartile mean over levels and seeds."""
    mean: float
    """Mean."""
    low: float | None
    """Least value of the 95 % interval by a bootstrap: of the interquartile mean over seeds, None with one seed; on a
    track of authors, of the mean over authors, their levels and seeds."""
    high: float | None
    """Greatest value."""


def measures(track: Track, run: Run) -> dict[str, np.ndarray]:
    """Return the measures of a run by name, (L,) float64 each; without ``probable`` if it has no such episodes.

    ``speed`` is the mean over the attempts of the frames of the best known solution divided by those of the attempt, 0
    where it is lost. A policy that beats the solution known when the track was made has more than 1.
    """
    best = np.array([level.frames for level in track.levels], np.float64)
    ends = run.sampled.ends.reshape(len(best), -1)
    won = ends["won"].astype(np.float64)
    found = {
        "success": won.mean(axis=1),
        "any": won.max(axis=1),
        "speed": (won * best[:, None] / np.maximum(ends["frames"], 1)).mean(axis=1),
    }
    if run.probable is not None:
        found["probable"] = run.probable.ends["won"].astype(np.float64)
    return found


def scores(track: Track, runs: Sequence[Run]) -> dict[str, Score]:
    """Return the score of each measure that all runs have, rounded to four digits."""
    rows = [measures(track, run) for run in runs]
    names = [name for name in MEASURES if all(name in row for row in rows)]
    return {name: score(np.stack([row[name] for row in rows]), track.authors) for name in names}


def score(values: np.ndarray, authors: int = 0) -> Score:
    """Return the score of (seeds, levels) values, on levels of so many authors if these stand for others."""
    low, high = None, None
    if authors:
        low, high = interval_over_authors(values, authors)
    elif len(values) > 1:
        low, high = interval(values)
    rounded = [None if value is None else round(float(value), _DIGITS) for value in (low, high)]
    return Score(round(interquartile_mean(values), _DIGITS), round(float(values.mean()), _DIGITS), *rounded)


def interval_over_authors(values: np.ndarray, authors: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean of (seeds, levels) by a bootstrap's percentiles over authors and levels.

    Each sample draws as many authors as there are, with replacement; of each of these as many levels as it has; and for
    each of these as many seeds. The levels of an author are one after another, equally many of each.
    """
    random, (seeds, levels) = np.random.default_rng(0), values.shape
    each, means = levels // authors, np.empty(_SAMPLES)
    for sample in range(_SAMPLES):
        first = each * random.integers(authors, size=(authors, 1))
        drawn = (first + random.integers(each, size=(authors, each))).ravel()
        means[sample] = values[random.integers(seeds, size=(seeds, levels)), drawn].mean()
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def headline(track: Track, score: Score) -> float:
    """Return the figure that a score's interval is about: the mean on a track of authors, else the interquartile one.

    Where most levels are not won by anyone yet, the quarters that an interquartile mean leaves out hold all successes.
    """
    return score.mean if track.authors else score.iqm


def performance_profile(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of levels and seeds whose value is greater than each threshold, (T,) float64.

    Args:
        values: (seeds, levels).
        thresholds: (T,).
    """
    found, limits = as_numbers("values", values), as_numbers("thresholds", thresholds)
    return (found.ravel()[None] > limits.ravel()[:, None]).mean(axis=1)


def normalised(track: Track, found: Mapping[str, Score], name: str) -> float:
    """Return the mean of a measure between that of random play, 0, and 1."""
    least = track.random[name]
    return (found[name].mean - least) / (1.0 - least)
