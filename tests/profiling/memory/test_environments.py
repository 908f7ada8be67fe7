"""The measurements of memory of environments run, in this process and small."""

import pytest

from profiling.contracts import SHORT_EPISODE, STATE
from profiling.memory import allocation, per_environment

LEVELS = ("jumps",)


@pytest.mark.parametrize(
    ("contract", "mode"),
    [("default", "NextStep"), ("out=", "SameStep"), ("out=", "Disabled"), (allocation.GYMNASIUM, "SameStep")],
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
    usage = per_environment.usage(per_environment.Case("out=", mode, STATE), LEVELS, 4, 5)
    assert usage.callers == 4 * 30 * 4
    assert usage.rss >= usage.tree.total_bytes + usage.callers
    per_environment.print_tree(usage, 4)
    assert "arrays of the caller" in capsys.readouterr().out
