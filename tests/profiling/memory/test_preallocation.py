"""The proofs of preallocation run, small; nothing is asked about how fast."""

from __future__ import annotations

import pytest

from profiling.memory import many_environments, savings


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("way", ["native, out=", "native, default", "Gymnasium Sync", "SB3 Dummy"])
def test_many_environments_are_measured(way):
    if way.startswith("SB3"):
        pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    found = many_environments.measure(way, ("jumps",), ("game_state",), 2, 0.0)
    assert found.speed > 0


def test_cells_with_too_many_processes_are_left_out(capsys, tmp_path):
    table = {cell: [many_environments.Cell(2e6 * cell[1], 3.0)] for cell in many_environments.cells((1, 8), 8, 1)}
    assert {("native, out=", 8), ("Gymnasium Async", 8)} < set(table)
    assert ("SB3 Subproc", 8) not in table
    many_environments.print_table(table)
    rows = capsys.readouterr().out.splitlines()
    assert rows[1].split() == ["native,", "out=", "1", "2.00", "2,000,000", "nan", "3", "1.0000"]
    assert len(rows) == 1 + len(table)
    many_environments.draw(table, tmp_path / "new" / "cells.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["cells.png"]


@pytest.mark.parametrize(
    "number", range(len(savings.CHOICES)), ids=lambda number: savings.CHOICES[number].hold.__name__
)
def test_savings_are_measured(number, monkeypatch):
    for name, value in {"STEPS": 2, "EPISODE_STEPS": 2, "TRACED_STEPS": 2, "ROLLOUT": 2, "MINES": 40}.items():
        monkeypatch.setattr(savings, name, value)
    assert isinstance(savings.measured(number, True, 2), int)
    without = savings.CHOICES[number].hold(False, 2)
    assert without is not None


def test_savings_are_printed(capsys):
    row = savings.Found(savings.CHOICES[0], (1e3, 1e4), (2e3, 1.1e6))
    savings.print_row(row, (10, 100))
    name, figures = capsys.readouterr().out.split("*")
    assert name.strip() == savings.CHOICES[0].name
    assert figures.split() == ["100", "12,200", "12,100", "0.00", "0.00", "0.01", "1.10"]
