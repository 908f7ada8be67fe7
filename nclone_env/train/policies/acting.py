"""The actions of a policy for a batch of observations."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from threading import Lock

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from nclone_env.train.policies.network import (
    NO_MASKS,
    NO_STATES,
    ActorCritic,
    as_by_default,
    flushes_denormals,
    rounds_to_nearest,
)
from nclone_env.train.policies.sampling import sample_actions
from nclone_env.train.policies.torch_network import most_probable


def chosen_actions(
    outputs_of: Callable[[Mapping[str, np.ndarray], np.ndarray], tuple[np.ndarray, np.ndarray]],
    observations: Mapping[str, np.ndarray],
    argmax: bool,
    draw: tuple[int, int, int],
    waiting: np.ndarray | None = None,
    states: np.ndarray = NO_STATES,
) -> np.ndarray:
    """Return the most probable actions, or sampled ones, (n,) int64.

    Args:
        outputs_of: returns logits (k, 6) and values for k observations, and replaces their states by those after; it
            is called with few different k.
        observations: name to array, (n, *shape).
        draw: seed, number of the first row, and step: the random number of a row is a function of these three.
        waiting: (n,) bool, the rows that are asked for, others are arbitrary; None: all.
        states: (n, h) float32, those of a policy with memory before the observations, replaced by those after.
    """
    masks, count = observations.get("action_mask"), len(next(iter(observations.values())))
    logits = np.zeros((count, NO_MASKS.shape[1]), np.float32)
    rows = np.arange(count) if waiting is None else np.flatnonzero(waiting)
    size = 1 << (len(rows) - 1).bit_length()
    if size < count:
        padded = np.resize(rows, size)
        some = states[padded] if states.size else states
        seen = {name: array[padded] for name, array in observations.items()}
        logits[rows] = outputs_of(seen, some)[0][: len(rows)]
        if states.size:
            states[rows] = some[: len(rows)]
    else:
        logits[:] = outputs_of(observations, states)[0]
    if argmax:
        return most_probable(torch.from_numpy(logits), None if masks is None else torch.from_numpy(masks)).numpy()
    actions, log_probs = np.zeros(count, np.int64), np.zeros(count, np.float32)
    sample_actions(logits, NO_MASKS if masks is None else masks, *draw, np.empty_like(logits), actions, log_probs)
    return actions


def policy_outputs(
    policy: ActorCritic, observations: Mapping[str, np.ndarray], states: np.ndarray = NO_STATES
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logits (n, 6) and the values (n,) of a policy for n observations.

    A policy with memory replaces ``states``, (n, h) float32, by those after the observations; others ignore them. The
    result depends on no setting of torch.
    """
    # Nothing else counts here, and looking takes time.
    changed = torch.is_autocast_enabled("cpu") or flushes_denormals() or not rounds_to_nearest()
    with _one_thread_of_torch(), as_by_default() if changed else nullcontext(), torch.inference_mode():
        seen = {name: torch.from_numpy(array) for name, array in observations.items()}
        if policy.recurrent_size:
            logits, values, after = policy.step(seen, torch.from_numpy(states))
            states[:] = after.numpy()
        else:
            logits, values = policy(seen)
    return logits.numpy(), values.numpy()


_ENTERING = Lock()
_entered: list[int] = []
_limits = ExitStack()
_libraries = ThreadpoolController()  # those of NumPy and PyTorch, which are there by now: to find them takes 1 ms


@contextmanager
def _one_thread_of_torch() -> Iterator[None]:
    """Let torch compute on the calling thread, as :func:`one_thread_per_call` does; others give sums of other bits.

    Where there is one thread, calls run side by side; else one at a time, as the number is in part that of all threads.
    """
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    with _ENTERING:
        torch.set_num_threads(1)
        try:
            yield
        finally:
            if not _entered:
                torch.set_num_threads(before)


@contextmanager
def one_thread_per_call() -> Iterator[None]:
    """Make libraries compute each call on the calling thread: batches are small, and runs have their own threads.

    They compute :func:`as_by_default`, also in threads that are started inside. Several threads may be inside at once;
    the last one to leave restores the settings.
    """
    with _ENTERING:
        _entered.append(_entered[0] if _entered else torch.get_num_threads())
        if len(_entered) == 1:
            _limits.enter_context(_libraries.limit(limits=1, user_api="blas"))
        torch.set_num_threads(1)  # in part a setting of the thread
    try:
        with as_by_default():
            yield
    finally:
        with _ENTERING:
            before = _entered.pop()
            if not _entered:
                _limits.close()
                torch.set_num_threads(before)
