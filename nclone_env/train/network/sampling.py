"""Actions drawn from logits: masked categorical distributions, one for each head, from counter-based random numbers.

A policy has one head with a logit for each action, or several whose choices together form an action: with heads of
sizes (s0, s1, ...) and choices (c0, c1, ...) the action is c0 + s0 * (c1 + s1 * ...). So heads (3, 2) for direction
and jump give the actions of ``nclone_env.actions``.

Every random number is a function of the seed, the environment and the step (SplitMix64 as a hash of a counter), so
neither threads nor groups nor a resumed run change what is drawn.
"""

from __future__ import annotations

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.sim.random_numbers import mix

_S40 = np.uint64(40)
_UNIT = np.float32(2.0**-24)
_ZERO, _ONE = np.float32(0), np.float32(1)
_NOT_ALLOWED = np.float32(-1e30)


@numeric_kernel
def uniform(seed, environment, step, draw):
    """Return a float32 in [0, 1), a multiple of 2**-24, that depends on nothing but the four numbers."""
    z = mix(mix(mix(np.uint64(seed)) ^ np.uint64(environment)) ^ np.uint64(step))
    return np.float32(mix(z ^ np.uint64(draw)) >> _S40) * _UNIT


@numeric_kernel
def head_distribution(logits, i, masks, row, heads, action, probabilities):
    """Turn row i of logits into log probabilities in place, and write the probabilities.

    Args:
        logits: (n, a) float32, the heads side by side; row i becomes log probabilities, 0 where not allowed.
        i: see above.
        masks: (s, a) int8, 0 for each action that is not allowed, or (0, a): all are.
        row: the row of the masks that applies.
        heads: (k,) int64, actions of each head.
        action: the action whose log probability to return.
        probabilities: (n, a) float32; row i is written, exactly 0 where not allowed.

    Returns:
        Log probability of the action and the entropy, both summed over the heads.
    """
    masked = masks.shape[0] > 0
    log_prob = entropy = _ZERO
    offset = 0
    code = action
    for k in range(len(heads)):
        end = offset + heads[k]
        largest = _NOT_ALLOWED
        for j in range(offset, end):
            if masked and masks[row, j] == 0:
                logits[i, j] = _NOT_ALLOWED
            largest = max(largest, logits[i, j])
        total = _ZERO
        for j in range(offset, end):
            p = np.exp(logits[i, j] - largest) if logits[i, j] > _NOT_ALLOWED else _ZERO
            probabilities[i, j] = p
            total += p
        log_total, share = np.log(total) + largest, _ONE / total
        for j in range(offset, end):
            probabilities[i, j] *= share
            allowed = logits[i, j] > _NOT_ALLOWED
            logits[i, j] = logits[i, j] - log_total if allowed else _ZERO
            entropy -= probabilities[i, j] * logits[i, j]
        log_prob += logits[i, offset + code % heads[k]]
        code //= heads[k]
        offset = end
    return log_prob, entropy


@numeric_kernel
def sample_actions(logits, masks, heads, seed, first, step, scratch, actions, log_probs):
    """Draw an action for each of n environments.

    Args:
        logits: (n, a) float32; become log probabilities.
        masks: (n, a) int8, 0 for each action that is not allowed, or (0, a): all are.
        heads: (k,) int64, actions of each head.
        seed: seed of the run.
        first: number of the first of the n environments.
        step: number of the step, counted over the whole run.
        scratch: (n, a) float32, overwritten.
        actions: (n,) int64, written.
        log_probs: (n,) float32, written: log probabilities of the actions.
    """
    for i in range(logits.shape[0]):
        head_distribution(logits, i, masks, i, heads, 0, scratch)
        offset, action, radix = 0, 0, 1
        log_prob = _ZERO
        for k in range(len(heads)):
            chosen = _choose(scratch, i, offset, heads[k], uniform(seed, first + i, step, k))
            log_prob += logits[i, offset + chosen]
            action += radix * chosen
            radix *= heads[k]
            offset += heads[k]
        actions[i] = action
        log_probs[i] = log_prob


@numeric_kernel
def _choose(probabilities, i, offset, count, u):
    """Return the first index whose cumulative probability exceeds ``u``; never one with probability 0."""
    chosen = 0
    cumulative = _ZERO
    for j in range(count):
        p = probabilities[i, offset + j]
        if p > _ZERO:
            chosen = j
            cumulative += p
            if u < cumulative:
                break
    return chosen
