"""The actor-critic: shapes, seeding, sampling."""

import pytest
import torch

from nclone_env.train.policy import ActorCritic

SHAPES = {"game_state": (30,), "player_frame": (128, 128, 1), "global_view": (128, 256, 1)}


def observations(count, names):
    generator = torch.Generator().manual_seed(7)
    return {
        name: torch.rand(count, 30, generator=generator)
        if name == "game_state"
        else torch.randint(0, 256, (count, *SHAPES[name]), dtype=torch.uint8, generator=generator)
        for name in names
    }


def make(names, seed=0):
    return ActorCritic({name: SHAPES[name] for name in names}, 32, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("names", [("game_state",), ("player_frame",), ("game_state", "global_view"), tuple(SHAPES)])
def test_shapes_and_gradients(names):
    policy, seen = make(names), observations(3, names)
    actions, log_probs, values = policy.act(seen, torch.Generator().manual_seed(0))
    assert (actions.shape, log_probs.shape, values.shape) == ((3,), (3,), (3,))
    again, entropies, values_again = policy.evaluate_actions(seen, actions.clone())
    torch.testing.assert_close(again.detach(), log_probs)
    torch.testing.assert_close(values_again.detach(), values)
    torch.testing.assert_close(policy.value(seen), values)
    (again.sum() + entropies.sum() + values_again.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_first_policy_is_nearly_uniform():
    log_probs, _ = make(("game_state",))(observations(50, ("game_state",)))
    assert (log_probs.exp() - 1 / 6).abs().max() < 0.02


def test_weights_follow_the_seed_alone():
    torch.manual_seed(1)
    first = make(tuple(SHAPES)).state_dict()
    torch.manual_seed(2)
    second, other = make(tuple(SHAPES)).state_dict(), make(tuple(SHAPES), seed=1).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["actor.0.weight"], other["actor.0.weight"])


def test_sampling_follows_the_probabilities_and_argmax_the_mode():
    policy, seen = make(("game_state",)), observations(1, ("game_state",))
    with torch.no_grad():
        policy.actor[-1].weight.zero_()
        policy.actor[-1].bias.copy_(torch.tensor([0.05, 0.1, 0.4, 0.15, 0.1, 0.2]).log())
    many = {"game_state": seen["game_state"].expand(20_000, -1)}
    actions, _, _ = policy.act(many, torch.Generator().manual_seed(3))
    shares = torch.bincount(actions, minlength=6) / len(actions)
    # five standard deviations of a share of 0.4 among 20,000 draws
    assert (shares - torch.tensor([0.05, 0.1, 0.4, 0.15, 0.1, 0.2])).abs().max() < 0.018
    assert policy.argmax(seen).item() == 2


def test_pictures_are_scaled():
    policy = make(("player_frame",))
    frame = torch.full((1, 128, 128, 1), 255, dtype=torch.uint8)
    scaled = policy.trunks["player_frame"][0][0](frame)
    assert scaled.shape == (1, 1, 128, 128)
    assert scaled.dtype == torch.float32
    assert scaled.max().item() == pytest.approx(1.0)
