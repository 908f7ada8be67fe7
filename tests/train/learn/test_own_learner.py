"""A learner of one's own: REINFORCE is registered by name, trains, and is resumed; the package is not changed."""

import numpy as np
import pytest
import torch

from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.memory.tree import MemoryNode
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
