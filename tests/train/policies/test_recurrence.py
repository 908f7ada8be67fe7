"""The recurrent layer over sequences against torch step by step, and what its gradient depends on."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from nclone_env.errors import ConfigError
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.policies.arrays import LearningFields, LossScaling
from nclone_env.train.policies.mlp import make_network
from nclone_env.train.policies.network import ActorCritic
from nclone_env.train.policies.recurrence import RecurrentNetwork, _sigmoid, _tanh
from nclone_env.train.policies.torch_network import flat_gradient, module_loss

from .test_mlp import BOXES, ENTITIES, STEPS, random_policy, random_rollout, two_threads  # noqa: F401

UNITS, ENVS = 12, 7
SCALING = LossScaling(*np.array([0.1, 1.3, 1 / (3 * STEPS), 0.2, 0.5, 0.05, 0], np.float32))
CHOSEN = np.array([5, 0, 3])
INPUTS = pytest.mark.parametrize(
    ("names", "masked", "frame_stack", "shared_trunk"),
    [
        (("game_state",), False, 1, True),
        (("game_state", "locals", *ENTITIES, "reachability"), True, 1, False),
        (("game_state", "player_frame"), True, 2, True),
    ],
)


def prepared(names=("game_state",), masked=False, frame_stack=1, **network):
    """Return a rollout of random steps and states, the parameters, the policy and its network."""
    rollout = random_rollout(names, masked, frame_stack, envs=ENVS)
    boxes = {name: BOXES[name] for name in names}
    if masked:
        boxes["action_mask"] = spaces.Box(0, 1, (6,), np.int8)
    storage = RolloutStorage(STEPS, ENVS, spaces.Dict(boxes), frame_stack, recurrent_size=UNITS)
    for name, array in rollout.observation_arrays.items():
        storage.observation_arrays[name][:] = array
    for target, source in zip(storage.learning_fields, rollout.learning_fields, strict=True):
        target[:] = source
    random = np.random.default_rng(2)
    storage.episode_starts[:] = random.random(storage.episode_starts.shape) < 0.2
    storage.states[:] = random.standard_normal(storage.states.shape)
    policy, parameters = random_policy(storage, recurrent_size=UNITS, hidden_size=16, **network)
    return storage, parameters, policy, make_network(policy, parameters, storage, 2, 3 * STEPS)


def gradient(network, parameters, scaling=SCALING):
    found, sums = np.full(len(parameters.vector), np.nan, np.float32), np.full(6, np.nan)
    network.gradient(1, CHOSEN, scaling, found, sums)
    return found, sums


def step_by_step(storage, policy):
    """Return gradient and sums by torch's own layer, one step after another."""
    starts = torch.from_numpy(storage.episode_starts[storage.frame_stack - 1 :])[:, CHOSEN]
    states, logits, values, seen = torch.from_numpy(storage.states[0])[CHOSEN], [], [], []
    for t in range(STEPS):
        observations = storage.observation_buffers(len(CHOSEN))
        storage.gather(torch.from_numpy(t * ENVS + CHOSEN), observations)
        of_step = policy.step(observations, states * ~starts[t][:, None])
        states = of_step[2]
        for parts, part in zip((logits, values, seen), (*of_step[:2], observations), strict=True):
            parts.append(part)
    rows = (np.arange(STEPS)[:, None] * ENVS + CHOSEN).ravel()
    observations = {name: torch.cat([part[name] for part in seen]) for name in seen[0]}
    fields = LearningFields(*(torch.from_numpy(field)[rows] for field in storage.learning_fields))
    loss, sums = module_loss((torch.cat(logits), torch.cat(values)), observations, fields, SCALING, None)
    return flat_gradient(loss, policy).numpy(), sums.numpy()


@INPUTS
def test_gradients_equal_those_of_torch_step_by_step(names, masked, frame_stack, shared_trunk):
    storage, parameters, policy, network = prepared(names, masked, frame_stack, shared_trunk=shared_trunk)
    assert isinstance(network, RecurrentNetwork)
    (got, sums), (expected, expected_sums) = gradient(network, parameters), step_by_step(storage, policy)
    views = parameters.views(expected)
    assert {"recurrence.weight_ih", "recurrence.weight_hh", "recurrence.bias_ih", "recurrence.bias_hh"} < set(views)
    for name, part in views.items():
        # Sums of some hundred products in another order.
        assert np.abs(parameters.views(got)[name] - part).max() <= 2e-5 * np.abs(part).max(), name
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-5, atol=1e-4)


def test_a_gradient_depends_on_states_and_starts_of_its_own_sequences_alone():
    storage, parameters, _, network = prepared()
    storage.episode_starts[:] = False
    before, _ = gradient(network, parameters)
    others = np.setdiff1d(np.arange(ENVS), CHOSEN)
    storage.states[0, others] += 1
    storage.episode_starts[:, others] = True
    storage.states[1] += 1
    storage.episode_starts[STEPS] = True  # the observation after the last step
    np.testing.assert_array_equal(gradient(network, parameters)[0], before)
    for changed, place in ((storage.episode_starts, (3, CHOSEN[1])), (storage.states, (0, CHOSEN[1], 2))):
        kept = changed[place]
        changed[place] = ~kept if kept.dtype == bool else kept + 1
        assert (gradient(network, parameters)[0] != before).any()
        changed[place] = kept
    np.testing.assert_array_equal(gradient(network, parameters)[0], before)
    storage.episode_starts[0] = True
    begun, _ = gradient(network, parameters)
    storage.states[0] += 1  # of no account where episodes begin
    np.testing.assert_array_equal(gradient(network, parameters)[0], begun)


def test_outputs_replace_the_states():
    storage, _, policy, network = prepared()
    seen = {name: array[0] for name, array in storage.observation_arrays.items()}
    states = storage.states[0].copy()
    logits, values = network.outputs(0, seen, states)
    with torch.no_grad():
        expected = policy.step(
            {"game_state": torch.from_numpy(seen["game_state"])}, torch.from_numpy(storage.states[0])
        )
    for got, part in zip((logits, values, states), expected, strict=True):
        np.testing.assert_array_equal(got, part.numpy())
    assert (states != storage.states[0]).all()


def test_initial_weights_follow_from_the_generator():
    def made(seed):
        policy = ActorCritic({"game_state": (30,)}, recurrent_size=8, generator=torch.Generator().manual_seed(seed))
        return torch.cat([parameter.detach().flatten() for parameter in policy.parameters()]).numpy(), policy

    (one, policy), (same, _), (other, _) = made(0), made(0), made(1)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    gate = policy.recurrence.weight_hh[8:16].detach()
    np.testing.assert_allclose(gate @ gate.T, np.eye(8), atol=1e-6)  # rounding of float32
    with pytest.raises(ConfigError, match="policy: expected one without memory, got one with recurrent_size 8; call"):
        policy({"game_state": torch.zeros(1, 30)})


def test_gates_are_those_of_the_functions_that_they_are_named_after():
    numbers = np.linspace(-20, 20, 4001, dtype=np.float32)
    for function, exact in ((_tanh, np.tanh), (_sigmoid, lambda x: 1 / (1 + np.exp(-x)))):
        found = np.array([function(x) for x in numbers])
        assert np.abs(found - exact(numbers.astype(np.float64))).max() < 3e-7  # two units of the last place
        assert np.abs(found - exact(0.99 * numbers.astype(np.float64))).max() > 1e-3
