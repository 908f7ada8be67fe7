"""A learner of one's own: REINFORCE is registered by name, trains, and is resumed; the package is not changed."""

import numpy as np
import pytest
import torch

from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.memory.measure.tree import MemoryNode
from nclone_env.train.collect.environments import make_environments
from nclone_env.train.collect.evaluate import evaluate
from nclone_env.train.learn.learner import UpdateStatistics
from nclone_env.train.learn.learners import LEARNERS
from nclone_env.train.loop import train
from nclone_env.train.policies.checkpoint import load_checkpoint
from nclone_env.train.policies.torch_network import log_probs_and_entropies

from ..runs import config, contents, until, vector
from ..stub import LineWorld


class Reinforce:
    """Williams (1992) with the value function as a baseline: one step along the gradient per rollout."""

    def __init__(self, parts):
        self.policy, self.storage, self.updates = parts.policy, parts.storage, 0
        self.optimiser = torch.optim.SGD(parts.policy.parameters())

    def update(self, number, learning_rate, entropy_coef, reference_coef):
        fields = [torch.from_numpy(field) for field in self.storage.learning_fields]
        actions, _, advantages, returns = fields
        steps = torch.arange(len(actions))
        seen = self.storage.observation_buffers(len(steps))
        self.storage.gather(steps, seen)
        logits, values = self.policy(seen)
        log_probs, entropies = log_probs_and_entropies(logits, actions)
        policy_loss = -(log_probs * (advantages - advantages.mean()) / (advantages.std() + 1e-8)).mean()
        value_loss, entropy = 0.5 * (values - returns).square().mean(), entropies.mean()
        self.optimiser.zero_grad()
        (policy_loss + 0.01 * value_loss - entropy_coef * entropy).backward()
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
        self.optimiser.param_groups[0]["lr"] = learning_rate
        self.optimiser.step()
        self.updates += 1
        return UpdateStatistics(
            *map(float, (policy_loss.detach(), value_loss.detach(), entropy.detach(), 0, 0, 0, norm))
        )

    def warm_up(self):
        pass

    def memory(self):
        return MemoryNode("update")

    def state(self):
        return {"updates": self.updates}

    def restore(self, state):
        self.updates = state["updates"]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(LEARNERS, "reinforce", Reinforce)


def test_it_learns_a_level(tmp_path):
    fields = {"levels": ("first-steps/01-walk",), "max_frames": 400, "frame_skip": 8, "num_steps": 64}
    settings = config(
        tmp_path, learner="reinforce", total_timesteps=32 * 64 * 30, learning_rate=0.3, anneal=False, **fields
    )
    result = train(settings, make_envs=make_environments)
    (trained,) = evaluate(result.policy, settings.evaluated_environment, "sampled", 100)
    (random,) = evaluate(None, settings.evaluated_environment, episodes_per_level=100)
    assert trained.success_rate > random.success_rate + 0.2
    assert load_checkpoint(result.checkpoint).optimiser == {"updates": 30}


def test_a_resumed_run_is_the_whole_run(tmp_path):
    fields = {"learner": "reinforce", "learning_rate": 0.3}
    whole = train(config(tmp_path, name="whole", **fields), make_envs=LineWorld)
    train(config(tmp_path, name="part", **fields), until(2), make_envs=LineWorld)
    ended = train(config(tmp_path, **fields), resume=tmp_path / "part", make_envs=LineWorld)
    assert contents(ended.checkpoint) == contents(whole.checkpoint)
    by_ppo = train(config(tmp_path, name="ppo", learning_rate=0.3), make_envs=LineWorld)
    assert not np.array_equal(vector(by_ppo), vector(whole))
    with pytest.raises(CheckpointError, match="learner: expected ppo, as in the run to resume, got reinforce"):
        train(config(tmp_path, **fields), resume=by_ppo.checkpoint, make_envs=LineWorld)


def test_another_package_brings_a_learner(tmp_path, monkeypatch):
    installed = tmp_path / "another-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[nclone_env.learners]\nelsewhere = {__name__}:Reinforce\n")
    fields = {"learning_rate": 0.3}
    own = train(config(tmp_path, name="own", learner="reinforce", **fields), make_envs=LineWorld)
    with pytest.raises(ConfigError, match="got 'elsewhere'"):
        train(config(tmp_path, name="without", learner="elsewhere", **fields), make_envs=LineWorld)
    monkeypatch.syspath_prepend(tmp_path)
    other = train(config(tmp_path, name="other", learner="elsewhere", **fields), make_envs=LineWorld)
    assert np.array_equal(vector(other), vector(own))


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"learner: expected one of ppo, reinforce, got 'sac'; add .*LEARNERS"):
        train(config(tmp_path, learner="sac"), make_envs=LineWorld)


