"""TorchRL around the single environment and around the native vector environment."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torchrl")

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.envs import GymWrapper, check_env_specs
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from nclone_env import NPlusPlusVectorEnv

from .bases import FIELDS, check_learned, numbers, run_example


def policy(env):
    network = nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 6))
    logits = TensorDictModule(network, in_keys=["game_state"], out_keys=["logits"])
    return ProbabilisticActor(
        logits,
        spec=env.full_action_spec_unbatched,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )


def vector_env(num_envs, **fields):
    native = NPlusPlusVectorEnv(None, num_envs, autoreset_mode="Disabled", **FIELDS | fields)
    return GymWrapper(native, categorical_action_encoding=True)


def test_one_environment_obeys_its_specs():
    env = GymWrapper(gymnasium.make("nclone/NPlusPlus-v0", **FIELDS), categorical_action_encoding=True)
    check_env_specs(env)
    env.set_seed(3)
    rollout = env.rollout(200, break_when_any_done=False)
    assert rollout["game_state"].shape == (200, 30)
    ends = rollout["next", "done"].squeeze(-1)
    assert 4 <= ends.sum() < 100
    same = rollout["next", "game_state"][:-1] == rollout["game_state"][1:]
    assert same.all(-1)[~ends[:-1]].all()
    assert not same.all(-1)[ends[:-1]].any()
    env.close()


def test_the_vector_environment_does_in_torchrl_what_it_does_alone():
    env = vector_env(8)
    check_env_specs(env)
    env.set_seed(3)
    rollout = env.rollout(100, break_when_any_done=False)
    assert rollout.batch_size == (8, 100)
    twin = NPlusPlusVectorEnv(None, 8, autoreset_mode="Disabled", **FIELDS)
    twin.reset(seed=3)
    observations, _ = twin.reset()  # rollout() resets once more
    ends, over = 0, np.zeros(8, bool)
    for t in range(100):
        if over.any():
            observations, _ = twin.reset(options={"reset_mask": over})
        np.testing.assert_array_equal(observations["game_state"], rollout["game_state"][:, t])
        observations, rewards, terminated, truncated, _ = twin.step(rollout["action"][:, t].numpy())
        np.testing.assert_array_equal(observations["game_state"], rollout["next", "game_state"][:, t])
        np.testing.assert_array_equal(rewards.astype(np.float32), rollout["next", "reward"][:, t, 0])
        over = terminated | truncated
        np.testing.assert_array_equal(over, rollout["next", "done"][:, t, 0])
        ends += over.sum()
    assert ends >= 16
    env.close()


class Numbers(gymnasium.vector.VectorWrapper):
    """Leaves out the names in infos, for which TorchRL has no tensors."""

    autoreset_mode = gymnasium.vector.AutoresetMode.SAME_STEP  # where TorchRL looks for it

    def reset(self, **arguments):
        observations, info = self.env.reset(**arguments)
        return observations, self._kept(info)

    def step(self, actions):
        *results, info = self.env.step(actions)
        return *results, self._kept(info)

    def _kept(self, info):
        kept = {name: value for name, value in info.items() if name.strip("_") not in ("level", "outcome")}
        return kept | ({"final_info": self._kept(kept["final_info"])} if "final_info" in kept else {})


def gathered(num_envs, **fields):
    options = {"autoreset_mode": "SameStep", "gymnasium_infos": True, **FIELDS, **fields}
    return NPlusPlusVectorEnv(None, num_envs, **options)


def test_last_observations_in_same_step_mode():
    fields = FIELDS | {"max_frames": 5000}  # only deaths end episodes: TorchRL resets once more if all end together
    env = GymWrapper(Numbers(gathered(8, dict_observations=False, **fields)), categorical_action_encoding=True)
    env.set_seed(3)
    rollout = env.rollout(400, break_when_any_done=False)
    twin = NPlusPlusVectorEnv(None, 8, autoreset_mode="SameStep", **fields)
    twin.reset(seed=3)
    twin.reset()  # rollout() resets once more
    ends = 0
    for t in range(400):
        observations, *_, info = twin.step(rollout["action"][:, t].numpy())
        expected = observations["game_state"].copy()
        if "final_obs" in info:
            expected[info["_final_obs"]] = info["final_obs"]["game_state"]
            ends += int(info["_final_obs"].sum())
        np.testing.assert_array_equal(rollout["next", "observation"][:, t], expected)
    assert ends >= 8
    env.close()


def test_names_in_infos_are_refused_as_those_of_gymnasiums_vector_environment_are():
    single = [lambda: gymnasium.make("nclone/NPlusPlus-v0", **FIELDS)] * 4
    theirs = gymnasium.vector.SyncVectorEnv(single, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    for envs in (theirs, gathered(4)):
        with pytest.raises(KeyError, match="mismatch"):
            GymWrapper(envs, categorical_action_encoding=True)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "nclone_env:nclone/NPlusPlus-Hazards-v0"])
def test_a_script_needs_no_other_change_than_the_id(env_id):
    env = GymWrapper(gymnasium.make(env_id), categorical_action_encoding=True)
    check_env_specs(env)
    rollout = env.rollout(300, break_when_any_done=False)
    assert rollout["observation"].shape == (300, *env.observation_spec["observation"].shape)
    env.close()


def test_the_mode_that_torchrl_cannot_take_is_refused_by_it():
    with pytest.raises(RuntimeError, match="auto-reset mode must be one of SAME_STEP or DISABLED"):
        GymWrapper(NPlusPlusVectorEnv(None, 2, **FIELDS))


def test_ppo_learns():
    torch.manual_seed(0)
    env = vector_env(16)
    actor = policy(env)
    critic = ValueOperator(nn.Sequential(nn.Linear(30, 64), nn.Tanh(), nn.Linear(64, 1)), in_keys=["game_state"])
    loss_module = ClipPPOLoss(actor, critic)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-3)
    before = numbers(loss_module)
    for _ in range(2):
        with torch.no_grad():
            rollout = env.rollout(64, actor, break_when_any_done=False)
        assert rollout["next", "reward"].isfinite().all()
        GAE(gamma=0.99, lmbda=0.95, value_network=critic)(rollout)
        losses = loss_module(rollout.reshape(-1))
        loss = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.isfinite()
    check_learned(before, numbers(loss_module))
    env.close()


def test_the_example_of_the_documents():
    assert run_example("TorchRL")["rollout"].batch_size == (16, 100)
