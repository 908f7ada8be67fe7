"""The benchmarks of environments run, in this process and small; nothing is asked about how fast."""

import numpy as np
import pytest

from nclone_env import EnvironmentConfig
from profiling.contracts import STATE
from profiling.speed import environments, first_steps, observations

LEVELS = ("jumps",)
STATE_ONLY = EnvironmentConfig(levels=LEVELS, observations=STATE)


def test_speed_is_measured_of_every_contract(capsys):
    environments.print_table(environments.contract_cases(STATE_ONLY, 4), 0.0)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 6
    assert all(float(row[-2].replace(",", "")) > 0 for row in rows)


def test_costs_are_measured(capsys):
    observations.table(LEVELS, observations.CASES[:3], 2, 1)
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("kind", first_steps.KINDS)
def test_first_steps_are_drawn(kind, tmp_path):
    seconds = first_steps.call_times(kind, LEVELS, 200)
    assert len(seconds) == -(-200 // first_steps.KINDS[kind])
    assert first_steps.first_to_rest(np.array([1.0] + [2.0] * 9)) == 2.0
    first_steps.draw({kind: [seconds, seconds]}, tmp_path / "new" / "steps.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["steps.png"]
