"""The hand-written MLP against torch: outputs, and the gradient of the whole loss."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.game import KINDS
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.policies.arrays import LossScaling
from nclone_env.train.policies.mlp import MLP, covers
from nclone_env.train.policies.network import ActorCritic, FlatParameters
from nclone_env.train.policies.torch_network import TorchNetwork

from ...shared import each_value

STEPS, ENVS = 8, 33
BOXES = {
    "game_state": spaces.Box(-1, 1, (30,), np.float32),
    "reachability": spaces.Box(-1, 1, (7,), np.float32),
    "locals": spaces.Box(0, 255, (9, 9), np.uint8),
    "entity_states": spaces.Box(-1, 1, (5, 12), np.float32),
    "entity_kinds": spaces.Box(0, len(KINDS) - 1, (5,), np.uint8),
    "entity_count": spaces.Box(0, 5, (1,), np.uint8),
    "player_frame": spaces.Box(0, 255, (44, 65, 1), np.uint8),
    "global_view": spaces.Box(0, 255, (96, 128, 1), np.uint8),
}
ENTITIES = ("entity_states", "entity_kinds", "entity_count")


def random_rollout(names, masked, frame_stack=1, reference=False, envs=ENVS):
    """Return a storage with random observations, actions, advantages and returns; a fifth of them begins an episode."""
    random, shape = np.random.default_rng(5), (STEPS, envs)
    boxes = {name: BOXES[name] for name in names}
    if masked:
        boxes["action_mask"] = spaces.Box(0, 1, (6,), np.int8)
    storage = RolloutStorage(STEPS, envs, spaces.Dict(boxes), frame_stack, 6 if reference else 0)
    storage.space = spaces.Dict(boxes)
    for name in names:
        fill(storage.observation_arrays, name, random)
    storage.episode_starts[:] = random.random(storage.episode_starts.shape) < 0.2
    storage.arrays.actions[:] = random.integers(0, 6, shape)
    if masked:
        allowed = random.random((STEPS + frame_stack, envs, 6)) < 0.6
        np.put_along_axis(allowed[frame_stack - 1 : -1], storage.arrays.actions[..., None], True, axis=2)
        allowed[-1, :, 0] = True
        storage.observation_arrays["action_mask"][:] = allowed
    if reference:
        storage.reference[:] = random.dirichlet(np.full(6, 0.5), STEPS * envs)
        if masked:
            storage.reference[:] *= storage.flat_observations["action_mask"][(frame_stack - 1) * envs : -envs]
            storage.reference[:] /= storage.reference.sum(axis=1, keepdims=True)
    storage.arrays.log_probs[:] = np.log(random.uniform(0.05, 0.9, shape))
    storage.arrays.advantages[:] = random.standard_normal(shape)
    storage.arrays.returns[:] = random.standard_normal(shape)
    return storage


def fill(arrays, name, random):
    """Fill an array of observations with random ones; sets of entities have every size from 0 on."""
    array = arrays[name]
    if name == "entity_kinds":
        count = arrays["entity_count"]
        count[:] = random.integers(0, array.shape[-1] + 1, count.shape)
        array[:] = random.integers(1, len(KINDS), array.shape) * (np.arange(array.shape[-1]) < count)
    elif array.dtype == np.uint8 and name != "entity_count":
        array[:] = random.integers(0, 256, array.shape)
    elif name != "entity_count":
        array[:] = random.standard_normal(array.shape)


def both(names, masked=False, seed=3, reference=False, frame_stack=1, **network):
    """Return a storage, the parameters and the two networks on them."""
    storage = random_rollout(names, masked, frame_stack, reference)
    policy, parameters = random_policy(storage, seed, **network)
    made = [kind(policy, parameters, storage, seats=2, most_rows=300) for kind in (MLP, TorchNetwork)]
    return storage, parameters, *made


def random_policy(storage, seed=3, **network):
    """Return a policy on such observations, and its parameters, which are not only initial ones."""
    shapes = {name: tuple(stack.shape[1:]) for name, stack in storage.observation_buffers(0).items()}
    policy = ActorCritic(shapes, generator=torch.Generator().manual_seed(seed), **network)
    parameters = FlatParameters(policy)
    parameters.vector += 0.1 * np.random.default_rng(seed).standard_normal(len(parameters.vector), np.float32)
    return policy, parameters


INPUTS = [
    (("game_state",), False, 1),
    (("game_state", "reachability"), False, 1),
    (("game_state",), True, 1),
    (("locals",), False, 1),
    (ENTITIES, True, 1),
    (("game_state", "locals", *ENTITIES, "reachability"), True, 1),
    (("player_frame",), False, 1),
    (("game_state", "player_frame", "global_view"), True, 2),
    (("game_state", "locals"), True, 3),
]


@pytest.fixture(autouse=True)
def two_threads():
    """With one thread torch sums 100,000 products of a gradient one after the other: off by 0.3 %."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("inputs", "shared_trunk", "coefficient"), each_value(INPUTS, [False, True], [0.0, 0.7]))
