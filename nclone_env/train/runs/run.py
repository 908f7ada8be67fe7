"""A training run: everything it owns, how it is set up, and what a checkpoint keeps of it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from nclone_env.config import EnvironmentConfig
from nclone_env.env import Workers, playable_levels
from nclone_env.game import NUM_ACTIONS
from nclone_env.level import Level, LevelSet, LevelSource, load_levels, paths_with_doors
from nclone_env.machine import available_cores
from nclone_env.memory import MemoryNode, merged
from nclone_env.train.collect.collector import Collector
from nclone_env.train.collect.device import DeviceCollector, DeviceRollout
from nclone_env.train.collect.environments import (
    MakeEnvironments,
    VectorEnvironment,
    make_environments,
    observation_shapes,
    on_device,
)
from nclone_env.train.collect.episodes import EpisodeStatistics
from nclone_env.train.collect.held_out import MOST_ENVIRONMENTS, HeldOutLevels
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.collect.selection import EpisodeSelection, assign_levels
from nclone_env.train.config import TrainConfig
from nclone_env.train.hooks import SILENT, Hooks
from nclone_env.train.learn.gae import write_returns_on_device
from nclone_env.train.learn.learner import Learner, LearnerParts
from nclone_env.train.learn.learners import make_learner
from nclone_env.train.learn.reference import DeviceReference, Reference
from nclone_env.train.levels.solutions import Planner, run_starts
from nclone_env.train.levels.sources import level_digests, run_levels
from nclone_env.train.policies.device import DeviceNetwork, learning_device
from nclone_env.train.policies.mlp import Network, make_network
from nclone_env.train.policies.network import PICTURES, ActorCritic, FlatParameters, make_policy
from nclone_env.train.ranks import ALONE, Ranks
from nclone_env.train.runs.curve import LearningCurve
from nclone_env.train.runs.folder import RunFolder

_GROUP_SIZE, _SMALLEST_GROUP, _MOST_GROUPS = 128, 16, 16
"""Environments of a group if there are many, fewest of a group if there are few, and most groups: where Python makes
the steps, one of a group takes the interpreter 40 us, and threads take turns in it. Other sizes would round the values
of last observations in another way: seeds would give other policies."""

_RECURRENT_PART = 1024

Score = tuple[float, float, float]
"""Recent success rate of the worst level, mean success rate, mean return: what makes a checkpoint the best."""


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
class TrainingRun:
    """Everything a training run owns."""

    config: TrainConfig
    environment: EnvironmentConfig
    """Of the environments trained in, without frame stacks."""
    policy: ActorCritic
    parameters: FlatParameters
    storage: RolloutStorage | DeviceRollout
    collectors: Sequence[Collector | DeviceCollector]
    learner: Learner
    network: Network | DeviceNetwork
    workers: Workers
    planner: Planner
    statistics: EpisodeStatistics
    selection: EpisodeSelection
    held_out: HeldOutLevels | None
    folder: RunFolder
    curve: LearningCurve
    counters: Counters = field(default_factory=Counters)
    ranks: Ranks = ALONE
    hooks: Hooks = SILENT
    levels: Sequence[Level] | None = None
    """The levels that the names of the configuration denote; None if they are not all loaded."""
    device: torch.device | None = None
    """Device of environments, rollout and policy; None: the processor, by the threads of the run."""
    reference: Reference | DeviceReference | None = None
    """The clone of a warm start, which the policy is kept close to."""
    saved: int = -1
    """Updates before the latest checkpoint; -1 without one."""
    best: Score | None = None
    """Score of the best checkpoint."""
    only_survives: bool = False
    """Whether the hooks were told that it does."""
    kilobytes_per_environment: float = 0.0
    """Memory of the run per environment in KB (1,024 bytes) at the beginning, without what does not grow with them."""

    def measure_environments(self) -> None:
        """Record the memory per environment, before a run is restored: then all its parts record the same value."""
        self.kilobytes_per_environment = self.memory().bytes_where(shared=False) / self.storage.num_envs / 1024

    @property
    def groups(self) -> list[VectorEnvironment]:
        """The environments of each group."""
        return [collector.envs for collector in self.collectors]

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
        """Return the tree of owned bytes; what all environments share counts once, also parameters and optimiser."""
        parameters = MemoryNode("parameters", self.parameters.vector.nbytes, shared=True)
        parts = self.storage, self.network, self.learner, self.curve.rows, self.reference, self.held_out, self.selection
        groups = replace(merged([collector.memory() for collector in self.collectors]), name="groups")
        own = (part.memory() for part in parts if part is not None)
        return MemoryNode("training run", children=(parameters, *own, groups))

    def close(self) -> None:
        """End the threads, close the environments and the files."""
        for part in (self.workers, *self.groups, self.held_out, self.curve):
            if part is not None:
                part.close()


def group_sizes(num_envs: int) -> list[int]:
    """Return the number of environments of each group of a rank; it does not depend on the number of threads."""
    count = max(1, min(num_envs // _SMALLEST_GROUP, max(2, num_envs // _GROUP_SIZE), _MOST_GROUPS))
    edges = [num_envs * group // count for group in range(count + 1)]
    return [last - first for first, last in itertools.pairwise(edges)]


def part_size(config: TrainConfig) -> int:
    """Return the most steps of a part of a minibatch: its activations should stay in the cache of a core.

    With a memory a part has whole sequences, of more steps: each step of them costs a call of torch.
    """
    if config.recurrent_size:
        sequences = config.num_envs // config.ppo.num_minibatches
        return config.num_steps * min(sequences, max(1, _RECURRENT_PART // config.num_steps))
    has_pictures = any(name in PICTURES for name in config.environment.observations)
    return min(256 if has_pictures else 512, config.minibatch_size)


def most_rows(config: TrainConfig, ranks: Ranks) -> int:
    """Return the largest number of rows of a call of the network."""
    return max(*group_sizes(len(ranks.share(config.num_envs))), part_size(config))


def make_workers(config: TrainConfig, ranks: Ranks) -> Workers:
    """Return the threads of a rank; by default the ranks of a machine share its cores."""
    threads = config.num_threads or max(1, available_cores() // ranks.local_count)
    return Workers(config.batch_size, threads, min_chunk=1)


def set_up(
    config: TrainConfig,
    make_envs: MakeEnvironments,
    folder: RunFolder,
    ranks: Ranks,
    hooks: Hooks,
) -> TrainingRun:
    """Build all components of a run that writes to a folder; nothing is written yet."""
    workers = make_workers(config, ranks)
    planner = Planner(workers.count, hooks)
    chosen = choose_levels(config, make_envs is make_environments, hooks)
    environment = chosen.environment
    share = ranks.share(config.num_envs)
    device = learning_device(config, ranks)
    sizes = group_sizes(len(share)) if device is None else [len(share)]
    make = make_envs if device is None else on_device(make_envs, device)
    groups = [make(environment, size) for size in sizes]
    envs = groups[0]
    if config.curriculum == "even" and 1 < len(envs.level_names) <= config.num_envs:
        assign_levels(groups, share)
    generator = torch.Generator().manual_seed(config.seed)
    policy = make_policy(config, observation_shapes(envs, config.frame_stack), generator)
    place = None if device is None else device.place
    parts, learner = assemble(config, policy, envs.single_observation_space, len(share), workers, ranks, place)
    starts = run_starts(environment, config.starts, planner)
    return TrainingRun(
        config=config,
        environment=environment,
        policy=policy,
        parameters=parts.parameters,
        storage=parts.storage,
        collectors=make_collectors(parts, groups, share.start),
        learner=learner,
        network=parts.network,
        workers=workers,
        planner=planner,
        statistics=EpisodeStatistics(envs.level_names, config.environment.max_steps),
        selection=EpisodeSelection(groups, config.curriculum == "progress", starts),
        held_out=make_held_out(config, len(share), chosen.held_out, make_envs, parts.network, workers),
        folder=folder,
        curve=LearningCurve(folder.path, config.num_updates),
        ranks=ranks,
        hooks=hooks,
        device=place,
        levels=chosen.loaded,
    )


def make_collectors(
    parts: LearnerParts, groups: Sequence[VectorEnvironment], offset: int = 0
) -> list[Collector | DeviceCollector]:
    """Return what plays each group of environments; ``offset`` are those of the ranks before this one."""
    config, storage, network = parts.config, parts.storage, parts.network
    if isinstance(storage, DeviceRollout):
        assert isinstance(network, DeviceNetwork)
        from nclone_env.env import NPlusPlusCudaVectorEnv  # the code for GPUs

        of_returns = config.environment.reward.gamma, config.ppo.gae_lambda
        after = partial(write_returns_on_device, storage.arrays, *of_returns)
        (envs,) = groups
        assert isinstance(envs, NPlusPlusCudaVectorEnv)
        return [DeviceCollector(envs, storage, network, config.seed, offset, after)]
    assert not isinstance(network, DeviceNetwork)
    lasts = itertools.accumulate(envs.num_envs for envs in groups)
    return [
        Collector(envs, storage.columns(last - envs.num_envs, last), network, config.seed, offset)
        for envs, last in zip(groups, lasts)
    ]


class ChosenLevels(NamedTuple):
    """The levels of a run."""

    environment: EnvironmentConfig
    """The environments trained in, with the levels to train on."""
    held_out: tuple[Level, ...]
    loaded: tuple[Level, ...] | None
    """``TrainingRun.levels``."""
    playable: LevelSet | None
    """Those trained on, packed; the environments share it while it is referenced. None: they load them."""


def choose_levels(config: TrainConfig, for_own: bool, hooks: Hooks) -> ChosenLevels:
    """Return the levels of a run, loaded once, unless the environments, not the package's own, may know others."""
    levels, held_out = run_levels(config)
    environment = config.unstacked_environment
    if not (held_out or config.starts or for_own):
        return ChosenLevels(environment.replace(levels=levels), (), None, None)
    named = tuple(load_levels((*levels, *held_out)))  # together: no two have the same name
    training, out = named[: len(named) - len(held_out)], named[len(named) - len(held_out) :]
    playable = playable_levels(environment.replace(levels=training))
    if environment.paths == "doors":  # the environments find them kept; those of thousands of levels take a while
        paths_with_doors(playable, hooks.level)
    chosen = environment.replace(levels=tuple(playable.levels), mirrored=False)
    return ChosenLevels(chosen, out, None if held_out else named, playable)


