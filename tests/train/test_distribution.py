"""Masked distributions: nothing masked occurs or has a gradient; heads equal the joint distribution by brute force."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nclone_env.env.actions import check_actions
from nclone_env.errors import ActionError
from nclone_env.train.network.distribution import divergences, log_probs_and_entropies, most_probable

ROWS = 5


HEADS = ((6,), (3, 2), (2, 3, 4), (124,), (1,))


@st.composite
def cases(draw, of=HEADS):
    """Draw heads, logits, actions, and a joint mask and one of choices, each of which leaves something."""
    heads = draw(st.sampled_from(of))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale, share = draw(st.sampled_from([0.01, 1.0, 30.0])), draw(st.sampled_from([0.0, 0.5, 0.95]))
    logits = torch.from_numpy(rng.normal(0, scale, (ROWS, sum(heads))).astype(np.float32)).requires_grad_()
    actions = torch.from_numpy(np.stack([rng.integers(count, size=ROWS) for count in heads], axis=1))
    joint = kept(rng, share, math.prod(heads))
    each = torch.cat([kept(rng, share, count) for count in heads], dim=1)
    return heads, logits, actions, joint, each


def kept(rng, share, count):
    mask = (rng.random((ROWS, count)) >= share).astype(np.int8)
    mask[np.arange(ROWS), rng.integers(count, size=ROWS)] = 1
    return torch.from_numpy(mask)


def brute_force(heads, logits, left):
    """Return {combination: probability} for one row, over the combinations left, in float64."""
    offsets = [sum(heads[:index]) for index in range(len(heads))]
    weights = {
        combination: math.exp(sum(logits[offset + choice] for offset, choice in zip(offsets, combination, strict=True)))
        for combination in combinations(heads)
        if left(combination)
    }
    total = sum(weights.values())
    return {combination: weight / total for combination, weight in weights.items()}


def combinations(heads):
    """Return all combinations in the order of a joint mask: the first head varies fastest."""
    return [tuple(reversed(c)) for c in itertools.product(*(range(count) for count in reversed(heads)))]


def expected(heads, logits, actions, left):
    """Return log probabilities and entropies by brute force; ``left(row, combination)`` is False for masked ones."""
    log_probs, entropies = [], []
    for row in range(ROWS):
        shares = brute_force(heads, logits[row].tolist(), lambda combination, row=row: left(row, combination))
        share = shares.get(tuple(actions[row].tolist()), 0.0)
        log_probs.append(math.log(share) if share else -math.inf)
        entropies.append(-sum(p * math.log(p) for p in shares.values() if p))
    return torch.tensor(log_probs), torch.tensor(entropies)


@given(cases())
@settings(deadline=None, max_examples=60)
def test_heads_equal_the_joint_distribution(case):
    heads, logits, actions, joint, each = case
    number = {combination: index for index, combination in enumerate(combinations(heads))}
    offsets = [sum(heads[:index]) for index in range(len(heads))]

    def left_of_each(row, combination):
        return all(each[row, offset + choice] for offset, choice in zip(offsets, combination, strict=True))

    for mask, left in (
        (None, lambda row, combination: True),
        (joint, lambda row, combination: bool(joint[row, number[combination]])),
        (each, left_of_each),
        (each.bool(), left_of_each),
    ):
        found = log_probs_and_entropies(logits, actions, heads, mask)
        for got, want in zip(found, expected(heads, logits, actions, left), strict=True):
            torch.testing.assert_close(got.detach(), want, atol=3e-5, rtol=3e-5)


@given(cases())
@settings(deadline=None, max_examples=60)
def test_gradients_are_those_of_a_softmax_over_what_is_left(case):
    """Exactly 0 for masked choices; for the others equal to a softmax that never had the masked ones."""
    heads, logits, _, _, each = case
    actions = most_probable(logits, heads, each)
    log_probs, entropies = log_probs_and_entropies(logits, actions, heads, each)
    (gradient,) = torch.autograd.grad((log_probs + 0.3 * entropies).sum(), logits)
    assert (gradient[each == 0] == 0).all()
    for row in range(ROWS):
        first = 0
        for head, count in enumerate(heads):
            left = [first + choice for choice in range(count) if each[row, first + choice]]
            small = logits[row, left].detach().clone().requires_grad_()
            categorical = torch.distributions.Categorical(logits=small, validate_args=False)
            choice = torch.tensor(left.index(first + actions[row, head].item()))
            objective = categorical.log_prob(choice) + 0.3 * categorical.entropy()
            (want,) = torch.autograd.grad(objective, small)
            torch.testing.assert_close(gradient[row, left], want, atol=2e-5, rtol=2e-4)
            first += count


@given(cases(HEADS[:2]))
@settings(deadline=None, max_examples=40)
def test_an_action_that_is_masked_has_probability_0_and_a_finite_entropy(case):
    heads, logits, actions, mask, _ = case
    for row, action in enumerate(actions.tolist()):
        mask[row] = 1
        mask[row, combinations(heads).index(tuple(action))] = 0
    log_probs, entropies = log_probs_and_entropies(logits, actions, heads, mask)
    assert (log_probs == -torch.inf).all()
    assert entropies.isfinite().all()
    ratios = log_probs.exp()  # what a surrogate objective multiplies with advantages
    (gradient,) = torch.autograd.grad((ratios + entropies).sum(), logits)
    assert gradient.isfinite().all()
    if len(heads) == 1:
        assert (gradient[mask == 0] == 0).all()


@given(cases())
@settings(deadline=None, max_examples=60)
def test_the_most_probable_action_is_never_masked(case):
    heads, logits, _, joint, each = case
    for mask in (joint, each):
        actions = most_probable(logits, heads, mask)
        assert (actions.shape, actions.dtype) == ((ROWS, len(heads)), torch.int64)
        assert log_probs_and_entropies(logits, actions, heads, mask)[0].isfinite().all()


def test_one_action_left_has_entropy_0_and_no_gradient():
    logits = torch.tensor([[3.0, -2.0, 0.0, 1.0, 5.0, 2.0]], requires_grad=True)
    mask = torch.tensor([[0, 1, 0, 0, 0, 0]], dtype=torch.int8)
    log_probs, entropies = log_probs_and_entropies(logits, torch.tensor([[1]]), (6,), mask)
    assert (log_probs.item(), entropies.item()) == (0.0, 0.0)
    assert (torch.autograd.grad((log_probs + entropies).sum(), logits)[0] == 0).all()
    assert most_probable(logits, (6,), mask).item() == 1


def test_the_joint_mask_is_in_the_order_of_the_action_mask():
    """The pair of heads that the environment turns into action i is masked by element i."""
    logits = torch.zeros(6, 5)
    pairs = torch.tensor([(direction, jump) for jump in range(2) for direction in range(3)])
    numbers = np.zeros(6, np.int64)
    check_actions(pairs.numpy(), "multi_discrete", numbers)
    mask = torch.zeros(6, 6, dtype=torch.int8)
    mask[torch.arange(6), torch.from_numpy(numbers)] = 1
    assert torch.equal(most_probable(logits, (3, 2), mask), pairs)


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(ActionError, match=r"mask: expected shape \(1, 6\).*or \(1, 5\).*got \(1, 4\)"):
        most_probable(torch.zeros(1, 5), (3, 2), torch.ones(1, 4))


def test_divergences_are_those_of_torch():
    logits, other = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0))
    heads = (3, 2)
    expected = torch.zeros(40)
    reference = []
    for part, target in zip(logits.split(heads, 1), other.split(heads, 1), strict=True):
        q = torch.softmax(target, 1)
        reference.append(q)
        expected += torch.nn.functional.kl_div(torch.log_softmax(part, 1), q, reduction="none").sum(1)
    got = divergences(torch.cat(reference, 1), logits, heads)
    torch.testing.assert_close(got, expected)
    assert (got > 0.01).any()
    same = divergences(torch.cat([torch.softmax(part, 1) for part in logits.split(heads, 1)], 1), logits, heads)
    torch.testing.assert_close(same, torch.zeros(40), rtol=0, atol=1e-6)


def test_divergences_of_masked_actions_have_no_gradient():
    logits = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[1, 0, 1, 1]] * 3)
    reference = torch.tensor([[0.5, 0.0, 0.5, 0.0]] * 3)
    divergences(reference, logits, (4,), mask).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 1] == 0).all()
    assert (logits.grad[:, [0, 2, 3]] != 0).all()
