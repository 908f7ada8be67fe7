"""``examples/sweep.py`` on a stand-in for Optuna: trials that are shared, named, and paused rather than lost.

``tests/compat/test_optuna.py`` runs two processes with Optuna itself.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from nclone_env.train import load_checkpoint, restore_config

PATH = Path(__file__).parents[2] / "examples" / "sweep.py"
SIZE = {"levels": ("first-steps/01-walk",), "total_timesteps": 3 * 256 * 64, "num_threads": 1}
STATES = SimpleNamespace(COMPLETE="complete", PRUNED="pruned", RUNNING="running")


class TrialPruned(Exception):
    pass


class Trial:
    def __init__(self, number):
        self.number, self.state, self.params, self.reports, self.value = number, "running", {}, [], None
        self.asked = 0

    def suggest_float(self, name, low, high, log=False):
        self.params[name] = low * (high / low) ** (0.3 + 0.1 * self.number)
        return self.params[name]

    def report(self, value, step):
        self.reports.append((step, value))

    def should_prune(self):
        self.asked += 1
        return self.number == 1 and self.asked == 2


class Study:
    """Stands for all studies of a journal."""

    kept: dict[str, Study] = {}  # noqa: RUF012

    def __init__(self):
        self.trials = []

    def get_trials(self, deepcopy, states):
        return [trial for trial in self.trials if trial.state in states]

    def optimize(self, objective, n_trials):
        assert n_trials == 1
        self.trials.append(trial := Trial(len(self.trials)))
        try:
            trial.value, trial.state = objective(trial), "complete"
        except TrialPruned:
            trial.state = "pruned"

    @property
    def best_trial(self):
        return max(self.get_trials(False, "complete"), key=lambda trial: trial.value)


@pytest.fixture
def example(monkeypatch):
    """The names that the file defines."""

    def create_study(study_name, storage, direction, pruner, load_if_exists):
        assert load_if_exists
        assert direction == "maximize"
        return Study.kept.setdefault(storage, Study())

    optuna, journal = ModuleType("optuna"), ModuleType("optuna.storages.journal")
    optuna.TrialPruned, optuna.create_study = TrialPruned, create_study
    optuna.trial, optuna.pruners = SimpleNamespace(TrialState=STATES), SimpleNamespace(MedianPruner=dict)
    optuna.storages = SimpleNamespace(JournalStorage=lambda backend: backend)
    journal.JournalFileBackend, journal.JournalFileOpenLock = lambda path, lock: path, lambda path: path
    for module in (optuna, journal):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "optuna.storages", ModuleType("optuna.storages"))
    monkeypatch.setattr(Study, "kept", {})
    return runpy.run_path(str(PATH))


def test_processes_share_the_trials_of_a_folder(example, tmp_path, capsys):
    sweep = example["Sweep"](folder=tmp_path / "sweep", trials=3, **SIZE)
    example["main"](sweep)
    assert capsys.readouterr().out.startswith("trial-00")
    example["main"](sweep)  # finds that all have begun
    (study,) = Study.kept.values()
    assert [trial.state for trial in study.trials] == ["complete", "pruned", "complete"]
    folders = sorted(path.name for path in sweep.folder.iterdir() if path.is_dir())
    assert folders == ["trial-000", "trial-001", "trial-002"]
    for trial, name in zip(study.trials, folders, strict=True):
        content = load_checkpoint(sweep.folder / name / "checkpoint.pt")
        assert restore_config(content).ppo.learning_rate == trial.params["learning_rate"]
        ended = content.counters["timesteps"] == sweep.total_timesteps
        assert ended == (trial.state == "complete")
        assert trial.reports == sorted(trial.reports, key=lambda report: report[0])
    example["main"](example["Sweep"](folder=tmp_path / "other", trials=1, **SIZE))
    assert len(Study.kept) == 2
