"""The training loop: the order of collection, advantage estimation, update and logging."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from nclone_env.train.checkpoint import (
    Checkpoint,
    check_observations,
    environment_fields,
    load_checkpoint,
    save_checkpoint,
    translated,
)
from nclone_env.train.config import TrainConfig
from nclone_env.train.curve import EpisodeStatistics, LearningCurve, Row
from nclone_env.train.environments import (
    MakeEnvironments,
    VectorEnvironment,
    kilobytes_per_environment,
    make_environments,
    observation_shapes,
)
from nclone_env.train.gae import estimate_advantages
from nclone_env.train.policy import ActorCritic
from nclone_env.train.ppo import PPO, UpdateStatistics
from nclone_env.train.rollout import RolloutStorage


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
    envs: VectorEnvironment
    policy: ActorCritic
    ppo: PPO
    storage: RolloutStorage
    statistics: EpisodeStatistics
    curve: LearningCurve
    generator: torch.Generator
    counters: Counters = field(default_factory=Counters)

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


@dataclass(frozen=True)
class TrainResult:
    """Result of a training run."""

    policy: ActorCritic
    curve: list[Row]
    counters: Counters
    solved: bool
    checkpoint: Path


def train(
    config: TrainConfig,
    resume: str | Path | None = None,
    make_envs: MakeEnvironments = make_environments,
    on_update: Callable[[Row], None] = lambda row: None,
) -> TrainResult:
    """Train a policy; write checkpoints, the learning curve as CSV and TensorBoard files to the run folder.

    Args:
        config: configuration of the run.
        resume: checkpoint to continue from. Counters, policy, optimiser and random generator are restored;
            unfinished episodes are restarted.
        make_envs: creates the vector environment.
        on_update: called with the row of the learning curve after each update.

    Raises:
        CheckpointError: if ``resume`` cannot be read or does not match ``config``.
    """
    torch.set_num_threads(config.torch_threads)
    with closing(make_envs(config.unstacked_environment(), config.num_envs)) as envs:
        run = _set_up(config, envs, resume)
        with closing(run.curve):
            while not run.finished:
                started = time.perf_counter()
                collect_rollout(run)
                compute_returns(run)
                statistics = update_policy(run)
                log_update(run, statistics, time.perf_counter() - started)
                on_update(run.curve.rows[-1])
                if run.counters.updates % config.checkpoint_interval == 0:
                    save_run(run)
            save_run(run)
    return TrainResult(run.policy, run.curve.rows, run.counters, run.solved, run.checkpoint_path)


def collect_rollout(run: Run) -> None:
    """Fill the storage with the next T steps of all environments."""
    storage, policy, envs = run.storage, run.policy, run.envs
    while not storage.full:
        actions = storage.record(*policy.act(storage.observation(), run.generator))
        _, *outcome, info = envs.step(actions, out=storage.step_outputs())
        storage.record_outcome(*outcome)
        _record_truncations(run, info)
        run.counters.episodes += run.statistics.add(info)
        storage.advance()
    storage.record_last_values(policy.value(storage.observation()))
    run.counters.timesteps += run.config.batch_size
    run.counters.updates += 1


def compute_returns(run: Run) -> None:
    """Compute the advantages and returns of the stored rollout."""
    arrays, config = run.storage.arrays, run.config
    estimate_advantages(
        arrays.rewards,
        arrays.values,
        arrays.terminated,
        arrays.truncated,
        arrays.final_values,
        config.reward.gamma,
        config.gae_lambda,
        arrays.advantages,
        arrays.returns,
    )


def update_policy(run: Run) -> UpdateStatistics:
    """Update the policy on the stored rollout and prepare the storage for the next one."""
    run.ppo.set_learning_rate(learning_rate(run.config, run.counters.updates))
    statistics = run.ppo.update(run.storage)
    run.storage.continue_from_end()
    return statistics


def learning_rate(config: TrainConfig, update: int) -> float:
    """Return the learning rate of an update, counted from 1."""
    if not config.anneal_lr:
        return config.learning_rate
    return config.learning_rate * max(0.0, 1 - (update - 1) / config.num_updates)


def log_update(run: Run, statistics: UpdateStatistics, seconds: float) -> None:
    """Append the row of this update to the learning curve."""
    run.curve.append(
        {
            "timesteps": run.counters.timesteps,
            "updates": run.counters.updates,
            "episodes": run.counters.episodes,
            **run.statistics.summary(),
            **statistics._asdict(),
            "learning_rate": learning_rate(run.config, run.counters.updates),
            "steps_per_second": run.config.batch_size / seconds,
            "kilobytes_per_environment": kilobytes_per_environment(run.envs),
        }
    )


def save_run(run: Run) -> None:
    """Write the checkpoint and the learning curve."""
    checkpoint = Checkpoint(
        train_config=run.config.to_dict(),
        environment_config=environment_fields(run.config.environment()),
        observation_shapes={name: list(shape) for name, shape in run.policy.observation_shapes.items()},
        policy=run.policy.state_dict(),
        optimiser=run.ppo.optimiser.state_dict(),
        generator=run.generator.get_state(),
        counters=vars(run.counters).copy(),
        curve=run.curve.rows,
    )
    save_checkpoint(run.checkpoint_path, checkpoint)
    run.curve.write_csv()


def _set_up(config: TrainConfig, envs: VectorEnvironment, resume: str | Path | None) -> Run:
    """Build all components of a run and reset the environments."""
    generator = torch.Generator().manual_seed(config.seed)
    policy = ActorCritic(observation_shapes(envs, config.frame_stack), config.hidden_size, generator)
    storage = RolloutStorage(
        config.num_steps,
        config.num_envs,
        envs.single_observation_space,
        config.minibatch_size,
        config.frame_stack,
    )
    run = Run(
        config=config,
        envs=envs,
        policy=policy,
        ppo=PPO(policy, config, generator),
        storage=storage,
        statistics=EpisodeStatistics(envs.level_names, config.success_window, config.environment().max_steps),
        curve=LearningCurve(config.run_folder),
        generator=generator,
    )
    if resume is not None:
        _restore(run, Path(resume))
    # A resumed run must not repeat the episodes of the original run.
    seed = np.random.SeedSequence([config.seed, run.counters.updates]).generate_state(1)[0]
    envs.reset(seed=int(seed >> 1), out=storage.reset_outputs())
    return run


def _restore(run: Run, path: Path) -> None:
    checkpoint = load_checkpoint(path)
    check_observations(run.policy.observation_shapes, checkpoint, path)
    with translated(path):
        run.policy.load_state_dict(checkpoint.policy)
        run.ppo.optimiser.load_state_dict(checkpoint.optimiser)
        run.generator.set_state(checkpoint.generator)
        run.counters = Counters(**checkpoint.counters)
    run.curve.rows[:] = checkpoint.curve


def _record_truncations(run: Run, info: dict) -> None:
    """Store the values of the final observations of episodes truncated at the cursor."""
    storage = run.storage
    indices = np.flatnonzero(storage.arrays.truncated[storage.cursor])
    if len(indices):
        final = storage.final_observations(indices, info["final_obs"])
        storage.record_final_values(indices, run.policy.value(final))
