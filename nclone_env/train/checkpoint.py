"""Checkpoints: a run at an update boundary in one file, readable without executing anything in it."""

from __future__ import annotations

import dataclasses
import pickle
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nclone_env import __version__
from nclone_env._files import fill_file
from nclone_env.config import EnvironmentConfig, build
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train.config import TrainConfig, plain
from nclone_env.train.policy import ActorCritic

FORMAT = 1

# What zipfile and torch.load raise on files that are damaged or something else altogether.
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
    zipfile.BadZipFile,
    zlib.error,
    pickle.UnpicklingError,
)


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds; plain values and tensors only."""

    train_config: dict[str, Any]
    """Fields of the ``TrainConfig``."""
    environment_config: dict[str, Any]
    """Fields of the ``EnvironmentConfig``."""
    observation_shapes: dict[str, list[int]]
    """Shape of each observation the policy sees."""
    policy: dict[str, Tensor]
    """Parameters by name."""
    optimiser: dict[str, Any]
    """State of Adam."""
    generator: Tensor
    """State of the random generator of actions and minibatches."""
    counters: dict[str, int]
    """Steps, updates and episodes so far."""
    curve: list[dict[str, float]]
    """Rows of the learning curve."""
    package_version: str = __version__
    """Version of the package that wrote it."""
    format: int = FORMAT
    """Version of this layout."""


def environment_fields(config: EnvironmentConfig) -> dict[str, Any]:
    """Return the fields of an environment configuration as plain values."""
    return plain(dataclasses.asdict(config))


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint to a temporary file, then rename it; the folder is made."""
    fields = {item.name: getattr(checkpoint, item.name) for item in dataclasses.fields(checkpoint)}
    path.parent.mkdir(parents=True, exist_ok=True)
    fill_file(path, lambda temporary: torch.save(fields, temporary))


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: if the file is missing, damaged, no checkpoint, or of another layout.
    """
    path = Path(path)
    fields = _read(path)
    names = {item.name for item in dataclasses.fields(Checkpoint)}
    missing = sorted(names - set(fields)) if isinstance(fields, dict) else []
    if missing or not isinstance(fields, dict):
        got = f"without {', '.join(missing)}" if missing else "with something else in it"
        raise _error(path, f"expected a checkpoint of nclone_env, got a file {got}")
    if fields["format"] != FORMAT:
        raise _error(path, f"expected format {FORMAT}, got {fields['format']} (version {fields['package_version']})")
    return Checkpoint(**{name: fields[name] for name in names})


def restore_policy(checkpoint: Checkpoint, path: str | Path) -> ActorCritic:
    """Return the policy of a checkpoint that was read from ``path``.

    Raises:
        CheckpointError: if parameters and shapes do not fit together.
    """
    with translated(path):
        hidden = checkpoint.train_config["hidden_size"]
        policy = ActorCritic({k: tuple(v) for k, v in checkpoint.observation_shapes.items()}, hidden)
        policy.load_state_dict(checkpoint.policy)
    return policy


def restore_configs(checkpoint: Checkpoint, path: str | Path) -> tuple[TrainConfig, EnvironmentConfig]:
    """Return the configurations of a checkpoint that was read from ``path``.

    Raises:
        CheckpointError: if this version of the package does not know a field or refuses a value.
    """
    with translated(path):
        train_config = build(TrainConfig, checkpoint.train_config, "train_config")
        return train_config, build(EnvironmentConfig, checkpoint.environment_config, "environment_config")


@contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Turn the errors of using a checkpoint's parts into a :class:`CheckpointError` that names the file."""
    try:
        yield
    except (ConfigError, RuntimeError, KeyError, ValueError, TypeError) as error:
        cause = " ".join(" ".join(str(error).splitlines()[:2]).split())  # torch lists every parameter
        raise _error(path, f"its content does not fit: {cause}") from error


def check_observations(expected: Mapping[str, tuple[int, ...]], checkpoint: Checkpoint, path: Path) -> None:
    """Check that the environments show what the policy of a checkpoint was trained on.

    Raises:
        CheckpointError: if names or shapes differ.
    """
    got = {name: tuple(shape) for name, shape in checkpoint.observation_shapes.items()}
    if got != dict(expected):
        raise _error(path, f"expected a policy for observations {dict(expected)}, got one for {got}")


def _read(path: Path) -> Any:
    if not path.is_file():
        raise _error(path, "expected a checkpoint file, found none there")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        fields = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:
        raise _error(path, f"expected a checkpoint, but it cannot be read: {error}") from error
    if damaged:
        raise _error(path, f"expected a whole checkpoint, but its part {damaged} is damaged")
    return fields


def _error(path: str | Path, cause: str) -> CheckpointError:
    return CheckpointError(f"{path}: {cause}; name a file written by 'nclone-env train'")
