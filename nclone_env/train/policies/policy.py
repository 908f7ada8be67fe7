"""A trained policy that is called with observations."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError, as_array, check_integer, check_value, checked, did_you_mean, shortened
from nclone_env.options import several
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.acting import chosen_actions, policy_outputs
from nclone_env.train.policies.checkpoint import (
    Checkpoint,
    check_results,
    load_checkpoint,
    restore_config,
    restore_policy,
)
from nclone_env.train.policies.files import policy_file
from nclone_env.train.policies.network import ActorCritic

Observation = Mapping[str, np.ndarray] | np.ndarray
MASK = "action_mask"


class Policy:
    """A trained policy, as :func:`load_policy` returns it.

    Attributes:
        network: the network, a ``torch.nn.Module``.
        config: the configuration of the run.
        checkpoint: all contents of the file.
    """

    def __init__(self, network: ActorCritic, config: TrainConfig, checkpoint: Checkpoint, levels: Any = ()):
        self.network, self.config, self.checkpoint, self._levels = network, config, checkpoint, several(levels)
        self._seed, self._step = secrets.randbits(63), 0
        self._states = np.zeros((0, network.recurrent_size), np.float32)

    @property
    def recurrent(self) -> bool:
        """Whether it has a memory of the episode: :meth:`act` must be told where episodes begin."""
        return self.network.recurrent_size > 0

    @cached_property
    def environment(self) -> EnvironmentConfig:
        """Configuration of its environments: observations, frame skip and levels.

        Bundled policies that were trained on generated levels play held-out ones, which are made on first use.
        """
        from nclone_env.train.levels.sources import policy_levels  # half of the time of load_policy

        levels = self._levels or policy_levels(self.config)
        return self.config.evaluated_environment.replace(levels=levels)

    def act(
        self,
        observation: Observation,
        argmax: bool = False,
        seed: int | None = None,
        episode_start: bool | np.ndarray | None = None,
    ) -> Any:
        """Choose an action for an observation, or one for each of a batch.

        A recurrent policy keeps the states of the n episodes from call to call; each call is their next step.

        Sampled actions are drawn as by :func:`evaluate`: action i of the k-th call is a function of the seed, i and k.

        Args:
            observation: name to array, (*shape) each for one observation, (n, *shape) for n; further names are
                ignored. A policy of one observation also takes the array alone.
            argmax: take the most probable action instead of a sampled one.
            seed: starts a new sequence of random numbers, as that of ``reset`` does; None continues the one before,
                of which the first is different for each policy that is loaded.
            episode_start: whether an observation is the first of its episode, for all or (n,) bool. A recurrent policy
                requires it; others need none.

        Returns:
            The action, an int from 0 to 5, for one observation; (n,) int64 for a batch.

        Raises:
            ConfigError: if an observation is missing, or has another shape or no numbers; the seed is negative; or the
                states of a recurrent policy are not those of this batch.
        """
        check_value("argmax", bool, argmax)
        batch, is_one = self._batch(observation)
        states = self._begun(episode_start, len(next(iter(batch.values()))))
        if seed is not None:
            self._seed, self._step = check_integer("seed", seed, low=0, high=2**63 - 1), 0
        draw = self._seed, 0, self._step
        actions = chosen_actions(partial(policy_outputs, self.network), batch, argmax, draw, states=states)
        self._states = states
        self._step += not argmax
        return int(actions[0]) if is_one else actions

    def logits_module(self) -> tuple[nn.Module, dict[str, Tensor]]:
        """Return a module to export, and examples of its arguments by name, in their order.

        The module takes observations (n, *shape) and returns the logits (n, 6). ``action_mask`` is no argument: where
        the mask is 0, replace the logit by -inf.

        Raises:
            ConfigError: if the policy is recurrent.
        """
        if self.recurrent:
            raise ConfigError(
                f"policy: expected one without memory, got one with recurrent_size {self.network.recurrent_size}; "
                "export its network, whose step(observations, states) returns the new states too"
            )
        seen, names = self.checkpoint.observations, [name for name in self.network.observation_shapes if name != MASK]
        dtypes = {name: seen[name].dtype if name in seen else torch.float32 for name in names}
        shapes = self.network.observation_shapes
        examples = {name: torch.zeros(2, *shapes[name], dtype=dtypes[name], device="cpu") for name in names}
        return _Logits(self.network, names).eval(), examples

    def _begun(self, episode_start: bool | np.ndarray | None, count: int) -> np.ndarray:
        """Return the states, (n, h), before n observations, 0 where an episode begins."""
        if not self.recurrent:
            return self._states
        starts = as_array(episode_start, ConfigError, "episode_start: expected a bool or an array of them")
        if starts.dtype != np.bool_ or starts.shape not in ((), (count,)):
            got = "None" if episode_start is None else f"{starts.dtype} of shape {starts.shape}"
            raise ConfigError(
                f"episode_start: expected a bool, or bool of shape ({count},), for a recurrent policy, got {got}; pass "
                "True with the first observation of an episode, else False: terminated | truncated of the step before"
            )
        starts = np.broadcast_to(starts, count)
        if len(self._states) != count and not starts.all():
            raise ConfigError(
                f"episode_start: expected True for all {count} observations, as the call before had "
                f"{len(self._states)}, got False; pass all environments in each call"
            )
        kept = self._states if len(self._states) == count else np.zeros((count, self._states.shape[1]), np.float32)
        return np.where(starts[:, None], np.float32(0), kept)

    def _batch(self, observation: Observation) -> tuple[dict[str, np.ndarray], bool]:
        """Return the arrays that the network reads with a batch axis, and whether there was none."""
        shapes = self.network.observation_shapes
        if not isinstance(observation, Mapping):
            if len(shapes) > 1:
                expected = f"expected a dict of {', '.join(shapes)}, as these environments return it"
                raise ConfigError(f"observation: {expected}, got {type(observation).__name__}")
            observation = {next(iter(shapes)): observation}
        arrays = {name: _array(name, observation) for name in shapes}
        first = next(iter(shapes))
        is_one = arrays[first].shape == shapes[first]
        count = 1 if is_one else len(arrays[first]) if arrays[first].ndim else 0
        for name, array in arrays.items():
            expected_shape = shapes[name] if is_one else (count, *shapes[name])
            if array.shape != expected_shape:
                one = ", ".join(map(str, shapes[name]))
                expected = f"expected shape ({one}), or (n, {one}) with the same n for all"
                raise ConfigError(f"observation: {name}: {expected}, got {array.shape}; use policy.environment")
        return {name: array[None] if is_one else array for name, array in arrays.items()}, is_one


class _Logits(nn.Module):
    """The logits of a network, as a function of tensors."""

    def __init__(self, network: ActorCritic, names: Sequence[str]):
        super().__init__()
        self.network, self.names = network, list(names)

    def forward(self, *observations: Tensor) -> Tensor:
        logits, _ = self.network(dict(zip(self.names, observations)))
        return logits


@checked()
def load_policy(path: str | Path, levels: str | Path | Iterable[str | Path] = ()) -> Policy:
    """Read the policy of a run, or one that ships with the package.

    Args:
        path: checkpoint, the folder of a run (its latest checkpoint), the name of a bundled policy, or hub:USER/NAME.
        levels: levels of the environments; without any those of the run.

    Returns:
        The policy; its ``environment`` makes environments for it.

    Raises:
        CheckpointError: if there is no such file, or it cannot be read or restored.
    """
    content = load_checkpoint(policy_file(path))
    network, config = restore_policy(content), restore_config(content)
    check_results(content)
    return Policy(network, config, content, levels)


def _array(name: str, observation: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return an observation as an array of a dtype that the network takes."""
    if name not in observation:
        raise ConfigError(
            f"observation: expected {name!r}, got {shortened(list(observation))}{did_you_mean(name, observation)}; "
            "make the environment with policy.environment"
        )
    array = as_array(observation[name], ConfigError, f"observation: {name}: expected an array")
    if array.dtype.kind not in "biuf":
        raise ConfigError(f"observation: {name}: expected numbers, got {array.dtype}")
    return np.asarray(array, np.float32 if array.dtype == np.float64 else None, order="C")