def test_outputs_and_gradients_equal_those_of_torch(inputs, shared_trunk, coefficient):
    names, masked, frame_stack = inputs
    network = {"hidden_size": 48, "shared_trunk": shared_trunk}
    storage, parameters, by_hand, reference = both(names, masked, reference=True, frame_stack=frame_stack, **network)
    seen = {name: stack.numpy() for name, stack in storage.observation_buffers(ENVS).items()}
    storage.gather(torch.arange(ENVS), {name: torch.from_numpy(array) for name, array in seen.items()})
    for got, expected in zip(by_hand.outputs(1, seen), reference.outputs(1, seen), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    rows = np.random.default_rng(1).permutation(STEPS * ENVS)[:201]
    scaling = LossScaling(*np.array([0.1, 1.3, 1 / 201, 0.2, 0.5, 0.05, coefficient], np.float32))
    results = []
    for network in (by_hand, reference):
        gradient, sums = np.full(len(parameters.vector), np.nan, np.float32), np.full(6, np.nan)
        network.gradient(0, rows, scaling, gradient, sums)
        results.append((gradient, sums))
    (gradient, sums), (expected, expected_sums) = results
    for name, part in parameters.views(expected).items():
        difference = np.abs(parameters.views(gradient)[name] - part).max()
        limit = 3e-5 if ".patches.bias" in name else 1e-5  # a sum over 100,000 patches, in another order than torch's
        assert difference <= limit * np.abs(part).max(), name
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5, atol=1e-4)
    assert sums[4] > 10, "some ratios are clipped"
    assert (sums[5] > 10) == (coefficient > 0), "the reference is some way off"


def test_gradient_depends_on_every_input():
    """Negative control: each number that the loss reads changes the gradient."""
    storage, parameters, by_hand, _ = both(("game_state",), reference=True, hidden_size=16)
    rows = np.arange(100)
    gradient, sums = np.zeros(len(parameters.vector), np.float32), np.zeros(6)
    scaling = LossScaling(*np.array([0.1, 1.3, 0.01, 0.2, 0.5, 0.05, 0.3], np.float32))
    by_hand.gradient(0, rows, scaling, gradient, sums)
    before = gradient.copy()
    for field in range(len(scaling)):
        other = list(scaling)
        other[field] *= np.float32(1.5)
        by_hand.gradient(0, rows, LossScaling(*other), gradient, sums)
        assert not np.array_equal(before, gradient), scaling._fields[field]
    for name in ("actions", "log_probs", "advantages", "returns"):
        kept = getattr(storage.arrays, name).copy()
        getattr(storage.arrays, name)[:] = kept[:, ::-1]
        by_hand.gradient(0, rows, scaling, gradient, sums)
        assert not np.array_equal(before, gradient), name
        getattr(storage.arrays, name)[:] = kept
    storage.reference[:] = storage.reference[:, ::-1].copy()
    by_hand.gradient(0, rows, scaling, gradient, sums)
    assert not np.array_equal(before, gradient), "reference"
    storage.reference[:] = storage.reference[:, ::-1].copy()
    by_hand.gradient(0, rows, scaling, gradient, sums)
    np.testing.assert_array_equal(before, gradient)


def test_what_is_left_to_torch():
    single, half, byte = map(np.dtype, (np.float32, np.float16, np.uint8))
    entities = {"entity_states": single, "entity_kinds": byte, "entity_count": byte}
    assert covers({"game_state": single, "player_frame": byte, "action_mask": np.dtype(np.int8)}, 4)
    assert covers(entities, 1)
    assert not covers(entities, 2)
    assert not covers({"game_state": half}, 1)
