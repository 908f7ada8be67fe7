"""The actor-critic: structure, initial weights and inputs."""

import pytest
import torch

from nclone_env.config import RewardConfig
from nclone_env.train.config import TrainConfig
from nclone_env.train.network.policy import ActorCritic, make_policy

VECTORS = {"game_state": (30,), "reachability": (2, 11)}
PICTURES = {"player_frame": (64, 64, 1), "global_view": (40, 72, 1)}


def make(shapes=VECTORS, seed=0, **options):
    return ActorCritic(shapes, generator=torch.Generator().manual_seed(seed), **options)


def observations(shapes, count=5, seed=7):
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randint(0, 256, (count, *shape), dtype=torch.uint8, generator=generator)
        if name in PICTURES
        else torch.rand(count, *shape, generator=generator) * 2 - 1
        for name, shape in shapes.items()
    }


def kinds_of(module):
    return [type(layer).__name__ for layer in module]


def test_separate_towers_bind_by_name():
    policy = make(hidden_size=16, shared_trunk=False)
    assert kinds_of(policy.actor) == kinds_of(policy.critic) == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]
    shapes = {name: tuple(value.shape) for name, value in policy.state_dict().items()}
    assert shapes == {
        f"{tower}.{index}.{part}": shape
        for tower, outputs in (("actor", 6), ("critic", 1))
        for index, rows, columns in ((0, 16, 52), (2, 16, 16), (4, outputs, 16))
        for part, shape in (("weight", (rows, columns)), ("bias", (rows,)))
    }


def test_a_shared_trunk_binds_by_name():
    policy = make(hidden_size=16)
    assert kinds_of(policy.trunk) == ["Linear", "ReLU", "Linear", "ReLU"]
    shapes = {name: tuple(value.shape) for name, value in policy.state_dict().items() if "weight" in name}
    assert shapes == {
        "trunk.0.weight": (16, 52),
        "trunk.2.weight": (16, 16),
        "actor.weight": (6, 16),
        "critic.weight": (1, 16),
    }


@pytest.mark.parametrize("shared_trunk", [False, True])
def test_vectors_are_concatenated_unchanged_in_their_order(shared_trunk):
    policy, seen = make(shared_trunk=shared_trunk), observations(VECTORS)
    features = torch.cat([seen["game_state"], seen["reachability"].flatten(1)], dim=1)
    if shared_trunk:
        features = policy.trunk(features)
    logits, values = policy(seen)
    assert torch.equal(logits, policy.actor(features))
    assert torch.equal(values, policy.critic(features)[:, 0])
    backwards = dict(reversed(seen.items()))  # the order is that of the shapes, not of the observations
    assert torch.equal(policy(backwards)[0], logits)


def test_float16_is_computed_in_float32():
    policy, seen = make(), {name: tensor.half() for name, tensor in observations(VECTORS).items()}
    logits, _ = policy(seen)
    assert logits.dtype == torch.float32
    assert torch.equal(logits, policy({name: tensor.float() for name, tensor in seen.items()})[0])


def test_the_action_mask_is_no_input():
    seen = observations(VECTORS)
    plain, masked = make(VECTORS), make({"action_mask": (6,), **VECTORS})
    assert masked.observation_shapes == {"action_mask": (6,), **VECTORS}
    for mask in (torch.ones(5, 6, dtype=torch.int8), torch.zeros(5, 6, dtype=torch.int8)):
        assert torch.equal(masked({"action_mask": mask, **seen})[0], plain(seen)[0])


@pytest.mark.parametrize("shapes", [VECTORS, PICTURES, {**VECTORS, **PICTURES}])
@pytest.mark.parametrize("shared_trunk", [False, True])
def test_every_parameter_has_a_gradient(shapes, shared_trunk):
    policy, seen = make(shapes, shared_trunk=shared_trunk), observations(shapes)
    logits, values = policy(seen)
    assert (logits.shape, values.shape) == ((5, 6), (5,))
    (logits.square().sum() + values.sum()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in policy.parameters())
    assert {parameter.dtype for parameter in policy.parameters()} == {torch.float32}


def test_first_policy_is_nearly_uniform():
    logits, _ = make()(observations(VECTORS, 50))
    assert (torch.softmax(logits, dim=1) - 1 / 6).abs().max() < 0.02


def test_weights_are_orthogonal_with_the_gain_of_the_activation():
    policy = make()
    for layer, expected in ((policy.trunk[2], 2**0.5), (policy.actor, 0.01), (policy.critic, 1.0)):
        gram = layer.weight @ layer.weight.T
        torch.testing.assert_close(gram, expected**2 * torch.eye(len(gram)), atol=1e-5, rtol=1e-4)
        assert (layer.bias == 0).all()


def test_the_gain_keeps_the_variance():
    inputs = torch.randn(10**6, generator=torch.Generator().manual_seed(0))
    assert inputs.relu().square().mean().item() * 2 == pytest.approx(1, abs=0.01)


def test_weights_follow_the_seed_alone():
    shapes = {**VECTORS, **PICTURES, "entity_states": (4, 12), "entity_kinds": (4,), "entity_count": (1,)}
    torch.manual_seed(1)
    first = make(shapes).state_dict()
    torch.manual_seed(2)
    second, other = make(shapes).state_dict(), make(shapes, seed=1).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first if "weight" in name)


def test_values_begin_near_the_shaping_weight():
    """Minus the potential at the start of a level; without shaping they begin near 0."""
    seen = {"game_state": torch.zeros(1, 30)}
    for shaping in (5.0, 0.0):
        config = TrainConfig.of(reward=RewardConfig(shaping=shaping))
        assert make_policy(config, {"game_state": (30,)})(seen)[1].item() == pytest.approx(shaping, abs=1e-6)
