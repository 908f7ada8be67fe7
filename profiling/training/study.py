"""Which settings learn best? Success after training, over seeds, for variants of the trainer's defaults.

Each run is a process of its own with one thread, so a machine with several cores does several runs at a time; results
do not depend on that. A run trains to the end, then plays every level: 100 episodes with sampled actions and as many
with the most probable action. Finished runs are kept as JSON lines, and a second call only does what is missing. The
table gives means over seeds with 95 % intervals (Student's t).
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from profiling.measure import describe

SETS = ("first-steps", "jumps", "hazards")
VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "two towers": {"shared_trunk": False},
    "shared trunk": {"shared_trunk": True},
    "32 units": {"hidden_size": 32},
    "64 units": {"hidden_size": 64},
    "96 units": {"hidden_size": 96},
    "128 units": {"hidden_size": 128},
    "2 epochs": {"update_epochs": 2},
    "3 epochs": {"update_epochs": 3},
    "4 epochs": {"update_epochs": 4},
    "two towers of 96 units, 3 epochs": {"shared_trunk": False, "hidden_size": 96, "update_epochs": 3},
    "4 minibatches": {"num_minibatches": 4},
    "16 minibatches": {"num_minibatches": 16},
    "rate 0.0005": {"learning_rate": 5e-4},
    "rate 0.001": {"learning_rate": 1e-3},
    "rate 0.001, 128 steps": {"learning_rate": 1e-3, "num_steps": 128},
    "rate 0.002": {"learning_rate": 2e-3},
    "256 steps of 128 environments": {"num_envs": 128, "num_steps": 256},
    "64 steps of 512 environments": {"num_envs": 512, "num_steps": 64},
    "progress": {"curriculum": "progress"},
    "action outcomes": {"observations": ("game_state", "action_outcomes")},
    "lambda 0.98": {"gae_lambda": 0.98},
    "entropy 0.01": {"entropy_coef": 0.01},
    "death -1": {"reward": {"death": -1.0}},
    "death -3": {"reward": {"death": -3.0}},
    "not annealed": {"anneal": False},
}
"""Settings changed one at a time, and the network of two towers."""


@dataclass(frozen=True)
class Outcome:
    """Result of one run."""

    variant: str
    levels: str
    seed: int
    sampled: float
    """Mean success rate over levels with sampled actions."""
    argmax: float
    """Mean success rate over levels with the most probable action."""
    worst: float
    """Lowest sampled success rate of a level."""
    steps_to_95: float
    """Environment steps until the mean of recent episodes passed 95 %; infinite if it never did."""
    seconds: float
    """Processor time of the training."""


def run_once(variant: str, fields: dict[str, Any], levels: tuple[str, ...], seed: int, timesteps: int) -> Outcome:
    """Train and evaluate in this process."""
    from nclone_env.train import TrainConfig, evaluate, train

    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.of(
            levels=levels, seed=seed, total_timesteps=timesteps, num_threads=1, output=Path(folder), **fields
        )
        started = time.process_time()
        result = train(config)
        seconds = time.process_time() - started
        modes = [evaluate(result.policy, config.evaluated_environment, mode) for mode in ("sampled", "argmax")]  # type: ignore[arg-type]
    sampled, argmax = ([level.success_rate for level in mode] for mode in modes)
    passed = [row["timesteps"] for row in result.curve if row["success_rate"] >= 0.95]
    steps = passed[0] if passed else math.inf
    rates = float(np.mean(sampled)), float(np.mean(argmax)), min(sampled)
    return Outcome(variant, "+".join(levels), seed, *rates, steps, seconds)


def interval(values: list[float]) -> str:
    """Return mean and half width of the 95 % interval of a sample, as text in per cent."""
    mean, count = 100 * float(np.mean(values)), len(values)
    if count < 2:
        return f"{mean:.1f}"
    student = {2: 12.7, 3: 4.3, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}.get(count, 2.0)
    return f"{mean:.1f} ± {student * 100 * float(np.std(values, ddof=1)) / math.sqrt(count):.1f}"


def table(outcomes: list[Outcome]) -> str:
    """Return the outcomes as a Markdown table, one row per variant and set of levels."""
    lines = [
        "| levels | variant | seeds | sampled % | argmax % | worst level % | steps to 95 % | CPU s |",
        "|" + "---|" * 8,
    ]
    keys = list(dict.fromkeys((outcome.levels, outcome.variant) for outcome in outcomes))
    for levels, variant in sorted(keys, key=lambda key: key[0]):
        rows = [outcome for outcome in outcomes if (outcome.levels, outcome.variant) == (levels, variant)]
        reached = [row.steps_to_95 for row in rows]
        steps = f"{np.median(reached) / 1e6:.2f} M" if np.isfinite(np.median(reached)) else "never"
        lines.append(
            f"| {levels} | {variant} | {len(rows)} | {interval([row.sampled for row in rows])} | "
            f"{interval([row.argmax for row in rows])} | {100 * min(row.worst for row in rows):.0f} | {steps} | "
            f"{np.median([row.seconds for row in rows]):.0f} |"
        )
    return "\n".join(lines)


def read(path: Path) -> list[Outcome]:
    """Return the outcomes of a file of JSON lines; none if it does not exist."""
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def main(
    variants: tuple[str, ...] = tuple(VARIANTS),
    levels: tuple[str, ...] = SETS,
    seeds: int = 5,
    timesteps: int = 4_000_000,
    processes: int = 2,
    results: Path = Path("runs/learning_study.jsonl"),
    fields: str = "{}",
) -> None:
    """Train all variants with all seeds and print the table.

    Args:
        variants: names of ``VARIANTS``.
        levels: levels of a study; a ``+`` joins sets that are trained together.
        seeds: seeds 0, 1, ... of each variant.
        timesteps: environment steps of a run.
        processes: runs at a time.
        results: JSON lines of finished runs; they are not repeated.
        fields: fields of the configuration that all variants start from, as JSON; by default the defaults.
    """
    print(describe())
    done = read(results)
    have = {(outcome.variant, outcome.levels, outcome.seed) for outcome in done}
    results.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as executor:
        futures = [
            executor.submit(
                run_once, variant, {**json.loads(fields), **VARIANTS[variant]}, tuple(name.split("+")), seed, timesteps
            )
            for seed in range(seeds)
            for name in levels
            for variant in variants
            if (variant, name, seed) not in have
        ]
        for future in as_completed(futures):
            done.append(future.result())
            with results.open("a") as file:
                file.write(json.dumps(vars(done[-1])) + "\n")
            print(f"  {done[-1]}", flush=True)
    print(table(done))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
