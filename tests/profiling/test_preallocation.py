"""The proofs of preallocation run, small; nothing is asked about how fast."""

from __future__ import annotations

import numpy as np
import pytest

from profiling import allocation_events, batch_assembly
from profiling.batch_ways import OURS, WAYS, check_equal, collectors, episodes, updater

WORKS = {
    "episodes": lambda: episodes(count=5, mean_length=4, features=6, actions=5),
    "collectors": lambda: collectors(count=2, steps=7, period=3),
}


@pytest.mark.parametrize("name", WORKS)
def test_all_ways_make_equal_batches(name, monkeypatch):
    monkeypatch.setattr("profiling.batch_ways.CHUNK", 4)
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
def test_ways_to_build_batches_are_measured(name, capsys, tmp_path):
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
    batch_assembly.draw({name: rows}, tmp_path / "new" / "ways.png")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["ways.png"]


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
