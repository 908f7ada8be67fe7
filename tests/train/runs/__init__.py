"""Small training runs, and what two of them must have in common to be the same."""

import dataclasses
import hashlib

import numpy as np
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nclone_env.options import flat
from nclone_env.train import Hooks, TrainConfig, load_checkpoint
from nclone_env.train.policies.checkpoint import Checkpoint
from nclone_env.train.runs.curve import Rows

TIMES = {
    "steps_per_second",
    "collect_seconds",
    "learn_seconds",
    "step_p95_seconds",
    "update_p95_seconds",
    "evaluation_seconds",
}


def config(tmp_path, **fields):
    """Return the configuration of a run of 4 updates on the toy environment."""
    defaults = {
        "num_envs": 32,
        "num_steps": 16,
        "total_timesteps": 32 * 16 * 4,
        "update_epochs": 3,
        "num_minibatches": 4,
        "max_frames": 80,
        "hidden_size": 32,
        "num_threads": 2,
        "output": tmp_path,
        "stop_at_success": None,
        "learning_rate": 3e-3,
    }
    return TrainConfig.of(**{**defaults, **fields})


def until(updates):
    """Return hooks that end a run after some updates."""
    rows = []
    return Hooks(on_update=rows.append, stop=lambda: len(rows) == updates)


def curve_of(rows):
    """Return what a checkpoint keeps of the rows of a learning curve."""
    kept = Rows(max(len(rows), 1))
    for row in rows:
        kept.append(row)
    return kept.state()


KEPT = ("optimiser", "counters", "episodes", "observations", "environments", "held_out", "selection", "reference")


def checkpoint_of(settings, policy, rows=(), **parts):
    """Return a checkpoint of a policy and of some rows of a curve; other parts than those given are empty."""
    shapes = {name: list(shape) for name, shape in policy.observation_shapes.items()}
    kept = {name: parts.pop(name, {}) for name in KEPT}
    return Checkpoint(flat(settings), shapes, policy.state_dict(), curve=curve_of(rows), **kept, **parts)


def vector(result):
    """Return all parameters of the policy of a run."""
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in result.policy.parameters()])


def untimed(rows):
    """Return the rows of a learning curve without the timed columns, as text so that nan equals nan."""
    return [{name: repr(value) for name, value in row.items() if name not in TIMES} for row in rows]


def contents(checkpoint):
    """Return everything that a checkpoint keeps, but for configuration and times; tensors become digests."""
    content = dataclasses.asdict(load_checkpoint(checkpoint))
    content["curve"] = untimed(Rows.of(content["curve"]))
    return _plain({name: value for name, value in content.items() if name not in ("train_config", "path")})


def shown(folder):
    """Return the timesteps that TensorBoard shows of the run in a folder."""
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    events.Reload()
    return [event.step for event in events.Scalars("timesteps")]


def _plain(value):
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), hashlib.sha256(value.numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
