"""A widened policy begins by doing what the first does."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
import torch

from nclone_env import NPlusPlusVectorEnv
from nclone_env.train import TrainConfig, load_policy, train
from profiling.training.widened import main

LEVEL = "hazards/05-slalom"


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """Return a policy after an update, with large weights, and the wider one that is made of it."""
    folder = tmp_path_factory.mktemp("widened")
    narrow = TrainConfig.of(
        levels=(LEVEL,), observations=("game_state", "locals"), locals_size=9, locals_planes=3, hidden_size=24,
        shared_trunk=False, num_envs=8, num_steps=8, num_minibatches=1, update_epochs=1, total_timesteps=64,
        learning_rate=0.3, output=folder, name="narrow", num_threads=1,
    )  # fmt: skip
    train(narrow)
    main(str(folder / "narrow"), folder / "wide.pt", locals_size=13, max_entities=8, hidden_size=32)
    return load_policy(folder / "narrow"), load_policy(folder / "wide.pt")


def test_a_widened_policy_has_the_same_probabilities_and_values(policies):
    _, wide = policies
    assert wide.network.observation_shapes["locals"] == (3, 13, 13)
    assert wide.network.observation_shapes["entity_states"] == (8, 12)
    assert wide.network.hidden_size == wide.config.hidden_size == 32
    with torch.inference_mode():
        (logits, values), (wide_logits, wide_values) = (each.network(observed(each)) for each in policies)
    assert logits.std(dim=0).min() > 0.01
    # sums of more numbers round differently
    torch.testing.assert_close(wide_logits, logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(wide_values, values, atol=1e-4, rtol=1e-4)


def test_what_is_new_can_learn(policies):
    _, wide = policies
    logits, values = wide.network(observed(wide))
    (logits[:, 0].sum() + values.sum()).backward()
    for tower in (wide.network.actor, wide.network.critic):
        assert tower[0].weight[24:].abs().sum(dim=1).min() > 0
        assert (tower[2].weight[:24, 24:] == 0).all()
        assert tower[2].weight.grad[:24, 24:].abs().sum() > 0


def observed(policy):
    """Return the observations after the same 40 steps of eight environments."""
    with closing(NPlusPlusVectorEnv(policy.environment, 8)) as envs:
        observations, _ = envs.reset(seed=0)
        random = np.random.default_rng(0)
        for _ in range(40):
            observations, *_ = envs.step(random.integers(6, size=8))
    return {name: torch.from_numpy(observations[name].copy()) for name in policy.network.observation_shapes}
