"""A training run: everything it owns, how it is set up, and what a checkpoint keeps of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits

from nclone_env.env.threads import Job, Workers, available_cores
from nclone_env.memory_tree import MemoryNode
from nclone_env.train.collect import Collector
from nclone_env.train.config import TrainConfig
from nclone_env.train.curve import LearningCurve
from nclone_env.train.environments import MakeEnvironments, VectorEnvironment, observation_shapes
from nclone_env.train.episodes import EpisodeStatistics
from nclone_env.train.network import Network
from nclone_env.train.networks import make_network
from nclone_env.train.parameters import FlatParameters
from nclone_env.train.policy import ActorCritic, make_policy
from nclone_env.train.ppo import PPO
from nclone_env.train.reference import Reference
from nclone_env.train.rollout import RolloutStorage

_GROUP_SIZE, _SMALLEST_GROUP = 128, 16
"""Environments of a group if there are many, and fewest of a group if there are few: each call costs some 10 us."""
_PART_SIZE = 512
"""Most steps of a part of a minibatch: its activations stay in the cache of a core."""


@dataclass
class Counters:
    """Progress of a run."""

    timesteps: int = 0
    """Environment steps over all environments."""
    updates: int = 0
    """Policy updates."""
    episodes: int = 0
    """Finished episodes."""


@dataclass
class Run:
    """Everything a training run owns."""

    config: TrainConfig
    policy: ActorCritic
    parameters: FlatParameters
    storage: RolloutStorage
    collectors: Sequence[Collector]
    ppo: PPO
    network: Network
    workers: Workers
    statistics: EpisodeStatistics
    curve: LearningCurve
    counters: Counters = field(default_factory=Counters)
    job: Job = field(default_factory=Job)
    reference: Reference | None = None
    """The clone of a warm start, which the policy is kept close to."""

    @cached_property
    def kilobytes_per_environment(self) -> float:
        """Memory per environment in KB (1,024 bytes), without memory shared by all environments."""
        trees = (collector.envs.memory() for collector in self.collectors)
        return sum(tree.bytes_where(shared=False) for tree in trees) / self.config.num_envs / 1024

    @property
    def checkpoint_path(self) -> Path:
        """Path of the checkpoint of this run."""
        return self.config.run_folder / "checkpoint.pt"

    @property
    def solved(self) -> bool:
        """Whether the recent success rate of every level has reached ``stop_at_success``."""
        target = self.config.stop_at_success
        return target is not None and self.statistics.solved(target)

    @property
    def finished(self) -> bool:
        """Whether training is complete."""
        return self.counters.timesteps >= self.config.total_timesteps or self.solved

    def memory(self) -> MemoryNode:
        """Return the tree of owned bytes."""
        own = [self.storage.memory(), self.network.memory(), self.ppo.memory()]
        if self.reference is not None:
            own.append(self.reference.memory())
        return MemoryNode("training run", children=(*own, *(collector.memory() for collector in self.collectors)))

    def close(self) -> None:
        """End the threads, close the environments and the files."""
        self.workers.close()
        for collector in self.collectors:
            collector.envs.close()
        self.curve.close()


def make_groups(config: TrainConfig, make_envs: MakeEnvironments) -> Iterator[tuple[int, VectorEnvironment]]:
    """Yield the first environment of each group and the group."""
    count = max(1, min(config.num_envs // _SMALLEST_GROUP, max(2, config.num_envs // _GROUP_SIZE)))
    edges = [config.num_envs * group // count for group in range(count + 1)]
    for first, last in itertools.pairwise(edges):
        yield first, make_envs(config.unstacked_environment(), last - first)


def set_up(config: TrainConfig, make_envs: MakeEnvironments) -> Run:
    """Build all components of a run."""
    groups = list(make_groups(config, make_envs))
    envs = groups[0][1]
    generator = torch.Generator().manual_seed(config.seed)
    policy = make_policy(config, observation_shapes(envs, config.frame_stack), generator)
    parameters = FlatParameters(policy)
    space, reference_actions = envs.single_observation_space, sum(policy.heads) if config.keeps_clone else 0
    storage = RolloutStorage(config.num_steps, config.num_envs, space, config.frame_stack, reference_actions)
    workers = Workers(config.num_envs, config.num_threads or available_cores(), min_chunk=1)
    most_rows = max(_PART_SIZE, *(envs.num_envs for _, envs in groups), 1)
    network = make_network(policy, parameters, storage, workers.slots, most_rows)
    return Run(
        config=config,
        policy=policy,
        parameters=parameters,
        storage=storage,
        collectors=[
            Collector(group, storage.columns(first, first + group.num_envs), network, policy.heads, config.seed)
            for first, group in groups
        ],
        ppo=PPO(network, parameters, storage, config, workers, _PART_SIZE),
        network=network,
        workers=workers,
        statistics=EpisodeStatistics(envs.level_names, config.success_window, config.environment().max_steps),
        curve=LearningCurve(config.run_folder),
    )


@contextmanager
def one_thread_per_call() -> Iterator[None]:
    """Make libraries compute each call on the thread that calls: the threads of the run share the cores themselves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
