"""What a checkpoint keeps of a run, so that a resumed run ends as it would have without the interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nclone_env.train.checkpoint import (
    Checkpoint,
    check_observations,
    environment_fields,
    load_checkpoint,
    save_checkpoint,
    translated,
)
from nclone_env.train.run import Counters, Run
from nclone_env.train.warm_start import reference_state, restore_reference


def save_run(run: Run) -> None:
    """Write the checkpoint and the learning curve."""
    save_checkpoint(run.checkpoint_path, checkpoint_of(run))
    run.curve.write_csv()


def checkpoint_of(run: Run) -> Checkpoint:
    """Return the state of a run between two updates."""
    storage, statistics, optimiser = run.storage, run.statistics, run.ppo.optimiser
    depth = storage.frame_stack
    first_rows = {name: _tensor(array[:depth]) for name, array in storage.observation_arrays.items()}
    return Checkpoint(
        train_config=run.config.to_dict(),
        environment_config=environment_fields(run.config.environment()),
        observation_shapes={name: list(shape) for name, shape in run.policy.observation_shapes.items()},
        policy={name: parameter.clone() for name, parameter in run.policy.state_dict().items()},
        optimiser={"mean": _tensor(optimiser.mean), "square": _tensor(optimiser.square), "count": optimiser.count},
        counters=vars(run.counters).copy(),
        episodes={
            "vector_steps": statistics.vector_steps,
            "counts": _tensor(statistics.counts),
            "recent": _tensor(statistics.recent.view(np.uint8)),
        },
        observations={**first_rows, "episode starts": _tensor(storage.episode_starts[:depth])},
        environments=[
            _tensor(np.frombuffer(collector.envs.get_state(index), np.uint8))
            for collector in run.collectors
            for index in range(collector.envs.num_envs)
        ],
        curve=list(run.curve.rows),
        reference=reference_state(run),
    )


def restore_run(run: Run, path: Path) -> None:
    """Continue from a checkpoint; the environments have been reset.

    Raises:
        CheckpointError: if it cannot be read or does not fit the run.
    """
    checkpoint = load_checkpoint(path)
    check_observations(run.policy.observation_shapes, checkpoint, path)
    with translated(path):
        run.policy.load_state_dict(checkpoint.policy)
        _copy(run.ppo.optimiser.mean, checkpoint.optimiser["mean"])
        _copy(run.ppo.optimiser.square, checkpoint.optimiser["square"])
        run.ppo.optimiser.count = checkpoint.optimiser["count"]
        run.counters = Counters(**checkpoint.counters)
        _restore_episodes(run, checkpoint.episodes)
        _restore_environments(run, checkpoint)
        restore_reference(run, checkpoint.reference)
    run.curve.rows[:] = checkpoint.curve


def _restore_episodes(run: Run, state: dict[str, Any]) -> None:
    statistics = run.statistics
    statistics.vector_steps = state["vector_steps"]
    _copy(statistics.counts, state["counts"])
    _copy(statistics.recent.view(np.uint8), state["recent"])


def _restore_environments(run: Run, checkpoint: Checkpoint) -> None:
    if len(checkpoint.environments) != run.config.num_envs:
        raise ValueError(f"num_envs: expected {len(checkpoint.environments)}, as when it was saved")
    snapshots = iter(checkpoint.environments)
    for collector in run.collectors:
        for index in range(collector.envs.num_envs):
            collector.envs.set_state(index, next(snapshots).numpy().tobytes())
    depth = run.storage.frame_stack
    arrays = {**run.storage.observation_arrays, "episode starts": run.storage.episode_starts}
    for name, array in arrays.items():
        _copy(array[:depth], checkpoint.observations[name])


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.copy())


def _copy(target: np.ndarray, source: Tensor) -> None:
    if target.shape != tuple(source.shape):
        raise ValueError(f"expected shape {target.shape}, got {tuple(source.shape)}")
    target[...] = source.numpy()
