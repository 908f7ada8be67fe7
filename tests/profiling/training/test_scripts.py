"""The scripts that train or ask about it run on small inputs."""

from __future__ import annotations

import pytest

from nclone_env.train.policies.mlp import MLP
from profiling.training import device, look_ahead, mask_share, ranks

from ..output import lines


def test_the_share_of_masked_actions(capsys):
    mask_share.main(("first-steps/06-hop",), steps=4)
    rows = [line.split() for line in lines(capsys)[2:]]
    assert [row[:2] for row in rows] == [["06-hop", "1"], ["06-hop", "4"]]
    assert all(0 <= float(cell) <= 100 for row in rows for cell in row[2:])


def test_training_on_a_device(capsys):
    """Two groups of environments make a transfer back in each of 9 steps, more only where episodes are cut off."""
    device.main(("first-steps/06-hop",), updates=2, num_envs=32, num_steps=8)
    policy, header, *rows = lines(capsys)
    assert "policy on the processor; 32 environments x 8 steps" in policy
    assert header.endswith("noticed")
    assert [row.split()[0] for row in rows] == ["collect", "advantages", "update", "all"]
    assert [row.split()[2:] for row in rows] == [
        ["18", "18", "-"],
        ["0", "0", "-"],
        ["1", "10", "-"],
        ["19", "28", "-"],
    ]
    assert all(float(row.split()[1].replace(",", "")) > 0 for row in rows)


@pytest.mark.slow
def test_outcomes_that_a_network_predicts(capsys):
    """Displacements are learned within a hundred batches; with simulated outcomes the policy wins."""
    look_ahead.main(("first-steps",), others=("first-steps",), steps=3000, epochs=20, points=(4,))
    header, explained, between, *played, seconds = lines(capsys)
    assert header.split() == list(look_ahead.NAMES)
    assert float(explained.split()[3 + 2]) > 0.5
    assert float(between.split()[4 + 2]) > 0.2
    assert [row.partition(", ")[2].split("  ")[0] for row in played] == list(look_ahead.PLAYED)
    assert "won 100.0%, died 0.0%" in played[0]
    assert seconds.startswith("learned in")


def test_the_messages_of_an_update(monkeypatch):
    """32 gradients, the moments of 4 epochs and one row of statistics; an exchange is two gathers."""
    monkeypatch.setattr(MLP, "pass_arrays", lambda network, seat: None)  # as with others, who see each gradient
    load, seconds = ranks.measure(("first-steps/06-hop",), 8, 2)
    assert (load.reduces, load.gathers) == (37, 2)  # a single process keeps its episodes to itself
    assert load.reduced == 32 * 4 * 6599 + 4 * 192 + 48
    assert load.seconds > seconds > 0


def test_the_ring_of_ranks():
    load = ranks.Load(1.0, reduces=3, reduced=1000, gathers=2, gathered=10)
    assert ranks.communication(load, 1, 1e-3, 1e6) == (0, 0.0, 0.0)
    steps, sent, seconds = ranks.communication(load, 5, 1e-3, 1e6)
    assert (steps, sent) == (3 * 8 + 2 * 4, 1000 * 8 / 5 + 10 * 4)
    assert seconds == pytest.approx(32e-3 + sent / 1e6)
