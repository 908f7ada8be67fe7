"""Prove environments on this machine's GPU: bits against the processor, speed, memory; the first thing to run there.

Parts, each within a share of the time, printed as they end: ``bits`` steps environments on both and compares all that
calls return, ninjas and snapshots, with ``game_state`` on the built-in sets, and with all vectors and with pictures on
levels with every kind of entity too, in all autoreset modes; ``speed`` is the table of environment steps by the number
of environments; ``graph`` repeats steps in a CUDA graph; ``training`` trains as ``nclone-env train --device cuda``
does, by the number of environments, and one seed twice; ``waits`` counts those of an update; ``example`` runs
``examples/ppo_gpu.py``. Exits with 1 if a part fails. The first run compiles, which takes longer than the parts:
``--prepare`` does that beforehand, without a GPU, for the cache that a run uses.

``--stand-in`` runs the programs on the processor instead, to test this script where there is no GPU.
"""

from __future__ import annotations

import math
import runpy
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import tyro

from nclone_env import create_vector_environment
from nclone_env.env.cuda import PROGRAMS, mapped, sample
from nclone_env.game import NUM_ACTIONS
from nclone_env.jit.cuda import kept_ptx
from nclone_env.level.build import everything
from profiling.checks.cuda_code import programs
from profiling.measure import describe

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILT_IN = ("first-steps", "jumps", "hazards")
VECTORS = ("game_state", "entity_states", "locals", "free_motion", "action_mask", "action_outcomes")
MODES = ("SameStep", "NextStep", "Disabled")
COUNTS = (1024, 4096, 16384, 131072, 1048576)
SIZES: tuple[dict[str, Any], ...] = (
    {"num_envs": 1024, "num_steps": 16},
    {"num_envs": 4096, "num_steps": 16, "total_timesteps": 10_000_000},
    {"num_envs": 16384, "num_steps": 16, "total_timesteps": 50_000_000},
    {"num_envs": 65536, "num_steps": 16, "total_timesteps": 100_000_000},
)
"""Of the runs of ``training``."""


class Report:
    """Prints lines with the seconds since the start, and knows how many are left."""

    def __init__(self, seconds: float):
        self._began, self._seconds = time.perf_counter(), seconds
        self.failed: list[str] = []

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._seconds - (time.perf_counter() - self._began)

    def say(self, text: str) -> None:
        """Print a line."""
        print(f"[{time.perf_counter() - self._began:6.1f}] {text}", flush=True)

    def part(self, name: str, share: float, run: Callable[[float], str]) -> None:
        """Run a part, which gets the seconds that it may take once it has compiled, and print what it returns."""
        if self.left < share / 2:
            self.say(f"{name}: left out, {self.left:.0f} s are left")
            return
        try:
            self.say(f"{name}: {run(min(share, self.left))}")
        except Exception as error:  # noqa: BLE001 - the next part may still tell something
            traceback.print_exc()
            self.failed.append(name)
            self.say(f"{name}: FAILED, {type(error).__name__}: {error}")


def host_of(value: Any) -> Any:
    """Return nested results as NumPy arrays."""
    if isinstance(value, dict):
        return {name: host_of(each) for name, each in value.items()}
    return value.cpu().numpy().copy() if hasattr(value, "cpu") else np.asarray(value)


def different(left: Any, right: Any) -> tuple[int, int]:
    """Return the number of bytes in which nested results differ, and of all."""
    if isinstance(left, dict):
        pairs = [different(left[name], right[name]) for name in left]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
    one, other = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (left, right))
    return int(np.count_nonzero(one != other)) if len(one) == len(other) else max(len(one), len(other)), len(one)


