"""Cloning: the clone imitates, on both networks alike, and leaves the critic alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.errors import TrajectoryError
from nclone_env.train.learn.cloning import CloningSettings, clone, evaluate_clone
from nclone_env.train.learn.trajectories import EpisodeData, TrajectoryBuffer
from nclone_env.train.policies import mlp
from nclone_env.train.policies.network import ActorCritic
from nclone_env.train.policies.torch_network import TorchNetwork

SETTINGS = CloningSettings(max_epochs=60, patience=10, least_updates=0)


def space(masked=False):
    boxes = {"game_state": spaces.Box(-1, 1, (30,), np.float32)}
    if masked:
        boxes["action_mask"] = spaces.Box(0, 1, (6,), np.int8)
    return spaces.Dict(boxes)


def taught(count=6, masked=False, noise=0.0):
    """Return episodes whose action is the largest of six features, or random with a given probability."""
    random = np.random.default_rng(4)
    episodes = []
    for length in range(20, 20 + count):
        rows = {"game_state": random.standard_normal((length, 30), np.float32)}
        actions = rows["game_state"][:, :6].argmax(axis=1)
        actions = np.where(random.random(length) < noise, random.integers(0, 6, length), actions)
        if masked:
            rows["action_mask"] = (random.random((length, 6)) < 0.5).astype(np.int8)
            rows["action_mask"][np.arange(length), actions] = 1
        episodes.append(EpisodeData(rows, actions))
    return episodes


def policy(masked=False, **arguments):
    shapes = {name: box.shape for name, box in space(masked).spaces.items()}
    return ActorCritic(shapes, hidden_size=32, generator=torch.Generator().manual_seed(1), **arguments)


def parameters(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("masked", [False, True])
def test_a_clone_imitates(masked):
    made = clone(policy(masked), taught(masked=masked), space(masked), settings=SETTINGS)
    assert made.steps == sum(range(20, 26))
    assert made.loss < 0.5 < np.log(6)
    assert made.accuracy > 0.9
    assert 1 <= made.epochs <= SETTINGS.max_epochs


def test_both_networks_make_the_same_clone(monkeypatch):
    fixed = CloningSettings(max_epochs=2, held_out=0.0, least_updates=0)
    by_hand = clone(policy(True), taught(masked=True), space(True), settings=fixed)
    monkeypatch.setattr(mlp, "MLP", TorchNetwork)
    through_torch = clone(policy(True), taught(masked=True), space(True), settings=fixed)
    for name, value in by_hand.policy.state_dict().items():
        torch.testing.assert_close(through_torch.policy.state_dict()[name], value, rtol=0, atol=1e-4)
    other = clone(policy(True), taught(5, masked=True), space(True), settings=fixed)
    assert not torch.allclose(other.policy.state_dict()["trunk.0.weight"], by_hand.policy.trunk[0].weight, atol=1e-4)


@pytest.mark.parametrize("shared_trunk", [False, True])
def test_the_critic_and_the_given_policy_are_left_alone(shared_trunk):
    given = policy(shared_trunk=shared_trunk)
    before = parameters(given)
    after = parameters(clone(given, taught(), space(), settings=replace(SETTINGS, max_epochs=8)).policy)
    for name, value in before.items():
        assert torch.equal(given.state_dict()[name], value), name
        assert torch.equal(after[name], value) == name.startswith("critic"), name


def test_the_seed_decides():
    few = replace(SETTINGS, max_epochs=8)
    first, second, other = (clone(policy(), taught(), space(), settings=few, seed=seed) for seed in (1, 1, 2))
    assert first[1:] == second[1:]
    assert all(torch.equal(a, b) for a, b in zip(first.policy.parameters(), second.policy.parameters(), strict=True))
    assert not torch.equal(first.policy.trunk[0].weight, other.policy.trunk[0].weight)


def test_the_number_of_epochs_follows_the_held_out_loss():
    """Actions that are noise cannot be learnt, so the loss on held-out steps soon grows."""
    settings = CloningSettings(max_epochs=60, learning_rate=5e-3, least_updates=0)
    noisy = clone(policy(), taught(20, noise=1.0), space(), settings=settings)
    clean = clone(policy(), taught(20), space(), settings=settings)
    assert noisy.epochs < clean.epochs / 2
    settings = CloningSettings(max_epochs=7, held_out=0.0, least_updates=0)
    all_of_them = clone(policy(), taught(), space(), settings=settings)
    assert all_of_them.epochs == 7
    assert np.isnan(all_of_them.held_out_loss)


def test_there_are_at_least_so_many_updates():
    settings = CloningSettings(max_epochs=2, least_updates=100)
    made = clone(policy(), taught(1), space(), settings=settings)  # 20 steps are one minibatch
    assert made.epochs == 100


def test_entropy_bonus_keeps_the_clone_uncertain():
    sure, unsure = (
        clone(policy(), taught(), space(), settings=CloningSettings(64, 5e-3, 0.5, weight, 60, 10, 0.0, 0))
        for weight in (0.0, 0.5)
    )
    assert unsure.loss > 2 * sure.loss


def test_stacks():
    stacked = ActorCritic({"game_state": (3, 30)}, hidden_size=32, generator=torch.Generator().manual_seed(1))
    made = clone(
        stacked,
        taught(),
        space(),
        frame_stack=3,
        settings=CloningSettings(max_epochs=40, held_out=0.0, least_updates=0),
    )
    assert made.accuracy > 0.9


def test_figures_are_those_of_the_policy():
    made = clone(policy(), taught(), space(), settings=SETTINGS)
    steps = TrajectoryBuffer(space(), 6)
    steps.fill(taught(), 1.0, 1.0)
    log_probs = torch.log_softmax(made.policy(steps.observations)[0], dim=1)
    expected = -log_probs.gather(1, steps.steps["actions"][:, None]).mean().item()
    loss, accuracy = evaluate_clone(made.policy, steps, np.arange(steps.num_steps))
    assert loss == pytest.approx(expected, rel=1e-5)  # float32 sums in another order
    assert (loss, accuracy) == (made.loss, made.accuracy)


@pytest.mark.parametrize(
    "nothing", [[], [EpisodeData({"game_state": np.zeros((0, 30), np.float32)}, np.zeros(0, int))]]
)
def test_nothing_to_imitate(nothing):
    with pytest.raises(TrajectoryError, match="expected at least one step to imitate, got none"):
        clone(policy(), nothing, space())