def assemble(
    config: TrainConfig,
    policy: ActorCritic,
    observation_space: Any,
    num_envs: int,
    workers: Workers,
    ranks: Ranks = ALONE,
    device: torch.device | None = None,
) -> tuple[LearnerParts, Learner]:
    """Return what learns, and its parts: a policy on rollouts of ``num_envs`` environments with such observations."""
    parameters, actions = FlatParameters(policy), NUM_ACTIONS if config.keeps_clone else 0
    size = config.num_steps, num_envs, observation_space, config.frame_stack, actions
    storage: RolloutStorage | DeviceRollout
    network: Network | DeviceNetwork
    if device is None:
        storage = RolloutStorage(*size, config.recurrent_size)
        network = make_network(policy, parameters, storage, workers.count, most_rows(config, ranks))
    else:
        storage, network = DeviceRollout(*size, device), DeviceNetwork(policy, parameters, device)
    parts = LearnerParts(config, policy, parameters, storage, network, workers, part_size(config), ranks, device)
    return parts, make_learner(parts)


def held_out_environments(config: TrainConfig, num_envs: int, num_levels: int) -> int:
    """Return the number of environments in which a thread of a rank with ``num_envs`` plays held-out levels."""
    return min(MOST_ENVIRONMENTS, max(group_sizes(num_envs)), num_levels * config.evaluation.attempts)


def make_held_out(
    config: TrainConfig,
    num_envs: int,
    levels: tuple[LevelSource, ...],
    make_envs: MakeEnvironments,
    network: Network | DeviceNetwork,
    workers: Workers,
) -> HeldOutLevels | None:
    """Return the held-out levels of a run, None if there are none."""
    if not levels:
        return None
    environment = config.evaluated_environment.replace(levels=levels)
    size = held_out_environments(config, num_envs, len(levels))
    return HeldOutLevels(
        [make_envs(environment, size) for _ in range(workers.count)],
        level_digests(levels),
        network,
        attempts=config.evaluation.attempts,
        seed=config.seed,
        most_steps=environment.max_steps,
        recurrent_size=config.recurrent_size,
    )
