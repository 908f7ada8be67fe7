"""The scripts that train or ask about it run on small inputs."""

from __future__ import annotations

from profiling.training import device, look_ahead, mask_share

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