def compare(device: Any, seconds: float, steps: int, count: int, **options: Any) -> str:
    """Step environments on both, and compare what steps return and the worlds at the end; raise if a byte differs."""
    host = create_vector_environment(None, count, **options)
    there = create_vector_environment(None, count, device=device, **options)
    found, total, ends, made = 0, 0, 0, 0
    pairs = [(host.reset(seed=0)[0], host_of(there.reset(seed=0)[0]))]
    rng, end = np.random.default_rng(0), time.perf_counter() + seconds
    while not made or (made < steps and time.perf_counter() < end):
        if made % 4 == 0:  # held for four steps
            actions = rng.integers(NUM_ACTIONS, size=count)
        results, others = host.step(actions), [host_of(each) for each in there.step(actions)]
        over = results[2] | results[3]
        pairs += [*zip(results[:4], others[:4], strict=True)]
        if results[4].get("final_obs"):
            last = {name: rows[over] for name, rows in others[4]["final_obs"].items()}
            pairs.append((results[4]["final_obs"], last))
        if options["autoreset_mode"] == "Disabled" and over.any():
            pairs.append(
                (host.reset(options={"reset_mask": over})[0], host_of(there.reset(options={"reset_mask": over})[0]))
            )
        for left, right in pairs:
            bad, size = different(left, right)
            found, total = found + bad, total + size
        pairs.clear()
        made, ends = made + 1, ends + int(over.sum())
    worlds = [env.worlds for env in (host, there)]
    bad, size = different(worlds[0].ninjas, worlds[1].ninjas)
    same = all(host.get_state(index) == there.get_state(index) for index in range(0, count, max(1, count // 64)))
    text = (
        f"{found + bad:,} of {total + size:,} bytes differ, snapshots {'equal' if same else 'DIFFER'}; "
        f"{count:,} environments, {made} steps, {ends:,} ends"
    )
    if found or bad or not same:
        raise AssertionError(text)
    return text


def speed(device: Any, seconds: float, count: int, levels: Any) -> str:
    """Return the steps per second with ``game_state``, and the bytes of an environment."""
    import torch

    options = {"levels": levels, "observations": "game_state", "autoreset_mode": "SameStep", "max_frames": 1200}
    env = create_vector_environment(None, count, device=device, **options)
    env.reset(seed=0)
    actions = [
        torch.randint(NUM_ACTIONS, (count,), device=env.step(np.zeros(count, np.int64))[1].device) for _ in range(8)
    ]
    is_gpu = actions[0].is_cuda
    for each in actions:
        env.step(each)
    times, end = [], time.perf_counter() + seconds
    while not times or (len(times) < 30 and time.perf_counter() < end):
        if is_gpu:
            torch.cuda.synchronize()
        began = time.perf_counter()
        for each in actions:
            env.step(each)
        if is_gpu:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - began) / len(actions))
    each_bytes = env.memory().children[0].total_bytes / count
    env.close()
    median = float(np.median(times))
    rates = f"{count / median:,.0f} steps/s, {1e6 * median:,.0f} us a step"
    return f"{count:,} environments: {rates}, {each_bytes:,.0f} bytes each"


def graph(device: Any, count: int) -> str:
    """Capture eight steps in a CUDA graph; return the steps per second of its replays, equal to steps without one."""
    import torch

    options = {"levels": BUILT_IN, "observations": "game_state", "autoreset_mode": "SameStep"}
    envs = [create_vector_environment(None, count, device=device, **options) for _ in range(2)]
    for env in envs:
        env.reset(seed=0)
        env.step(np.zeros(count, np.int64))
    actions = torch.randint(NUM_ACTIONS, (8, count), device="cuda")
    stream = torch.cuda.Stream()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, stream=stream):
        for row in actions:
            envs[0].step(row)
    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        began = time.perf_counter()
        captured.replay()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        for row in actions:
            envs[1].step(row)
    if envs[0].get_state(0) != envs[1].get_state(0):
        raise AssertionError("a replay differs from steps without a graph")
    return f"{count:,} environments: {8 * count / float(np.median(times)):,.0f} steps/s in a CUDA graph, states equal"


