"""Bytes that a training run will own, computed before they are allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing

import numpy as np
import torch

from nclone_env.actions import NUM_ACTIONS
from nclone_env.level.load import LevelSource
from nclone_env.level.scenes import everything
from nclone_env.memory_limit import check_fits
from nclone_env.memory_tree import MemoryNode
from nclone_env.train.collect.episodes import EpisodeLog
from nclone_env.train.config import TrainConfig
from nclone_env.train.environments import MakeEnvironments, VectorEnvironment, make_environments, observation_shapes
from nclone_env.train.learn.ppo import count_parts
from nclone_env.train.levels.generated import held_out_count
from nclone_env.train.levels.split import run_levels
from nclone_env.train.network.device import learning_device
from nclone_env.train.network.mlp import scratch_bytes
from nclone_env.train.policy import ActorCritic, make_policy
from nclone_env.train.ranks import ALONE
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.run import group_sizes, held_out_environments, is_by_hand, make_workers, most_rows, part_size


def estimate_bytes(config: TrainConfig, make_envs: MakeEnvironments = make_environments) -> MemoryNode:
    """Return the bytes that a run will own once it is prepared, as ``Run.memory()`` reports them.

    Levels and pictures that all environments share are left out, and so are libraries, compiled code, the activations
    that torch allocates during an update, and the last observations of episodes that end in one step. The environments
    are measured on one and on two of them, as their bytes grow in proportion.

    Args:
        config: configuration of the run.
        make_envs: creates the environments.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError: as creating the environments does.
    """
    levels, held_out = _example_levels(config)
    environment = config.unstacked_environment.replace(levels=levels)
    with closing(make_envs(environment, 1)) as one, closing(make_envs(environment, 2)) as two:
        dtypes = {name: space.dtype for name, space in one.single_observation_space.spaces.items()}
        shapes, stacked = observation_shapes(one), observation_shapes(one, config.frame_stack)
        by_hand = is_by_hand(one, config.frame_stack)
        first, more = _used_bytes(one), _used_bytes(two) - _used_bytes(one)
    sizes = {name: math.prod(shape) * dtypes[name].itemsize for name, shape in shapes.items()}
    with torch.device("meta"):  # shapes alone: initial weights would cost time, threads and random numbers
        policy = make_policy(config, stacked)
    parameters = 4 * sum(parameter.numel() for parameter in policy.parameters())
    on_device = learning_device(config, by_hand, ALONE) is not None
    scratch = _transferred_bytes if on_device else _by_hand_bytes if by_hand else _gathered_bytes
    groups = [
        first + more * (size - 1) + _group_bytes(config, policy, sizes, size) for size in group_sizes(config.num_envs)
    ]
    count = make_workers(config, ALONE).count
    used = count * scratch(config, policy, sizes)
    if on_device:
        used += parameters
    elif by_hand:
        used += 8 * most_rows(config, config.num_envs)
    reference = parameters + used + (count * _gathered_bytes(config, policy, sizes) if config.frame_stack > 1 else 0)
    copied = _copied_bytes(config, policy, sizes)
    update = _device_update_bytes(config, parameters) + copied if on_device else _update_bytes(config, parameters)
    parts = {
        "parameters": parameters,
        "rollout storage": _storage_bytes(config, sizes) + _reference_bytes(config, policy, config.batch_size),
        "network scratch": used,
        "update": update,
        "learning curve": Rows.bytes_of(config.num_updates),
        "groups": sum(groups),
    }
    if config.keeps_clone:
        parts["reference policy"] = reference
    if held_out:
        evaluated = config.evaluated_environment.replace(levels=held_out)
        with closing(make_envs(evaluated, held_out_environments(config, config.num_envs, len(held_out)))) as envs:
            observed = envs.num_envs * config.frame_stack * sum(sizes.values())
            parts["held-out levels"] = count * (_used_bytes(envs) + observed)
    return MemoryNode("training run", children=tuple(MemoryNode(name, size) for name, size in parts.items()))


def check_memory(config: TrainConfig) -> None:
    """Reject a run that needs more memory than is available, before it allocates any.

    Raises:
        MemoryLimitError: the message names the number of environments that fits.
    """
    check_fits("num_envs", config.num_envs, estimate_bytes(config).total_bytes / config.num_envs)


def _example_levels(config: TrainConfig) -> tuple[tuple[LevelSource, ...], tuple[LevelSource, ...]]:
    """Return levels to train on and held-out ones; generated levels are represented by one that has everything."""
    levels, held_out = run_levels(config)
    return (*levels, *[everything()] * config.streams), (*held_out, *[everything()] * held_out_count(config))


def _used_bytes(envs: VectorEnvironment) -> int:
    """Return the bytes that environments own before the first episode ends, without shared ones."""
    space = envs.single_observation_space.spaces
    out = {name: np.zeros((envs.num_envs, *box.shape), box.dtype) for name, box in space.items()}
    for _ in range(2):  # results are written to two sets of arrays in turn
        envs.reset(seed=0, out=out)
    return envs.memory().bytes_where(shared=False)


def _storage_bytes(config: TrainConfig, sizes: Mapping[str, int]) -> int:
    fields = 8 + 4 + 4 + 1 + 1 + 4 + 4 + 4  # those of StepFields without the values
    values = 4 * (config.num_steps + 1) * config.num_envs
    return _observed_bytes(config, sizes) + config.batch_size * fields + values


def _observed_bytes(config: TrainConfig, sizes: Mapping[str, int]) -> int:
    """Return the bytes of the observations of a rollout, and of where episodes start."""
    starts = 1 if config.frame_stack > 1 else 0
    return (config.num_steps + config.frame_stack) * config.num_envs * (sum(sizes.values()) + starts)


def _reference_bytes(config: TrainConfig, policy: ActorCritic, steps: int) -> int:
    """Return the bytes of the clone's probabilities in a number of steps."""
    return 4 * NUM_ACTIONS * steps if config.keeps_clone else 0


