from contextlib import closing

import pytest

from nclone_env.profiler.training import TrainingTarget
from nclone_env.train.config import TrainConfig

TARGET = TrainingTarget(TrainConfig.of(num_steps=16, num_minibatches=2, hidden_size=8, max_frames=80))


def test_updates_of_a_run_are_steps():
    with closing(TARGET.make(2)) as subject:
        subject.step()
        names = [node.name for _, node in subject.memory().walk()]
    assert "learning curve" in names
    assert TARGET.env_steps(2) == 32
    assert {("num steps", "16"), ("max frames", "80")} < set(TARGET.facts())


def test_the_phases_of_an_update_add_up():
    phases = dict(TARGET.phases(2, steps=2))
    assert list(phases) == ["whole update", "collect", "learn", "rest"]
    assert phases.pop("whole update") == pytest.approx(sum(phases.values()))


@pytest.mark.parametrize("count", [1, 2])
def test_any_number_of_environments_has_a_memory(count):
    config = TARGET.config.replace(recurrent_size=4, num_envs=64, num_minibatches=4)
    target = TrainingTarget(config)
    with closing(target.make(count)) as subject:
        subject.step()
        owned = {node.name: node.total_bytes for node in subject.memory().children}
    estimated = {node.name: node.total_bytes for node in target.estimate(count).children}
    for name in ("rollout storage", "network scratch", "parameters"):
        assert owned[name] == estimated[name]
