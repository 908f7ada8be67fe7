"""The benchmarks of environments run, in this process and small; nothing is asked about how fast."""

from __future__ import annotations

import numpy as np
import pytest

from nclone_env import EnvironmentConfig
from profiling import allocation, environment_speed, first_steps, memory_per_environment, observation_cost
from profiling.contracts import CONTRACTS, SHORT_EPISODE, STATE

LEVELS = ("jumps",)
STATE_ONLY = EnvironmentConfig(levels=LEVELS, observations=STATE)


@pytest.mark.parametrize(
    ("contract", "mode"),
    [*zip(CONTRACTS, ("NextStep", "SameStep", "Disabled"), strict=True), (allocation.GYMNASIUM, "SameStep")],
)
@pytest.mark.usefixtures("frozen_heap")
def test_allocation_is_measured(contract, mode, monkeypatch):
    monkeypatch.setattr(allocation, "WARM_STEPS", 2 * SHORT_EPISODE // 4 + 2)
    found = allocation.measure(contract, mode, LEVELS, STATE, 2, 2 * SHORT_EPISODE // 4)
    assert found.peak > 0
    if contract == "out=":
        assert found.peak < 2048  # views and other small objects of a call


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_memory_is_measured_and_has_owners(mode, capsys):
    usage = memory_per_environment.usage(memory_per_environment.Case("out=", mode, STATE), LEVELS, 4, 5)
    assert usage.callers == 4 * 30 * 4
    assert usage.rss >= usage.tree.total_bytes + usage.callers
    memory_per_environment.print_tree(usage, 4)
    assert "arrays of the caller" in capsys.readouterr().out


def test_speed_is_measured_of_every_contract(capsys):
    environment_speed.print_table(environment_speed.contract_cases(STATE_ONLY, 4), 0.0)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 9
    assert all(float(row[-2].replace(",", "")) > 0 for row in rows)


def test_costs_are_measured(capsys):
    observation_cost.table(LEVELS, observation_cost.CASES[:3], 2, 1)
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("kind", first_steps.KINDS)
def test_first_steps_are_drawn(kind, tmp_path):
    seconds = first_steps.call_times(kind, LEVELS, 200)
    assert len(seconds) == -(-200 // first_steps.KINDS[kind])
    assert first_steps.first_to_rest(np.array([1.0] + [2.0] * 9)) == 2.0
    first_steps.draw({kind: [seconds, seconds]}, tmp_path / "new" / "steps.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["steps.png"]
