"""Memory and speed of 1 to 1,000 environments: our vector environment, those of Gymnasium and Stable-Baselines3.

Every cell is measured in fresh processes, which take turns, so that background load affects all alike. Memory is that
of the process and its children, as PSS without file pages, above that of the process when it had imported what the cell
needs. The first environment also loads the compiled code, about 43 MB in every process; *further* is the growth from
the smallest number of environments on, for each. Steps are random actions at frame_skip 4 with same-step autoreset, and
episodes end after at most 61 steps. Single environments share their levels within a process. Cells with more processes
than the limits are left out, and not estimated. The rows of Stable-Baselines3 need the extra ``sb3``.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import psutil
import tyro
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from matplotlib.figure import Figure

from nclone_env import EnvironmentConfig, NPlusPlusEnv
from nclone_env._files import fill_file
from profiling.contracts import LEVELS, SHORT_EPISODE, STATE, begin, random_actions
from profiling.measure import describe, in_fresh_process

SAME_STEP = AutoresetMode.SAME_STEP
WARM_CALLS = 65  # over an episode
OURS, ASYNC, SUBPROCESSES = "native, out=", "Gymnasium Async", "SB3 Subproc"
Stepped = tuple[Callable[[np.ndarray], object], Callable[[], object]]
"""The call that steps all environments, and the one that closes them."""


class Cell(NamedTuple):
    """Bytes above an empty process, and environment steps/s."""

    size: float
    speed: float


def native(contract: str, config: EnvironmentConfig, num_envs: int) -> Stepped:
    """Make our vector environment under a contract."""
    env, arguments = begin(contract, config, num_envs, autoreset_mode=SAME_STEP)
    return partial(env.step, **arguments), env.close


def gymnasium_vector(kind: Callable[..., Any], config: EnvironmentConfig, num_envs: int) -> Stepped:
    """Make a vector environment of Gymnasium."""
    # Fork is what a program gets by default on Linux; here the default is that of the process that measures.
    context = {"context": "fork"} if kind is AsyncVectorEnv else {}
    env = kind([partial(NPlusPlusEnv, config)] * num_envs, autoreset_mode=SAME_STEP, **context)
    env.reset(seed=0)
    return env.step, env.close


def stable_baselines(kind: str, config: EnvironmentConfig, num_envs: int) -> Stepped:
    """Make a vector environment of Stable-Baselines3."""
    from stable_baselines3.common import vec_env

    env = getattr(vec_env, kind)([partial(NPlusPlusEnv, config)] * num_envs)
    env.reset()
    return env.step, env.close


MAKERS: dict[str, Callable[[EnvironmentConfig, int], Stepped]] = {
    OURS: partial(native, "out="),
    "native, default": partial(native, "default"),
    "Gymnasium Sync": partial(gymnasium_vector, SyncVectorEnv),
    ASYNC: partial(gymnasium_vector, AsyncVectorEnv),
    "SB3 Dummy": partial(stable_baselines, "DummyVecEnv"),
    SUBPROCESSES: partial(stable_baselines, "SubprocVecEnv"),
}


def family_bytes() -> int:
    """Return the PSS without file pages of this process and all its children."""
    gc.collect()
    me = psutil.Process()
    return sum(data_bytes(process.pid) for process in (me, *me.children(recursive=True)))


def data_bytes(pid: int) -> int:
    """Return the PSS without file pages of a process."""
    rows = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    kilobytes = {name: int(value) for name, value, *_ in rows}
    return 1024 * (kilobytes["Pss:"] - kilobytes["Pss_File:"])


def measure(way: str, levels: tuple[str, ...], observations: tuple[str, ...], num_envs: int, seconds: float) -> Cell:
    """Measure a cell in this process."""
    if way.startswith("SB3"):
        importlib.import_module("stable_baselines3.common.vec_env")
    config = EnvironmentConfig(levels=levels, observations=observations, max_frames=SHORT_EPISODE)
    empty, actions = family_bytes(), itertools.cycle(random_actions(num_envs, rows=7))
    step, close = MAKERS[way](config, num_envs)
    for _ in range(WARM_CALLS):
        step(next(actions))
    calls, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < seconds or not calls:
        step(next(actions))
        calls += 1
    size = family_bytes() - empty
    close()
    return Cell(size, num_envs * calls / passed)


def cells(counts: tuple[int, ...], forked: int, started: int) -> list[tuple[str, int]]:
    """Return the ways and numbers of environments that are measured: all but too many processes."""
    installed = importlib.util.find_spec("stable_baselines3") is not None
    most = {ASYNC: forked, SUBPROCESSES: started}
    ways = [way for way in MAKERS if installed or not way.startswith("SB3")]
    return [(way, count) for way in ways for count in counts if count <= most.get(way, count)]


Table = dict[tuple[str, int], list[Cell]]


def further(table: Table, way: str, count: int) -> float:
    """Return the bytes of each environment beyond the smallest number of them; nan for that number itself."""
    least = min(number for name, number in table if name == way)
    sizes = [np.median(table[way, number], axis=0)[0] for number in (least, count)]
    return float((sizes[1] - sizes[0]) / (count - least)) if count > least else float("nan")


def print_table(table: Table) -> None:
    """Print a row for each cell: medians over rounds, and of the ratio of the speed to ours within a round."""
    print(f"  {'':<18}{'environments':>14}{'MB':>10}{'bytes of each':>15}{'further':>14}{'steps/s':>12}{'ratio':>9}")
    for (way, count), found in table.items():
        size, speed = np.median(found, axis=0)
        ratio = np.median([cell.speed / ours.speed for cell, ours in zip(found, table[OURS, count], strict=True)])
        row = f"  {way:<18}{count:>14,}{size / 1e6:>10.2f}{size / count:>15,.0f}{further(table, way, count):>14,.0f}"
        print(f"{row}{speed:>12,.0f}{ratio:>9.4f}")


def draw(table: Table, path: Path) -> None:
    """Write the picture: bytes of each environment, of each further one, and steps/s against their number."""
    figure = Figure(figsize=(15, 4.6), layout="constrained")
    panels = figure.subplots(1, 3)
    styles = ("o-", "o--", "s-", "s--", "^-", "^--")
    for way, style in zip(MAKERS, styles, strict=True):
        counts = [count for name, count in table if name == way]
        found = np.array([np.median(table[way, count], axis=0) for count in counts]).reshape(-1, 2)
        grown = [further(table, way, count) for count in counts]
        colour = {"n": "#1f4e79", "G": "#c07000", "S": "#3a7d44"}[way[0]]
        for axes, values in zip(panels, (found[:, 0] / counts, grown, found[:, 1]), strict=True):
            axes.plot(counts, values, style, color=colour, label=way if counts else None, markersize=5)
    titles = ("bytes of each environment", "bytes of each further environment", "environment steps/s")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(xscale="log", xlabel="environments", title=title)
        axes.set_yscale("log", nonpositive="mask")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    fill_file(path, partial(figure.savefig, dpi=80))


def main(
    levels: tuple[str, ...] = LEVELS,
    observations: tuple[str, ...] = STATE,
    counts: tuple[int, ...] = (1, 10, 100, 1000),
    forked: int = 100,
    started: int = 10,
    rounds: int = 3,
    seconds: float = 1.0,
    out: Path = Path("runs/many_environments.png"),
) -> None:
    """Measure, print the table and draw.

    Args:
        levels: levels to play.
        observations: names of the observations.
        counts: numbers of environments.
        forked: most processes of Gymnasium's AsyncVectorEnv, which forks them.
        started: most processes of SubprocVecEnv, each of which imports the libraries.
        rounds: turns of each cell.
        seconds: time for which a cell is stepped.
        out: the picture to write.
    """
    print(describe())
    chosen = cells(counts, forked, started)
    if not any(way.startswith("SB3") for way, _ in chosen):
        print("Stable-Baselines3 is not installed: its rows are left out (extra sb3)")
    print(f"Gymnasium {gymnasium.__version__}; {' + '.join(observations)} on {', '.join(levels)}; ratio to {OURS!r}")
    print(f"left out: more than {forked} processes of {ASYNC}, more than {started} of {SUBPROCESSES}")
    table: Table = {cell: [] for cell in chosen}
    for _, (way, count) in itertools.product(range(rounds), chosen):
        table[way, count].append(in_fresh_process(measure, way, levels, observations, count, seconds))
    print_table(table)
    draw(table, out)
    print(f"  {out}")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
