"""Sampled actions: their distribution, masks, and independence from everything but seed, environment, step."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nclone_env.train.policies.arrays import LearningFields, LossScaling, Steps
from nclone_env.train.policies.mlp_kernels import loss_gradient
from nclone_env.train.policies.sampling import sample_actions, uniform
from nclone_env.train.policies.torch_network import log_probs_and_entropies

LOGITS = arrays(np.float32, (5, 6), elements=st.floats(-20, 20, width=32))
MASKS = arrays(np.int8, (5, 6), elements=st.integers(0, 1)).map(
    lambda mask: np.maximum(mask, np.eye(5, 6, dtype=np.int8))
)
NO_MASKS = np.zeros((0, 6), np.int8)


def draw(logits, masks=NO_MASKS, seed=0, first=0, step=0):
    """Return actions and their log probabilities."""
    count = len(logits)
    actions, log_probs = np.zeros(count, np.int64), np.zeros(count, np.float32)
    scratch = np.zeros_like(logits)
    sample_actions(logits.copy(), masks, seed, first, step, scratch, actions, log_probs)
    return actions, log_probs


@given(LOGITS, MASKS, st.integers(0, 2**31))
def test_a_masked_action_never_occurs(logits, masks, seed):
    actions, log_probs = draw(logits, masks, seed=seed)
    assert (masks[np.arange(5), actions] == 1).all()
    expected, _ = log_probs_and_entropies(torch.from_numpy(logits), torch.from_numpy(actions), torch.from_numpy(masks))
    np.testing.assert_allclose(log_probs, expected.numpy(), rtol=1e-5, atol=1e-5)


@given(LOGITS, MASKS, st.integers(0, 2**31))
def test_the_gradient_of_a_masked_action_is_zero(logits, masks, seed):
    actions, log_probs = draw(logits, masks, seed=seed)
    delta = np.full((5, 6), np.nan, np.float32)
    fields = LearningFields(actions, log_probs, np.arange(5, dtype=np.float32), np.zeros(5, np.float32))
    scaling = LossScaling(*np.array([2.0, 1.0, 0.2, 0.2, 0.5, 0.1, 0.0], np.float32))
    values, rows, steps = np.zeros((5, 1), np.float32), np.arange(5), Steps(fields, masks, delta[:0])
    loss_gradient(logits.copy(), values, rows, rows, steps, scaling, delta, values.copy(), np.zeros(6))
    assert (delta[masks == 0] == 0).all()
    assert np.isfinite(delta).all()
    single = masks.sum(1) == 1
    assert (delta[single] == 0).all(), "a single allowed action has probability 1 whatever its logit"


def test_shares_follow_the_probabilities():
    probabilities = np.array([0.05, 0.1, 0.4, 0.15, 0.1, 0.2], np.float32)
    actions, log_probs = draw(np.tile(np.log(probabilities), (20_000, 1)))
    shares = np.bincount(actions, minlength=6) / len(actions)
    # five standard deviations of a share of 0.4 among 20,000 draws
    assert np.abs(shares - probabilities).max() < 0.018
    np.testing.assert_allclose(log_probs, np.log(probabilities)[actions], atol=1e-6)


def test_draws_depend_on_seed_environment_and_step_alone():
    logits = np.zeros((400, 6), np.float32)
    whole, _ = draw(logits, seed=7, step=3)
    halves = [draw(logits[:200], seed=7, first=first, step=3)[0] for first in (0, 200)]
    np.testing.assert_array_equal(whole, np.concatenate(halves))
    for other in ({"seed": 8, "step": 3}, {"seed": 7, "step": 4}, {"seed": 7, "step": 3, "first": 1}):
        same = (draw(logits, **other)[0] == whole).mean()
        assert same < 0.3, other


@pytest.mark.parametrize("axis", ["environment", "step"])
def test_uniform_numbers_are_uniform_along_every_counter(axis):
    counters = {"environment": 5, "step": 9}
    numbers = np.array([uniform(3, *({**counters, axis: index}).values()) for index in range(4096)])
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    counts = np.bincount((numbers * 16).astype(int), minlength=16)
    assert ((counts - 256) ** 2 / 256).sum() < 45, "chi-square of 15 degrees of freedom, p about 1e-4"
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.08
