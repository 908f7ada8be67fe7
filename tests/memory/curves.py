"""Curves of memory over a run, with the noise that is seen beside them: what leaks, and what does not.

A shape maps the times of the snapshots, (n,) float64 in 0..1 of the run, and a generator to bytes, (n,) float64, of the
order of one at the end of the run.
"""

from collections.abc import Callable, Mapping

import numpy as np

Generator = np.random.Generator
Shape = Callable[[np.ndarray, Generator], np.ndarray]
WARM_UP = 0.2


def once(t: np.ndarray, at: float | np.ndarray, size: float | np.ndarray = 1.0, during: float = 1e-9) -> np.ndarray:
    """Return memory taken at some times, during a while."""
    places, sizes = np.broadcast_arrays(np.atleast_1d(at), np.asarray(size))
    return (np.clip((t[:, None] - places) / during, 0, 1) * sizes).sum(1)


def container(t: np.ndarray, generator: Generator, factor: float, entries: np.ndarray | None = None) -> np.ndarray:
    """Return a container that grows by a factor whenever it is full, with so many entries, or ever more."""
    phase = generator.uniform()
    count = np.maximum(1.0, 1000 * (t if entries is None else entries))
    return factor ** (np.ceil(np.log(count) / np.log(factor) + phase) - phase) / 1000


LEAKS: Mapping[str, Shape] = {
    "steady": lambda t, g: t,
    "at random": lambda t, g: once(t, np.cumsum(g.exponential(1 / 40, 100)), 1 / 40),
    "each of 6 to 9 episodes": lambda t, g: np.floor(t * g.uniform(6, 9) + g.uniform()) / 7,
    "each of 9 to 14 episodes": lambda t, g: np.floor(t * g.uniform(9, 14) + g.uniform()) / 11,
    "each of 40 to 90 episodes": lambda t, g: np.floor(t * g.uniform(40, 90)) / 60,
    "page by page": lambda t, g: np.floor(t * g.uniform(15, 40)) / 30,
    "in a vector": lambda t, g: container(t, g, 2),
    "in a vector that grows by half": lambda t, g: container(t, g, 1.5),
    "in a list": lambda t, g: container(t, g, 1.125),
    "in a table with values": lambda t, g: (t + container(t, g, 2)) / 2,
    "from 45 % of the run on": lambda t, g: np.maximum(0, t - 0.45),
    "from 80 % of the run on": lambda t, g: np.maximum(0, t - 0.8),
    "beside a large jump": lambda t, g: t + once(t, g.uniform(WARM_UP, 1), g.uniform(1, 30)),
    "beside three jumps": lambda t, g: t + once(t, g.uniform(WARM_UP, 1, 3), g.uniform(0.5, 10, 3)),
    "beside a cache that fills": lambda t, g: t + g.uniform(0.5, 5) * (1 - np.exp(-t / g.uniform(0.02, 0.3))),
    "ever faster": lambda t, g: t**2,
    "ever more slowly": lambda t, g: np.sqrt(t),
    "with pauses": lambda t, g: np.cumsum((t * g.uniform(5, 9) + g.uniform()) % 1 < 0.5) / len(t) * 2,
}
CLEAN: Mapping[str, Shape] = {
    "nothing": lambda t, g: 0 * t,
    "shrinks": lambda t, g: -t * g.uniform(0.1, 3),
    "freed once": lambda t, g: -once(t, g.uniform(0.1, 0.9)),
    "taken once early": lambda t, g: once(t, g.uniform(0.2, 0.45)),
    "taken once late": lambda t, g: once(t, g.uniform(0.5, 1)),
    "taken twice": lambda t, g: once(t, g.uniform(0.1, 1, 2), g.exponential(1, 2)),
    "taken three times": lambda t, g: once(t, g.uniform(0.1, 1, 3), g.exponential(1, 3)),
    "taken four times": lambda t, g: once(t, g.uniform(0, 1, 4), g.exponential(1, 4)),
    "taken slowly": lambda t, g: once(t, g.uniform(0, 0.9), 1, g.uniform(0.02, 0.15)),
    "taken slowly twice": lambda t, g: once(
        t, [g.uniform(0, 0.4), g.uniform(0.5, 0.95)], [1, 0.5], g.uniform(0.02, 0.08)
    ),
    "a cache that is full soon": lambda t, g: np.minimum(t / g.uniform(0.15, 0.4), 1),
    "a cache that is full late": lambda t, g: np.minimum(t / g.uniform(0.45, 0.68), 1),
    "a table that is full": lambda t, g: container(t, g, 2, np.minimum(t, g.uniform(0.1, 0.45))),
    "saturates soon": lambda t, g: 1 - np.exp(-t / g.uniform(0.02, 0.1)),
    "saturates late": lambda t, g: 1 - np.exp(-t / g.uniform(0.1, 0.22)),
    "caches of threads": lambda t, g: (
        np.cumsum(g.poisson(400 * np.exp(-t / g.uniform(0.1, 0.2)) * np.gradient(t))) / 60
    ),
    "taken for a while": lambda t, g: once(t, at := g.uniform(0.1, 0.6)) - once(t, at + g.uniform(0.1, 0.4)),
    "freed at the end": lambda t, g: once(t, 0.2, 1, 0.5) - once(t, 0.95, 1.1),
    "two states": lambda t, g: 1.0 * (g.uniform(size=len(t)) < 0.5),
    "two states by turns": lambda t, g: 1.0 * ((t * g.uniform(2, 6) + g.uniform()) % 1 < 0.5),
    "huge pages": lambda t, g: 0.2 * np.cumsum(g.choice([-1, 0, 1], size=len(t), p=[0.02, 0.96, 0.02])),
    "large for a moment": lambda t, g: 3.0 * (g.uniform(size=len(t)) < 0.05),
}


