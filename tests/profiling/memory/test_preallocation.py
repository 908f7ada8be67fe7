"""The proofs of preallocation run, small; nothing is asked about how fast."""

import numpy as np
import pytest

from profiling.memory import allocation_events, batch_assembly, many_environments, savings
from profiling.memory.batch_ways import OURS, WAYS, check_equal, collectors, episodes, updater

WORKS = {
    "episodes": lambda: episodes(count=5, mean_length=4, features=6, actions=5),
    "collectors": lambda: collectors(count=2, steps=7, period=3),
}


@pytest.mark.parametrize("name", WORKS)
def test_all_ways_make_equal_batches(name, monkeypatch):
    monkeypatch.setattr("profiling.memory.batch_ways.CHUNK", 4)
    work = WORKS[name]()
    batches = [updater(way, work, "cpu")() for way in (OURS, *WAYS)]
    for batch in batches:
        check_equal(batch, batches[1])
    assert len(batches[1]["returns"]) == work.steps
    batches[1]["returns"][-1] += 1
    with pytest.raises(AssertionError, match="returns: the batches differ"):
        check_equal(batches[0], batches[1])


@pytest.mark.parametrize("name", WORKS)
@pytest.mark.usefixtures("frozen_heap")
def test_ways_to_build_batches_are_measured(name, capsys):
    make = WORKS[name]
    seconds = batch_assembly.times(make(), "cpu", 2)
    assert seconds.shape == (2, 1 + len(WAYS))
    rows = []
    for way in (OURS, "lists, stacked"):
        counted = batch_assembly.allocations(way, make, "cpu")
        rows.append(batch_assembly.Row(way, *counted, batch_assembly.growth(way, make, "cpu", 1), 0.5, 1.0))
    assert rows[0].events > 0
    batch_assembly.print_table(rows)
    assert "missed against lists, stacked: " in capsys.readouterr().out


@pytest.mark.parametrize("counts_all", [True, False])
@pytest.mark.usefixtures("frozen_heap")
def test_allocations_are_counted(counts_all, monkeypatch):
    if counts_all and not allocation_events.COUNTS_ALL:
        pytest.skip("needs memray")
    monkeypatch.setattr(allocation_events, "COUNTS_ALL", counts_all)
    size = 1 << 20
    found = allocation_events.allocated_by(lambda: [np.ones(size, np.uint8) for _ in range(3)][:1])
    assert 3 * size <= found.peak < 3.2 * size
    assert found.size >= (3 * size if counts_all else size)
    assert found.blocks >= (3 if counts_all else 1)


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
