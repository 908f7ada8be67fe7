"""A sweep that any number of processes share, on one machine or on several that see the same folder.

    pip install optuna
    python examples/sweep.py --trials 40        # in as many shells, or tasks of a job array, as there are machines

The trials are in a journal, a file to which every process appends: neither a server nor a database. A process takes the
next options, trains, and reports each update. A trial that falls behind the others is paused; its folder, which has the
number of the trial, holds a checkpoint to go on from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
import tyro
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

import nclone_env
from nclone_env import TrainConfig
from nclone_env.train import Hooks


@dataclass(frozen=True)
class Sweep:
    """What to sweep."""

    folder: Path = Path("sweep")
    """Journal and run folders."""
    trials: int = 20
    """Trials of all processes together: a process that finds as many begins no further one."""
    levels: tuple[str, ...] = ("first-steps",)
    total_timesteps: int = 300_000
    """Steps of a trial."""
    num_threads: int | None = None
    """Threads of a trial; None: one per core."""


def objective(sweep: Sweep, trial: Any) -> float:
    """Train with the options of a trial; return the last success rate."""
    config = TrainConfig.of(
        levels=sweep.levels,
        total_timesteps=sweep.total_timesteps,
        num_threads=sweep.num_threads,
        learning_rate=trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True),
        entropy_coef=trial.suggest_float("entropy_coef", 1e-3, 1e-1, log=True),
        output=sweep.folder,
        name=f"trial-{trial.number:03}",
    )
    rates = [0.0]

    def report(row: dict[str, float]) -> None:
        if not math.isnan(row["success_rate"]):  # no episode has ended yet
            rates.append(row["success_rate"])
            trial.report(rates[-1], step=int(row["timesteps"]))

    result = nclone_env.train(config, Hooks(on_update=report, stop=trial.should_prune))
    if result.interrupted:  # by the pruner, and saved
        raise optuna.TrialPruned
    return rates[-1]


def shared_study(sweep: Sweep) -> Any:
    """Join the study in the folder, or begin it."""
    sweep.folder.mkdir(parents=True, exist_ok=True)
    journal = str(sweep.folder / "journal.log")
    return optuna.create_study(
        study_name="sweep",
        storage=optuna.storages.JournalStorage(JournalFileBackend(journal, JournalFileOpenLock(journal))),
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=sweep.total_timesteps // 4),
        load_if_exists=True,
    )


def main(sweep: Sweep) -> None:
    """Take part in the sweep until all trials have begun, and print the best one that has ended."""
    study, states = shared_study(sweep), optuna.trial.TrialState
    counted = states.COMPLETE, states.PRUNED, states.RUNNING
    while len(study.get_trials(deepcopy=False, states=counted)) < sweep.trials:
        study.optimize(lambda trial: objective(sweep, trial), n_trials=1)
    if study.get_trials(deepcopy=False, states=(states.COMPLETE,)):
        best = study.best_trial
        print(f"trial-{best.number:03}: success {best.value:.1%} with {best.params}")


if __name__ == "__main__":
    main(tyro.cli(Sweep))
