"""What must leave no memory behind is repeated; the verdict is that of tests/memory."""

import pytest

from nclone_env.train.config import TrainConfig
from profiling.memory import leaks


@pytest.mark.parametrize("begin", leaks.CHECKS, ids=lambda begin: begin.__name__)
def test_a_check_repeats(begin, monkeypatch):
    sizes = {"num_envs": 2, "num_steps": 16, "num_minibatches": 2, "hidden_size": 8}
    small = TrainConfig.of(max_frames=80, total_timesteps=1024, **sizes)
    monkeypatch.setattr(leaks, "TRAINING", small)
    step = begin(2)
    step()
    step()


def test_growth_is_the_exit_status(monkeypatch, capsys):
    seen = []

    def found(function, target, num_envs, steps):
        seen.append((target.begin.__name__, num_envs, steps))
        return ("growing", "traced +1 B") if target.begin is leaks.lifetimes else ("flat", "")

    monkeypatch.setattr(leaks, "in_fresh_process", found)
    assert leaks.main("resets", steps=7) == 0
    assert leaks.main() == 1
    assert seen[:2] == [("resets", 16, 7), ("resets", 16, 400)]
    assert "lifetimes    growing  traced +1 B" in capsys.readouterr().out
