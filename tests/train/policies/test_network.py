"""The network: its layers and parameters, and the encoders of observations that are no vectors."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.config import OBSERVATION_NAMES, EnvironmentConfig, RenderConfig, RewardConfig
from nclone_env.errors import ConfigError
from nclone_env.game import KINDS
from nclone_env.obs.spec import ENTITY_STATE, observation_specs
from nclone_env.train import ActorCritic, TrainConfig, make_policy
from nclone_env.train.policies.network import EntityEncoder, GridEncoder, PictureEncoder, make_encoders

from ...shared import each_value

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


LAYERS = {
    True: {"trunk.0": (16, 52), "trunk.2": (16, 16), "actor": (6, 16), "critic": (1, 16)},
    False: {
        f"{tower}.{index}": (rows, columns)
        for tower, outputs in (("actor", 6), ("critic", 1))
        for index, rows, columns in ((0, 16, 52), (2, 16, 16), (4, outputs, 16))
    },
}
"""Name to the shape of the weight of each layer, by which checkpoints know them."""


@pytest.mark.parametrize("shared_trunk", LAYERS)
def test_layers_bind_by_name(shared_trunk):
    policy = make(hidden_size=16, shared_trunk=shared_trunk)
    shapes = {name: tuple(value.shape) for name, value in policy.state_dict().items()}
    assert shapes == {
        f"{name}.{part}": shape
        for name, weight in LAYERS[shared_trunk].items()
        for part, shape in (("weight", weight), ("bias", weight[:1]))
    }
    towers = (policy.trunk,) if shared_trunk else (policy.actor[:4], policy.critic[:4])
    assert [type(layer).__name__ for tower in towers for layer in tower] == ["Linear", "ReLU"] * 2 * len(towers)


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


def test_weights_are_orthogonal_with_the_gain_of_the_activation():
    policy = make()
    for layer, expected in ((policy.trunk[2], 2**0.5), (policy.actor, 0.01), (policy.critic, 1.0)):
        gram = layer.weight @ layer.weight.T
        torch.testing.assert_close(gram, expected**2 * torch.eye(len(gram)), atol=1e-5, rtol=1e-4)
        assert (layer.bias == 0).all()


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


ENCODED = tuple(name for name in OBSERVATION_NAMES if name != "graph")
SHAPES = [(128, 128, 1), (2, 84, 84, 1), (4, 64, 64, 1), (128, 256, 1), (37, 43, 1), (3, 36, 50, 1), (16, 17, 1)]


def random_bytes(*shape, seed=0):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(autouse=True)
def same_weights():
    """Draw the same weights in every run: in a few, a value next to the kink of a ReLU is rounded to either side."""
    torch.manual_seed(0)


def plain_picture(encoder, pictures):
    """Return the same function with convolutions over the middle of whole pictures."""
    frames = pictures.squeeze(-1).float() / 255
    hidden = frames if frames.dim() == 4 else frames[:, None]
    block = 8 * 2 ** len(encoder.squares)
    top, left = (side % block // 2 for side in hidden.shape[2:])
    height, width = (side // block * block for side in hidden.shape[2:])
    hidden = hidden[:, :, top : top + height, left : left + width]
    first = encoder.patches
    hidden = F.conv2d(hidden, first.weight.view(-1, hidden.shape[1], 8, 8), first.bias, stride=8).relu()
    for layer in encoder.squares:
        weight = layer.weight.view(-1, 2, 2, hidden.shape[1]).permute(0, 3, 1, 2)
        hidden = F.conv2d(hidden, weight, layer.bias, stride=2).relu()
    return F.relu(encoder.last(hidden.permute(0, 2, 3, 1).flatten(1)))


def gradient(encoder, features):
    weights = torch.linspace(-1, 1, features.numel()).view_as(features)
    parts = torch.autograd.grad((features * weights).sum(), list(encoder.parameters()))
    return torch.cat([part.flatten() for part in parts])


@pytest.mark.parametrize("shape", SHAPES)
def test_pictures_pass_through_convolutions_without_overlap(shape):
    encoder, pictures = PictureEncoder("player_frame", shape), random_bytes(3, *shape)
    found, expected = encoder(pictures), plain_picture(encoder, pictures)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(gradient(encoder, found), gradient(encoder, expected), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(encoder(pictures[1:2]), found[1:2], atol=1e-6, rtol=1e-5)
    apart = torch.stack([pictures, pictures], dim=1).flatten(0, 1)[::2]  # not contiguous
    torch.testing.assert_close(encoder(apart), found, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_patch_is_one_of_the_picture(shape):
    """Patches lie within the picture, none overlap, and those that are left out are at the edges, on all sides."""
    encoder = PictureEncoder("player_frame", shape)
    rows, columns = np.divmod(encoder.corners(), encoder.line)
    covered = np.zeros(shape[-3:-1], int)
    for row, column in zip(rows, columns):
        covered[row : row + 8, column : column + 8] += 1
    assert covered.sum() == 64 * encoder.places()[0]
    assert covered.max() == 1
    seen = np.argwhere(covered)
    before, after = seen.min(0), np.array(covered.shape) - 1 - seen.max(0)
    assert (np.abs(before - after) <= 1).all()
    assert (before + after < 8 * 2 ** len(encoder.squares)).all()
    assert encoder.places()[-2] <= 32


@pytest.mark.parametrize("shape", [(15, 128, 1), (128, 128), (2, 2, 64, 64, 1), (64, 64, 3)])
def test_other_pictures_are_refused(shape):
    with pytest.raises(ConfigError, match=r"observations: expected player_frame of shape .* at least 16 pixels"):
        PictureEncoder("player_frame", shape)


@pytest.mark.parametrize("shape", [(21, 21), (2, 9, 9), (1, 1), (3, 3), (5, 5), (7, 7), (11, 11), (13, 13), (99, 99)])
def test_every_square_of_the_grid_is_seen(shape):
    """And none twice: features differ for every square that is solid alone."""
    encoder, count = GridEncoder("locals", shape), int(np.prod(shape))
    step = max(count // 150, 1)
    grids = torch.eye(count, dtype=torch.uint8)[::step].mul(255).view(-1, *shape)
    features = encoder(torch.cat([torch.zeros(1, *shape, dtype=torch.uint8), grids]))
    assert features.shape == (len(grids) + 1, encoder.width)
    assert len(features.detach().unique(dim=0)) == len(features)
    assert gradient(encoder, features).isfinite().all()


def entity_shapes(rows=32, stack=()):
    features = len(ENTITY_STATE)
    shapes = {"entity_states": (rows, features), "entity_kinds": (rows,), "entity_count": (1,)}
    return {name: (*stack, *shape) for name, shape in shapes.items()}


def entities(count, rows=32, seed=0, batch=4):
    """Return states, kinds and counts of a batch with ``count`` entities each."""
    rng = np.random.default_rng(seed)
    states = np.zeros((batch, rows, len(ENTITY_STATE)), np.float32)
    states[:, :count] = rng.uniform(-1, 1, states[:, :count].shape)
    kinds = np.zeros((batch, rows), np.uint8)
    kinds[:, :count] = rng.integers(1, len(KINDS), kinds[:, :count].shape)
    return [torch.from_numpy(array) for array in (states, kinds, np.full((batch, 1), count, np.uint8))]


@given(st.integers(1, 32), st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_order_of_entities_has_no_influence(count, seed):
    torch.manual_seed(0)
    encoder, (states, kinds, counts) = EntityEncoder(entity_shapes()), entities(count, seed=seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(32))  # unused rows move as well
    features = encoder(states, kinds, counts)
    torch.testing.assert_close(encoder(states[:, order], kinds[:, order], counts), features, atol=1e-6, rtol=1e-5)
    garbage = torch.where((kinds == 0).unsqueeze(-1), 5.0, states)
    torch.testing.assert_close(encoder(garbage, kinds, counts), features, atol=0, rtol=0)


def test_states_kinds_and_count_have_influence():
    """The negative control: states exchanged between kinds, another kind, one entity less."""
    torch.manual_seed(0)
    encoder, (states, kinds, counts) = EntityEncoder(entity_shapes()), entities(3)
    kinds[:, :3] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    features = encoder(states, kinds, counts)
    other_kinds, fewer = kinds.clone(), kinds.clone()
    other_kinds[:, 0], fewer[:, 2] = 9, 0
    for changed in (
        (states[:, [1, 0, *range(2, 32)]], kinds, counts),
        (states, other_kinds, counts),
        (states, fewer, counts - 1),
        (states, kinds, counts - 1),
    ):
        assert ((encoder(*changed) - features).abs().amax(dim=1) > 1e-3).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_no_entities_give_finite_features_and_gradients(dtype):
    encoder, (states, kinds, counts) = EntityEncoder(entity_shapes()), entities(0)
    features = encoder(states.to(dtype), kinds, counts)
    assert (features == 0).all()
    assert gradient(encoder, features).isfinite().all()


def test_the_frames_of_a_stack_are_encoded_one_by_one():
    encoder = EntityEncoder(entity_shapes(stack=(2,)))
    frames = [entities(count, seed=count) for count in (4, 7)]
    stacked = encoder(*(torch.stack(parts, dim=1) for parts in zip(*frames, strict=True)))
    assert stacked.shape == (4, encoder.width)
    single = torch.cat([encoder(*frame) for frame in frames], dim=1)
    torch.testing.assert_close(stacked, single, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"graph_level": (1,), "game_state": (30,)}, "no encoder for 'graph'.*env.graphs.*reachability"),
        ({"entity_states": (32, 12), "entity_kinds": (32,)}, "missing entity_count"),
        ({"entity_kinds": (32,), "game_state": (30,)}, "expected entity_states beside entity_kinds"),
        ({"depth": (3, 4, 5)}, r"expected a vector .* for depth, got shape \(3, 4, 5\)"),
        ({"locals": (441,)}, r"expected locals of shape .* got \(441,\)"),
        ({"action_mask": (6,)}, "at least one that the network can see"),
    ],
)
def test_what_cannot_be_encoded_is_refused(shapes, message):
    with pytest.raises(ConfigError, match=message):
        make_encoders(shapes)


@pytest.mark.parametrize(("side", "stack", "dtype"), each_value((128, 84, 64), (1, 3), ("float32", "float16")))
def test_every_observation_has_a_place(side, stack, dtype):
    """Each array of each configuration is an input (but for the mask), and no parameter is left without a gradient."""
    observation = {"frame_stack": stack, "dtype": dtype}
    config = EnvironmentConfig(observations=ENCODED, observation=observation, render=RenderConfig(side))
    specs, rng = observation_specs(config), np.random.default_rng(0)
    seen = {
        spec.name: torch.from_numpy(rng.uniform(spec.low, spec.high, (4, *spec.shape)).round(2).astype(spec.dtype))
        for spec in specs
    }
    policy = ActorCritic({spec.name: spec.shape for spec in specs}, generator=torch.Generator().manual_seed(0))
    logits, values = policy(seen)
    (logits.square().sum() + values.sum()).backward()
    for name, parameter in policy.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    for spec in specs:
        other = torch.from_numpy(rng.uniform(spec.low, spec.high, (4, *spec.shape)).astype(spec.dtype))
        changed = bool((policy({**seen, spec.name: other})[1] != values).any())
        assert changed == (spec.name != "action_mask"), spec.name