def training(device: Any, seconds: float, **options: Any) -> tuple[str, np.ndarray]:
    """Train; return how fast, how well and in how much memory, and the parameters in the end."""
    import torch

    from nclone_env.train import Hooks, TrainConfig, train
    from nclone_env.train.runs import run as module

    ended = time.perf_counter() + seconds
    stand_in = device != "cuda"
    chosen = patch.object(module, "learning_device", lambda *given: device) if stand_in else nullcontext()
    with TemporaryDirectory() as folder, chosen:
        config = TrainConfig.of(
            device="cpu" if stand_in else "cuda", output=folder, track="none", levels=("first-steps",), **options
        )
        taken: list[int] = []
        torch.cuda.reset_peak_memory_stats() if torch.cuda.is_available() else None
        hooks = Hooks(
            on_update=lambda row: taken.append(torch.cuda.memory_allocated()),
            stop=lambda: time.perf_counter() > ended,
        )
        result = train(config, hooks)
    each = np.array([config.batch_size / row["steps_per_second"] for row in result.curve])
    worst = np.array([row["min_success_rate"] for row in result.curve])
    won = np.flatnonzero(worst >= 0.99)
    reached = f"99 % on every level after {each[: won[0] + 1].sum():.3f} s" if len(won) else "99 % not reached"
    rate = f"{config.batch_size / float(np.median(each)):,.0f} steps/s"
    text = f"{config.num_envs:,} x {config.num_steps}: {rate}, {len(each)} updates, {reached}, then {worst[-1]:.3f}"
    if not stand_in:
        grown = taken[-1] - taken[len(taken) // 2]
        text += f"; {torch.cuda.max_memory_allocated() / 2**20:,.0f} MB at most, {grown:,} bytes more than half-way"
    return text, np.concatenate([part.detach().numpy().ravel() for part in result.policy.parameters()])


def twice(device: Any, **options: Any) -> str:
    """Train with one seed twice and with another; return how fast and how well; raise if the former differ."""
    text, first = training(device, math.inf, **options)
    again, other = (training(device, math.inf, **options, seed=seed)[1] for seed in (0, 1))
    same, different = np.array_equal(first, again), not np.array_equal(first, other)
    if not (same and different):
        raise AssertionError(f"equal seeds: {'equal' if same else 'OTHER'} policies; {text}")
    return f"the same seed, the same policy; {text}"


def waits(device: Any, **size: int) -> str:
    """Return how often the host waits in an update, counted and as PyTorch notices it; raise unless it is once."""
    from profiling.training.device import measure

    table, _ = measure(("first-steps",), ("game_state",), "cuda" if device == "cuda" else "cpu", 3, **size)
    _, _, counted, back, there, noticed = np.median(table, axis=0)
    copies = f"{back:.0f} copies to the host, {there:.0f} to the device"
    text = f"{counted:.0f} an update, {noticed:.0f} noticed by PyTorch; {copies}"
    if counted != 1:
        raise AssertionError(text)
    return text


def example(device: Any, seed: int, **size: int) -> str:
    """Return how fast ``examples/ppo_gpu.py`` trains, and the levels that its agent wins at the end."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        names = runpy.run_path(str(EXAMPLES / "ppo_gpu.py"))
    finally:
        sys.path.remove(str(EXAMPLES))
    args = names["DeviceArgs"](seed=seed, device=device, **size)
    began = time.perf_counter()
    with redirect_stdout(StringIO()):
        _, success = names["train"](args)
    seconds = time.perf_counter() - began
    rate = f"{args.total_timesteps:,} steps in {seconds:.2f} s with the set-up"
    return f"seed {seed}: {rate}; won: {', '.join(f'{each:.3f}' for each in success)}"


def compile_all() -> None:
    """Compile all programs, and keep their code."""
    for name, (program, arguments) in programs().items():
        size = len(kept_ptx(program, PROGRAMS[program], mapped(arguments, sample)))
        print(f"{name}: {size / 1024:,.0f} KB", flush=True)


def maps_in(folder: Path | None, most: int = 64) -> tuple[str, ...]:
    """Return some files of levels in a folder, spread over all of them."""
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file()) if folder else []
    return tuple(files[:: max(1, len(files) // most)][:most])


def main(seconds: float = 230.0, maps: Path | None = None, stand_in: bool = False, prepare: bool = False) -> int:
    """Print a line for each part.

    Args:
        seconds: for all parts together.
        maps: folder of map files to compare and to time as well.
        stand_in: run the programs on the processor.
        prepare: only compile.

    Returns:
        The exit code.
    """
    if prepare:
        compile_all()
        return 0
    report = Report(seconds)
    if stand_in:
        from tests.env.processor import Processor

        device: Any = Processor()
        counts, few = (4,), 4
        report.say(f"{describe()}; programs on the processor")
    else:
        import torch

        device, counts, few = "cuda", COUNTS, 512
        driver = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
        report.say(f"{describe()}; {driver}, torch {torch.__version__}")
    fields = {"observations": VECTORS, "max_frames": 240}
    everywhere = (*BUILT_IN, everything(), *maps_in(maps))
    state = {"observations": "game_state", "levels": BUILT_IN, "autoreset_mode": "SameStep", "max_frames": 600}
    report.part("bits, game_state", 25, lambda share: compare(device, share, 200, 32 * few, **state))
    for count in counts:
        report.part("speed", 12, lambda share, n=count: speed(device, share, n, BUILT_IN))  # type: ignore[misc]
    for count in counts[:3]:
        report.part("speed, all kinds", 12, lambda share, n=count: speed(device, share, n, everywhere))  # type: ignore[misc]
    if not stand_in:
        report.part("graph", 10, lambda share: graph(device, 16384))
    short = {"num_envs": few, "num_steps": 4, "total_timesteps": 16 * few} if stand_in else {}
    report.part("training", 20, lambda _: twice(device, **(short or SIZES[0])))
    for size in () if stand_in else SIZES[1:]:
        report.part("training", 10, lambda share, s=size: training(device, share, **s)[0])  # type: ignore[misc]
    report.part("waits", 10, lambda _: waits(device, num_envs=4 * few, num_steps=16))
    report.part("example", 10, lambda _: example(device, 0, **short))
    for mode in MODES:
        options = {**fields, "levels": everywhere, "autoreset_mode": mode}
        report.part(f"bits, vectors, {mode}", 40, lambda share, o=options: compare(device, share, 100, few, **o))  # type: ignore[misc]
    pictures = {"observations": ("player_frame", "global_view"), "levels": everywhere, "autoreset_mode": "SameStep"}
    report.part("bits, pictures", 15, lambda share: compare(device, share, 20, max(few // 8, 2), **pictures))
    report.say(f"failed: {', '.join(report.failed) or 'nothing'}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main, description=__doc__))