def broken(**methods):
    """Return a learner with other methods."""
    return type("Broken", (Reinforce,), methods)


def fails(*arguments):
    return {}["absent"]


STATISTICS = UpdateStatistics(*[0.0] * 7)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (fails, "making it: KeyError: 'absent' (test_own_learner.py, line"),
        (lambda: None, "making it: TypeError: "),
        (lambda parts: None, "warm_up: AttributeError: 'NoneType' object has no attribute"),
        (broken(update=fails), "update: KeyError: 'absent' (test_own_learner.py, line"),
        (broken(update=lambda *_: None), "update: TypeError: expected numbers for policy_loss, value_loss, entropy"),
        (broken(update=lambda *_: STATISTICS[:3]), "update: TypeError: expected numbers for policy_loss"),
        (broken(update=lambda *_: STATISTICS._replace(entropy="0")), "update: TypeError: expected numbers"),
        (broken(update=lambda *_: STATISTICS._replace(entropy=None)), "update: TypeError: expected numbers"),
        (broken(warm_up=fails), "warm_up: KeyError"),
        (broken(memory=lambda self: 3), "memory: TypeError: expected a MemoryNode, got 3"),
        (broken(state=lambda self: [3]), "state: TypeError: expected values by name, got [3]"),
        (broken(state=lambda self: {"rates": {1, 2}}), "state: TypeError: expected arrays, numbers and texts, got {1"),
        (broken(state=lambda self: {"self": self}), "state: TypeError: expected arrays, numbers and texts, got <"),
    ],
)
def test_one_line_names_a_learner_that_fails(learner, message, tmp_path, monkeypatch):
    monkeypatch.setitem(LEARNERS, "broken", learner)
    with pytest.raises(ConfigError) as caught:
        train(config(tmp_path, learner="broken"), make_envs=LineWorld)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"learner: expected one that works, got 'broken': {message}")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("not_there:Learner", "loading not_there:Learner: ModuleNotFoundError: No module named 'not_there'"),
        (f"{__name__}:Absent", f"loading {__name__}:Absent: AttributeError: "),
        ("os", "making it: TypeError: 'module' object is not callable"),
        ("written_wrongly:Learner", "loading written_wrongly:Learner: SyntaxError: "),
    ],
)
def test_one_line_names_a_learner_of_another_package_that_does_not_load(entry, message, tmp_path, monkeypatch):
    installed = tmp_path / "another-1.0.dist-info"
    installed.mkdir()
    (tmp_path / "written_wrongly.py").write_text("class Learner(:\n")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[nclone_env.learners]\nelsewhere = {entry}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as caught:
        train(config(tmp_path, learner="elsewhere"), make_envs=LineWorld)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"learner: expected one that works, got 'elsewhere': {message}")


def test_numbers_of_numpy_and_arrays_within_are_read_again(tmp_path, monkeypatch):
    """Torch refuses to load what NumPy would pickle: such a checkpoint could never be resumed."""
    seen = []

    def state(self):
        return {"updates": np.int64(self.updates), "inner": {"array": np.arange(3.0), 7: (np.float32(0.5), None)}}

    def update(self, *arguments):
        found = Reinforce.update(self, *arguments)
        return found._replace(clone_kl=np.float32(0), clip_fraction=np.int64(0), approx_kl=torch.tensor(0.0).item())

    def restore(self, state):
        Reinforce.restore(self, state)
        seen.append(state)

    monkeypatch.setitem(LEARNERS, "counting", broken(state=state, update=update, restore=restore))
    fields = {"learner": "counting", "learning_rate": 0.3}
    whole = train(config(tmp_path, name="whole", **fields), make_envs=LineWorld)
    train(config(tmp_path, name="part", **fields), until(2), make_envs=LineWorld)
    ended = train(config(tmp_path, **fields), resume=tmp_path / "part", make_envs=LineWorld)
    assert np.array_equal(vector(ended), vector(whole))
    ((found,)) = seen
    assert (found["updates"], found["inner"]["array"].tolist(), found["inner"][7]) == (2, [0, 1, 2], [0.5, None])


def test_one_line_names_a_learner_that_does_not_take_its_state_back(tmp_path, monkeypatch):
    monkeypatch.setitem(LEARNERS, "broken", broken(restore=fails))
    train(config(tmp_path, name="part", learner="broken"), until(1), make_envs=LineWorld)
    with pytest.raises((ConfigError, CheckpointError)) as caught:
        train(config(tmp_path, learner="broken"), resume=tmp_path / "part", make_envs=LineWorld)
    (line,) = str(caught.value).splitlines()
    assert "learner: expected one that works, got 'broken': restore: KeyError: 'absent' (test_own_lear" in line
