"""Bytes that a training run will own, counted on parts of it before the run is built."""

from __future__ import annotations

from contextlib import closing

import torch

from nclone_env.config import EnvironmentConfig
from nclone_env.errors import MemoryLimitError
from nclone_env.level import LevelSource, everything
from nclone_env.memory_limit import check_fits
from nclone_env.memory_tree import MemoryNode
from nclone_env.train.collect.acting import one_thread_per_call
from nclone_env.train.collect.collector import Collector
from nclone_env.train.collect.environments import (
    MakeEnvironments,
    VectorEnvironment,
    make_environments,
    observation_arrays,
    observation_shapes,
)
from nclone_env.train.config import TrainConfig
from nclone_env.train.learn.learners import make_learner
from nclone_env.train.learn.reference import Reference
from nclone_env.train.levels.generated import held_out_count
from nclone_env.train.levels.split import run_levels
from nclone_env.train.network.device import learning_device
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.policy import make_policy
from nclone_env.train.ranks import ALONE
from nclone_env.train.runs.curve import Rows
from nclone_env.train.runs.run import (
    group_sizes,
    is_by_hand,
    learner_parts,
    make_held_out,
    make_storage,
    make_workers,
    most_rows,
)

_NOWHERE = torch.device("meta")
_OF_ENVIRONMENTS = ("rollout storage", "update")
"""Parts that grow with the environments; the others grow with the threads, or not at all."""


def estimate_bytes(config: TrainConfig, make_envs: MakeEnvironments = make_environments) -> MemoryNode:
    """Return the bytes that a run will own once it is prepared, as ``Run.memory()`` reports them.

    Levels and pictures that all environments share are left out, and so are libraries, compiled code, the activations
    that torch allocates during an update, and the last observations of episodes that end in one step.

    Parts of the run are built for one and for two environments and threads, with which their bytes grow in proportion.
    The system provides no memory for zeroed arrays until they are written, so that costs little.

    Args:
        config: configuration of the run.
        make_envs: creates the environments.

    Raises:
        ConfigError, UnknownLevelError, LevelFormatError: as creating the environments does.
        MemoryLimitError: if the system refuses even the addresses of an array.
    """
    try:
        with one_thread_per_call():  # forked processes would wait for further threads in vain
            one, two = (_measured(config, make_envs, count) for count in (1, 2))
    except MemoryError as error:
        raise MemoryLimitError(f"num_envs: expected as many as fit, got {config.num_envs:,}: {error}") from error

    def extrapolated(name: str, count: int) -> int:
        return one[name] + (two[name] - one[name]) * (count - 1)

    threads = make_workers(config, ALONE).count
    counts = {**dict.fromkeys(one, threads), **dict.fromkeys(_OF_ENVIRONMENTS, config.num_envs)}
    sizes = {name: extrapolated(name, count) for name, count in counts.items() if name != "group"}
    sizes["groups"] = sum(extrapolated("group", size) for size in group_sizes(config.num_envs))
    return MemoryNode("training run", children=tuple(MemoryNode(name, size) for name, size in sizes.items()))


def check_memory(config: TrainConfig) -> None:
    """Reject a run that needs more memory than is available, before it allocates any.

    Raises:
        MemoryLimitError: the message names the number of environments that fits.
    """
    check_fits("num_envs", config.num_envs, estimate_bytes(config).total_bytes / config.num_envs)


def _measured(config: TrainConfig, make_envs: MakeEnvironments, count: int) -> dict[str, int]:
    """Return the bytes of the parts of a run with ``count`` threads, and with a group of ``count`` environments.

    The policy has arbitrary parameters: initial ones would cost time, threads and random numbers.
    """
    config = config.replace(num_threads=count)
    levels, held_out = _example_levels(config)
    environment = config.unstacked_environment.replace(levels=levels)
    with closing(_begun(make_envs(environment, count))) as envs:
        device = None if learning_device(config, is_by_hand(envs, config.frame_stack), ALONE) is None else _NOWHERE
        with _NOWHERE:
            policy = make_policy(config, observation_shapes(envs, config.frame_stack))
        parameters, workers = FlatParameters(policy.to_empty(device="cpu")), make_workers(config, ALONE)
        storage = make_storage(config, count, envs, None)
        made = learner_parts(config, policy, parameters, storage, workers, ALONE, device)
        network, learner = made.network, make_learner(made)
        group = Collector(envs, storage.columns(0, count), network, config.seed)
        parts = [part.memory() for part in (storage, network, learner, Rows(config.num_updates), group)]
    if config.keeps_clone:
        rows = most_rows(config, ALONE)
        parts.append(Reference(policy, storage, workers.count, rows, device).memory())

    def make_begun(environment: EnvironmentConfig, num_envs: int) -> VectorEnvironment:
        return _begun(make_envs(environment, num_envs))

    measured = make_held_out(config, config.num_envs, held_out, make_begun, network, workers)
    if measured is not None:
        with closing(measured):
            parts.append(measured.memory())
    return {"parameters": parameters.vector.nbytes, **{part.name: part.bytes_where(shared=False) for part in parts}}


def _example_levels(config: TrainConfig) -> tuple[tuple[LevelSource, ...], tuple[LevelSource, ...]]:
    """Return levels to train on and held-out ones; generated levels are represented by one that has everything."""
    levels, held_out = run_levels(config)
    return (*levels, *[everything()] * config.streams), (*held_out, *[everything()] * held_out_count(config))


def _begun(envs: VectorEnvironment) -> VectorEnvironment:
    """Return environments after the reset of both sets of arrays that results are written to in turn."""
    for _ in range(2):
        envs.reset(seed=0, out=observation_arrays(envs))
    return envs
