import tomllib

import pytest

from nclone_env.memory.explain.stats import compute_stats
from nclone_env.memory.show import JSON_REPORT, load_profile, write_reports
from profiling.memory import budgets
from profiling.memory.budgets import BUDGETS, entries
from tests.memory.by_hand import measurements

BUDGET = {"each": 1001, "shared": 3000, "step": 500}


def written(folder, **leaks):
    write_reports(compute_stats(measurements(**leaks)), folder, as_json=True)
    return load_profile(folder / JSON_REPORT)


def test_a_profile_within_its_budget(tmp_path):
    assert not [entry for entry in entries(written(tmp_path), BUDGET) if entry.exceeded]


@pytest.mark.parametrize("name", BUDGET)
def test_each_budget_can_be_exceeded(tmp_path, name):
    exceeded = [entry for entry in entries(written(tmp_path), {**BUDGET, name: 400}) if entry.exceeded]
    assert len(exceeded) == 1


def test_growth_exceeds_the_budget(tmp_path):
    exceeded = [entry.name for entry in entries(written(tmp_path, traced_per_step=50), BUDGET) if entry.exceeded]
    assert exceeded == ["growth, traced"]


def test_the_exit_status_tells(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(budgets, "profiled", lambda arguments: written(tmp_path))
    file = tmp_path / "budgets.toml"
    file.write_text("[one]\nprofile = []\neach = 1001\nshared = 3000\nstep = 500\n")
    assert budgets.main(file) == 0
    file.write_text("[one]\nprofile = []\neach = 1001\nshared = 2999\nstep = 500\n")
    assert budgets.main(file) == 1
    assert "EXCEEDED" in capsys.readouterr().out


@pytest.mark.slow
def test_our_own_profiles_are_within_their_budgets(capsys):
    assert tomllib.loads(BUDGETS.read_text())
    assert budgets.main(only="state, out=") == 0, capsys.readouterr().out
