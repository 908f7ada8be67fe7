"""Optuna: the block of the page on sweeps runs; a pruned trial goes on as if it had not been paused."""

import runpy
import subprocess
import sys

import pytest

pytest.importorskip("optuna")

from tests.docs.pages import ROOT
from tests.docs.test_examples import blocks


def test_a_pruned_trial_is_continued_to_the_bit(tmp_path, monkeypatch, capsys):
    import optuna
    import torch

    from nclone_env.train import load_checkpoint, restore_config, train

    (recipe,) = blocks(ROOT / "docs/training/sweeps.md", "python")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.py").write_text(recipe)
    study = runpy.run_path("recipe.py")["study"]
    pruned = [trial.number for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    assert capsys.readouterr().out.startswith("5 trials, best {'learning_rate': ")
    if not pruned:
        pytest.skip("the pruner has kept every trial")
    folder = tmp_path / "sweep" / f"trial-{pruned[0]}"
    content = load_checkpoint(folder / "checkpoint.pt")
    config = restore_config(content)
    assert content.counters["timesteps"] < config.total_timesteps
    paused = train(config.replace(output=folder.parent, name=""), resume=folder).policy.state_dict()
    whole = train(config.replace(output="whole", name="whole")).policy.state_dict()
    other = train(config.replace(output="whole", name="other", seed=1)).policy.state_dict()
    assert all(torch.equal(paused[name], whole[name]) for name in whole)
    assert not all(torch.equal(other[name], whole[name]) for name in whole)


def test_two_processes_share_a_journal(tmp_path):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    command = [sys.executable, str(ROOT / "examples/sweep.py"), "--folder", str(tmp_path), "--trials", "4"]
    command += ["--levels", "first-steps/01-walk", "--total-timesteps", "65536", "--num-threads", "1"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert any(text.startswith("trial-") for text in printed)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    study = optuna.load_study(study_name="sweep", storage=storage)
    assert 4 <= len(study.trials) <= 5  # both may begin one in the same moment
    assert [trial.number for trial in study.trials] == list(range(len(study.trials)))
    assert sorted(path.name for path in tmp_path.glob("trial-*")) == [f"trial-{n:03}" for n in range(len(study.trials))]
    assert {trial.state.name for trial in study.trials} <= {"COMPLETE", "PRUNED"}
    assert len({trial.params["learning_rate"] for trial in study.trials}) == len(study.trials)