SLOWING: Mapping[str, Shape] = {
    "for 0.3 to 0.5 runs": lambda t, g: 1 - np.exp(-t / g.uniform(0.3, 0.5)),
    "for 0.5 to 1 run": lambda t, g: 1 - np.exp(-t / g.uniform(0.5, 1)),
    "for 1 to 2 runs": lambda t, g: 1 - np.exp(-t / g.uniform(1, 2)),
}
"""Caches that fill ever more slowly, by a factor of e in that time, and for the whole run."""


def times(generator: Generator) -> np.ndarray:
    """Return the times of the snapshots of a run: evenly, as on a busy machine, or ever less often."""
    count = generator.choice([14, 20, 40, 64])
    forms = (
        np.linspace(0.02, 1, count),
        np.sort(generator.uniform(0.01, 1, count)),
        np.geomspace(max(0.01, 1.15**-count), 1, count),
    )
    return forms[generator.integers(3)]


def _correlated(n: int, generator: Generator) -> np.ndarray:
    keeps = np.exp(-1 / (generator.uniform(0.01, 0.15) * n))
    noise = generator.normal(size=n)
    for number in range(1, n):
        noise[number] = keeps * noise[number - 1] + np.sqrt(1 - keeps**2) * noise[number]
    return noise


def _sawtooth(n: int, generator: Generator) -> np.ndarray:
    return 3 * ((np.arange(n) / (generator.uniform(0.03, 0.3) * n) + generator.uniform()) % 1)


NOISES: tuple[Callable[[int, Generator], np.ndarray], ...] = (
    lambda n, generator: np.zeros(n),
    lambda n, generator: generator.normal(size=n),
    lambda n, generator: generator.exponential(size=n),
    lambda n, generator: 5.0 * (generator.uniform(size=n) < 0.1),
    _correlated,
    _sawtooth,
)
SCALES = 200.0, 5e3, 2e5
"""Bytes of noise; the floor is 6 KB."""
