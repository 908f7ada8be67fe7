"""Policies of any kind as functions from observations to actions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from nclone_env.errors import ActionError, ConfigError, shortened

Player = Callable[[Any, np.ndarray], np.ndarray]
"""Returns actions (k,) for observations of n environments and the k rows in which one is to be chosen, ascending."""


class Policy:
    """A policy that plays, with sampled and with most probable actions where it has both.

    Args:
        policy: see :func:`nclone_env.benchmark.evaluate`.

    Attributes:
        environment: the observations that the policy needs; None if it does not tell.
        both: whether it has most probable actions besides sampled ones.

    Raises:
        ConfigError: if it is nothing that plays.
    """

    def __init__(self, policy: Any):
        if isinstance(policy, (str, Path)):
            from nclone_env.train import load_policy  # imports torch

            policy = load_policy(policy, levels=("first-steps",))  # those of the track take their place
        self._policy = policy
        self.environment = getattr(policy, "environment", None)
        self._kind = _kind_of(policy)
        self.both = self._kind is not _Function

    def computing(self) -> AbstractContextManager[None]:
        """Return a context to play in: policies of this package compute on one thread, since batches are small."""
        if self._kind is not _Own:
            return nullcontext()
        from nclone_env.train import one_thread_per_call  # imports torch

        return one_thread_per_call()

    def player(self, most_probable: bool, seed: int) -> Player:
        """Return the player of a batch of episodes.

        Args:
            most_probable: choose the most probable actions rather than sampled ones.
            seed: of sampled actions.
        """
        return self._kind(self._policy, most_probable, seed)


def _kind_of(policy: Any) -> Any:
    if hasattr(policy, "act") and hasattr(policy, "checkpoint"):
        return _Own
    if hasattr(policy, "predict"):
        return _StableBaselines
    if hasattr(policy, "state_dict"):
        return _Module
    if callable(policy):
        return _Function
    expected = "a function from observations to actions, a Stable-Baselines3 model, a torch module or a checkpoint"
    raise ConfigError(f"policy: expected {expected}, got {shortened(policy)}")


class _Function:
    """A function of observations; what it needs to know about time it must observe."""

    def __init__(self, policy: Any, most_probable: bool, seed: int):
        self._policy, self._most_probable, self._seed = policy, most_probable, seed
        if type(self) is _Function and hasattr(policy, "reset"):
            policy.reset(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        return _actions(self._policy(_rows_of(observations, rows)), len(rows))


class _Own(_Function):
    """A policy of this package, whose sampled actions follow from the seed."""

    def __init__(self, policy: Any, most_probable: bool, seed: int):
        super().__init__(policy, most_probable, seed)
        self._next_seed: int | None = seed

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        seen = _rows_of(observations, rows)
        actions = self._policy.act(seen, argmax=self._most_probable, seed=self._next_seed)
        self._next_seed = None
        return actions


class _StableBaselines(_Function):
    """A model with ``predict``, which sees all rows, as its memory belongs to rows."""

    def __init__(self, policy: Any, most_probable: bool, seed: int):
        super().__init__(policy, most_probable, seed)
        self._state: Any = None
        self._begun: np.ndarray | None = None
        if hasattr(policy, "set_random_seed"):
            policy.set_random_seed(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        count = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        starts = np.full(count, self._begun is None)
        actions, self._state = self._policy.predict(
            observations, state=self._state, episode_start=starts, deterministic=self._most_probable
        )
        self._begun = starts
        return _actions(actions, count)[rows]


class _Module(_Function):
    """A torch module that returns logits, (n, 6), possibly as the first of several outputs."""

    def __init__(self, policy: Any, most_probable: bool, seed: int):
        super().__init__(policy, most_probable, seed)
        self._random = np.random.default_rng(seed)

    def __call__(self, observations: Any, rows: np.ndarray) -> np.ndarray:
        import torch

        seen = _rows_of(observations, rows)
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in seen.items()}
            output = self._policy(next(iter(tensors.values())) if len(tensors) == 1 else tensors)
        logits = np.asarray(output[0] if isinstance(output, (tuple, list)) else output, np.float64)
        if not self._most_probable:
            logits = logits + self._random.gumbel(size=logits.shape)
        return _actions(logits.argmax(axis=-1), len(rows))


def _rows_of(observations: Any, rows: np.ndarray) -> Any:
    if isinstance(observations, dict):
        return {name: array[rows] for name, array in observations.items()}
    return observations[rows]


def _actions(given: Any, count: int) -> np.ndarray:
    """Check the actions of a policy.

    Raises:
        ActionError: if they are not ``count`` integers from 0 to 5.
    """
    actions = np.asarray(given)
    if actions.shape != (count,) or actions.dtype.kind not in "iu":
        got = f"{actions.dtype} of shape {actions.shape}"
        raise ActionError(
            f"policy: expected integers of shape ({count},), one action 0..5 for each observation, got {got}"
        )
    if count and not 0 <= actions.min() <= actions.max() <= 5:
        raise ActionError(f"policy: expected actions from 0 to 5, got {actions.min()} to {actions.max()}")
    return actions