def _group_bytes(config: TrainConfig, policy: ActorCritic, sizes: Mapping[str, int], num_envs: int) -> int:
    stacks = _stack_bytes(config, sizes) if config.frame_stack > 1 else 0
    finals = sum(size for name, size in sizes.items() if name != "action_mask")
    return num_envs * (stacks + EpisodeLog.bytes_per_step * config.num_steps + finals + 4 * NUM_ACTIONS + 16 + 4)


def _by_hand_bytes(config: TrainConfig, policy: ActorCritic, sizes: Mapping[str, int]) -> int:
    """Return the bytes of one thread's scratch of the hand-written network."""
    gathered = _gathered_bytes(config, policy, sizes) if config.frame_stack > 1 else 0
    return gathered + scratch_bytes(policy, most_rows(config, config.num_envs))


def _gathered_bytes(config: TrainConfig, policy: ActorCritic, sizes: Mapping[str, int]) -> int:
    """Return the bytes of one thread's gathered observations."""
    return most_rows(config, config.num_envs) * _stack_bytes(config, sizes)


def _transferred_bytes(config: TrainConfig, policy: ActorCritic, sizes: Mapping[str, int]) -> int:
    """Return the bytes of one thread's observations and results of a policy on a device."""
    seen = _stack_bytes(config, {name: size for name, size in sizes.items() if name != "action_mask"})
    return most_rows(config, config.num_envs) * (seen + 4 * (NUM_ACTIONS + 1))


def _stack_bytes(config: TrainConfig, sizes: Mapping[str, int]) -> int:
    """Return the bytes of one observation as the policy sees it."""
    return sum(size * (1 if name == "action_mask" else config.frame_stack) for name, size in sizes.items())


def _update_bytes(config: TrainConfig, parameters: int) -> int:
    parts = count_parts(config.minibatch_size, part_size(config))
    return (2 + parts) * parameters + 8 * config.batch_size + 8 * 6 * parts


def _device_update_bytes(config: TrainConfig, parameters: int) -> int:
    """Return the bytes of the update on a device without the rollout: moments, orders, numbers and results."""
    order, numbers = (
        8 * config.batch_size * config.ppo.update_epochs,
        16 * config.ppo.num_minibatches * config.ppo.update_epochs,
    )
    return 4 * parameters + 2 * (order + numbers) + 3 * parameters + 7 * 4 + 7 * 8


def _copied_bytes(config: TrainConfig, policy: ActorCritic, sizes: Mapping[str, int]) -> int:
    """Return the bytes of a copy of the rollout: observations, what the loss reads, reference probabilities."""
    fields, reference = 8 + 3 * 4, _reference_bytes(config, policy, config.batch_size)
    return _observed_bytes(config, sizes) + config.batch_size * fields + reference
