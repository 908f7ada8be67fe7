"""Masked distributions: equal to brute force; nothing masked occurs or has a gradient."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.errors import ActionError
from nclone_env.train.policies.torch_network import divergences, log_probs_and_entropies, most_probable

ROWS = 5


@st.composite
def cases(draw, counts=(6, 124, 1)):
    """Draw logits, actions, and a mask that leaves something."""
    count = draw(st.sampled_from(counts))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale, share = draw(st.sampled_from([0.01, 1.0, 30.0])), draw(st.sampled_from([0.0, 0.5, 0.95]))
    logits = torch.from_numpy(rng.normal(0, scale, (ROWS, count)).astype(np.float32)).requires_grad_()
    mask = (rng.random((ROWS, count)) >= share).astype(np.int8)
    mask[np.arange(ROWS), rng.integers(count, size=ROWS)] = 1
    return logits, torch.from_numpy(rng.integers(count, size=ROWS)), torch.from_numpy(mask)


def brute_force(logits, actions, mask):
    """Return log probabilities and entropies in float64, action by action."""
    log_probs, entropies = [], []
    for row, action, left in zip(logits.tolist(), actions.tolist(), mask.tolist(), strict=True):
        weights = [math.exp(logit) if allowed else 0.0 for logit, allowed in zip(row, left, strict=True)]
        shares = [weight / sum(weights) for weight in weights]
        log_probs.append(math.log(shares[action]) if shares[action] else -math.inf)
        entropies.append(-sum(p * math.log(p) for p in shares if p))
    return torch.tensor(log_probs), torch.tensor(entropies)


@given(cases())
@settings(max_examples=60)
def test_distributions_equal_brute_force(case):
    logits, actions, mask = case
    for given_mask, left in ((None, torch.ones_like(mask)), (mask, mask), (mask.bool(), mask)):
        found = log_probs_and_entropies(logits, actions, given_mask)
        for got, want in zip(found, brute_force(logits, actions, left), strict=True):
            torch.testing.assert_close(got.detach(), want, atol=3e-5, rtol=3e-5)


@given(cases())
@settings(max_examples=60)
def test_gradients_are_those_of_a_softmax_over_what_is_left(case):
    """Exactly 0 for masked actions; for the others equal to a softmax that never had the masked ones."""
    logits, _, mask = case
    actions = most_probable(logits, mask)
    log_probs, entropies = log_probs_and_entropies(logits, actions, mask)
    (gradient,) = torch.autograd.grad((log_probs + 0.3 * entropies).sum(), logits)
    assert (gradient[mask == 0] == 0).all()
    for row, action in enumerate(actions.tolist()):
        left = mask[row].nonzero()[:, 0].tolist()
        small = logits[row, left].detach().clone().requires_grad_()
        categorical = torch.distributions.Categorical(logits=small, validate_args=False)
        objective = categorical.log_prob(torch.tensor(left.index(action))) + 0.3 * categorical.entropy()
        (want,) = torch.autograd.grad(objective, small)
        torch.testing.assert_close(gradient[row, left], want, atol=2e-5, rtol=2e-4)


@given(cases(counts=(6, 124)))
@settings(max_examples=40)
def test_an_action_that_is_masked_has_probability_0_and_a_finite_entropy(case):
    logits, actions, mask = case
    rows = torch.arange(ROWS)
    mask[rows, (actions + 1) % logits.shape[1]] = 1
    mask[rows, actions] = 0
    log_probs, entropies = log_probs_and_entropies(logits, actions, mask)
    assert (log_probs == -torch.inf).all()
    assert entropies.isfinite().all()
    ratios = log_probs.exp()  # what a surrogate objective multiplies with advantages
    (gradient,) = torch.autograd.grad((ratios + entropies).sum(), logits)
    assert gradient.isfinite().all()
    assert (gradient[mask == 0] == 0).all()


@given(cases())
@settings(max_examples=60)
def test_the_most_probable_action_is_never_masked(case):
    logits, _, mask = case
    actions = most_probable(logits, mask)
    assert (actions.shape, actions.dtype) == ((ROWS,), torch.int64)
    assert log_probs_and_entropies(logits, actions, mask)[0].isfinite().all()
    assert torch.equal(most_probable(logits), logits.argmax(1))


def test_one_action_left_has_entropy_0_and_no_gradient():
    logits = torch.tensor([[3.0, -2.0, 0.0, 1.0, 5.0, 2.0]], requires_grad=True)
    mask = torch.tensor([[0, 1, 0, 0, 0, 0]], dtype=torch.int8)
    log_probs, entropies = log_probs_and_entropies(logits, torch.tensor([1]), mask)
    assert (log_probs.item(), entropies.item()) == (0.0, 0.0)
    assert (torch.autograd.grad((log_probs + entropies).sum(), logits)[0] == 0).all()
    assert most_probable(logits, mask).item() == 1


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ActionError, match=r"mask: expected shape \(1, 5\), as the logits, got \(1, 4\)"):
        most_probable(torch.zeros(1, 5), torch.ones(1, 4))


def test_divergences_are_those_of_torch():
    logits, other = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    reference = torch.softmax(other, 1)
    expected = torch.nn.functional.kl_div(torch.log_softmax(logits, 1), reference, reduction="none").sum(1)
    got = divergences(reference, logits)
    torch.testing.assert_close(got, expected)
    assert (got > 0.01).any()
    same = divergences(torch.softmax(logits, 1), logits)
    torch.testing.assert_close(same, torch.zeros(40), rtol=0, atol=1e-6)


def test_divergences_of_masked_actions_have_no_gradient():
    logits = torch.arange(12.0).view(3, 4).cos().requires_grad_()
    mask = torch.tensor([[1, 0, 1, 1]] * 3)
    reference = torch.tensor([[0.5, 0.0, 0.5, 0.0]] * 3)
    divergences(reference, logits, mask).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 1] == 0).all()
    assert (logits.grad[:, [0, 2, 3]] != 0).all()
