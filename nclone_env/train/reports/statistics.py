"""Statistics of runs of several seeds: interquartile means with intervals, and the time of training.

Definitions follow Agarwal et al., Deep Reinforcement Learning at the Edge of the Statistical Precipice, 2021. Nothing
here needs torch, so scores of the benchmark do not either.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nclone_env.errors import ConfigError, as_array, shortened

_SAMPLES = 2000
_CHUNK = 100


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Return values of the caller, one at least, as float64 of any shape."""
    expected = f"{name}: expected numbers, one at least"
    array = as_array(values, ConfigError, expected)
    if array.dtype.kind not in "biuf" or not array.size:
        raise ConfigError(f"{expected}, got {shortened(values)}")
    return array.astype(np.float64)


def interquartile_mean(values: np.ndarray) -> float:
    """Return the mean of what is left of all values without the lowest and the highest quarter, rounded down."""
    ordered = np.sort(as_numbers("values", values), axis=None)
    cut = int(0.25 * ordered.size)
    return float(ordered[cut : ordered.size - cut].mean())


def interval(values: np.ndarray, samples: int = _SAMPLES, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the interquartile mean of (seeds, levels) by a stratified bootstrap's percentiles.

    Each sample draws as many seeds as there are, with replacement, for each level on its own.
    """
    random, (seeds, levels) = np.random.default_rng(seed), values.shape
    columns, cut = np.arange(levels), int(0.25 * values.size)
    means = np.empty(samples)
    for first in range(0, samples, _CHUNK):
        drawn = values[random.integers(seeds, size=(min(_CHUNK, samples - first), seeds, levels)), columns]
        ordered = np.sort(drawn.reshape(len(drawn), -1), axis=1)
        means[first : first + len(drawn)] = ordered[:, cut : values.size - cut].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def training_seconds(curve: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """Return the seconds of training until each row of a learning curve, (k,) float64, without evaluations.

    They are NaN where a column is missing.
    """
    rows = [(row.get("timesteps", np.nan), row.get("steps_per_second", np.nan)) for row in curve]
    steps, speeds = np.array(rows, np.float64).reshape(-1, 2).T
    return np.cumsum(np.diff(steps, prepend=0.0) / speeds)
