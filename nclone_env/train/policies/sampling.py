"""Actions drawn from logits: a masked categorical distribution and counter-based random numbers.

Every random number is a function of the seed, the environment and the step (SplitMix64 as a hash of a counter), so
neither threads nor groups nor a resumed run change what is drawn.
"""

import numpy as np

from nclone_env.jit import numeric_kernel
from nclone_env.sim import splitmix

_S40 = np.uint64(40)
_UNIT = np.float32(2.0**-24)
_ZERO, _ONE = np.float32(0), np.float32(1)
_NOT_ALLOWED = np.float32(-1e30)


@numeric_kernel
def uniform(seed, environment, step):
    """Return a float32 in [0, 1), a multiple of 2**-24, that depends on nothing but the three numbers."""
    z = splitmix(splitmix(splitmix(np.uint64(seed)) ^ np.uint64(environment)) ^ np.uint64(step))
    return np.float32(splitmix(z) >> _S40) * _UNIT


@numeric_kernel
def action_distribution(logits, i, masks, row, probabilities):
    """Turn row i of logits into log probabilities in place, and write the probabilities; return the entropy.

    Args:
        logits: (n, a) float32; row i becomes log probabilities, 0 where not allowed.
        masks: (s, a) int8, 0 for each action that is not allowed, or (0, a): all are.
        row: the row of the masks that applies.
        probabilities: (n, a) float32; row i is written, exactly 0 where not allowed.
    """
    count, masked = logits.shape[1], masks.shape[0] > 0
    largest = _NOT_ALLOWED
    for j in range(count):
        if masked and masks[row, j] == 0:
            logits[i, j] = _NOT_ALLOWED
        largest = max(largest, logits[i, j])
    total = _ZERO
    for j in range(count):
        p = np.exp(logits[i, j] - largest) if logits[i, j] > _NOT_ALLOWED else _ZERO
        probabilities[i, j] = p
        total += p
    log_total, share = np.log(total) + largest, _ONE / total
    entropy = _ZERO
    for j in range(count):
        probabilities[i, j] *= share
        allowed = logits[i, j] > _NOT_ALLOWED
        logits[i, j] = logits[i, j] - log_total if allowed else _ZERO
        entropy -= probabilities[i, j] * logits[i, j]
    return entropy


@numeric_kernel
def write_probabilities(logits, masks, probabilities):
    """Write the probabilities, (n, a), of logits, (n, a) float32, which are overwritten; masks as below."""
    for i in range(logits.shape[0]):
        action_distribution(logits, i, masks, i, probabilities)


@numeric_kernel
def sample_actions(logits, masks, seed, first, step, scratch, actions, log_probs):
    """Draw an action for each of n environments.

    Args:
        logits: (n, a) float32; become log probabilities.
        masks: (n, a) int8, 0 for each action that is not allowed, or (0, a): all are.
        seed: seed of the run.
        first: number of the first of the n environments.
        step: number of the step, counted over the whole run.
        scratch: (n, a) float32, overwritten.
        actions: (n,) int64, written.
        log_probs: (n,) float32, written: log probabilities of the actions.
    """
    for i in range(logits.shape[0]):
        action_distribution(logits, i, masks, i, scratch)
        action = _choose(scratch[i], uniform(seed, first + i, step))
        actions[i] = action
        log_probs[i] = logits[i, action]


@numeric_kernel
def _choose(probabilities, u):
    """Return the first index whose cumulative probability exceeds ``u``; never one with probability 0."""
    chosen = 0
    cumulative = _ZERO
    for j in range(len(probabilities)):
        p = probabilities[j]
        if p > _ZERO:
            chosen = j
            cumulative += p
            if u < cumulative:
                break
    return chosen
