"""Checkpoints: the state of a run after an update in one file, loaded without executing code from it."""

from __future__ import annotations

import dataclasses
import errno
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nclone_env import __version__
from nclone_env._container import UNREADABLE
from nclone_env._files import fill_file
from nclone_env.errors import CheckpointError, ConfigError, shortened
from nclone_env.train.config import TrainConfig
from nclone_env.train.network.policy import ActorCritic, make_policy
from nclone_env.train.runs.curve import Rows

FORMAT = 8
_NAMED_OTHERWISE = 7
"""The format before: the same but for the options of the run (``_options_of_7``)."""
_ONLY = {"action_heads": "joint", "activation": "relu", "success_window": 100, "keep_last": None}
"""Options of format 7 that are gone, with the value that this version has for good; None: any will do."""

_OBJECTS = ("collections OrderedDict", "torch._utils _rebuild_tensor_v2")
_MOST_CAUSE = 500  # characters


@dataclass(frozen=True)
class Checkpoint:
    """Contents of a checkpoint: plain values and tensors only."""

    train_config: dict[str, Any]
    """Options of the ``TrainConfig`` by key (``nclone_env.options.flat``)."""
    observation_shapes: dict[str, list[int]]
    """Shape of each observation of the policy."""
    policy: dict[str, Tensor]
    """Parameters by name."""
    optimiser: dict[str, Any]
    """State of the learner; of PPO that of Adam: ``mean``, ``square`` and ``count``."""
    counters: dict[str, int]
    """Timesteps, updates and episodes so far. Random numbers are functions of the seed and of these."""
    episodes: dict[str, Any]
    """State of the statistics of recent episodes."""
    observations: dict[str, Tensor]
    """The observations that the next rollout begins with, (k, N, *shape) by name."""
    environments: dict[str, Tensor]
    """``snapshots`` of all environments one after another, uint8, and their ``sizes``, (N,) int64, in bytes."""
    curve: dict[str, Any]
    """The learning curve (``Rows.state``)."""
    held_out: dict[str, Any]
    """``digests`` of the held-out levels, and the ``results`` of the latest evaluation on them; else empty."""
    selection: dict[str, dict[str, Tensor]]
    """Measured success that level weights and start states follow."""
    reference: dict[str, Tensor]
    """Parameters of the clone of a warm start by name; empty without one."""
    generated: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Levels made for the run, the current ones and those before, with proofs (``LevelStream.state``); may be empty."""
    package_version: str = __version__
    """Version of the package that wrote the file."""
    format: int = FORMAT
    """Version of the checkpoint format."""


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically, creating its folder if necessary.

    Raises:
        OSError: if it cannot be written; of that torch only tells that it failed.
    """
    fields = {item.name: getattr(checkpoint, item.name) for item in dataclasses.fields(checkpoint)}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fill_file(path, lambda temporary: torch.save(fields, temporary))
    except RuntimeError as error:
        raise OSError(errno.EIO, "torch cannot write it; the disk may be full", str(path)) from error


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: if the file is missing, damaged, not a checkpoint, or of another format version.
    """
    path = Path(path)
    fields = _read(path)
    if not isinstance(fields, dict):
        raise _error(path, "expected a checkpoint of nclone_env, got a file with other contents")
    if fields.get("format") == _NAMED_OTHERWISE:
        with translated(path):
            fields = {**fields, "train_config": _options_of_7(fields["train_config"]), "format": FORMAT}
    if fields.get("format", FORMAT) != FORMAT:  # first: formats differ in their fields
        raise _error(
            path,
            f"expected checkpoint format {FORMAT}, got {fields['format']}, "
            f"written by nclone_env {fields.get('package_version')}",
        )
    names = {item.name for item in dataclasses.fields(Checkpoint)}
    missing = sorted(names - set(fields))
    if missing:
        raise _error(path, f"expected a checkpoint of nclone_env, got a file without {', '.join(missing)}")
    return Checkpoint(**{name: fields[name] for name in names})


def restore_policy(checkpoint: Checkpoint, path: str | Path) -> ActorCritic:
    """Return the policy of a checkpoint that was loaded from ``path``.

    No memory is allocated for what the checkpoint only claims to contain: the network is built without weights and
    takes those of the file.

    Raises:
        CheckpointError: if the parameters do not match the observation shapes, or one is not finite.
    """
    with translated(path):
        config = TrainConfig.of(**checkpoint.train_config)
        shapes = {name: tuple(shape) for name, shape in checkpoint.observation_shapes.items()}
        with torch.device("meta"):
            policy = make_policy(config, shapes)
        _check_parameters(checkpoint.policy)
        policy.load_state_dict(checkpoint.policy, assign=True)
    return policy.requires_grad_()


def restore_config(checkpoint: Checkpoint, path: str | Path) -> TrainConfig:
    """Return the configuration of a checkpoint that was loaded from ``path``.

    Raises:
        CheckpointError: if an option is unknown to this version of the package, or its value is invalid.
    """
    with translated(path):
        return TrainConfig.of(**checkpoint.train_config)


def check_results(checkpoint: Checkpoint, path: str | Path) -> None:
    """Check what is read of a run without continuing it: its counters, learning curve and held-out levels.

    Raises:
        CheckpointError: if a part is of another type, or a number out of range.
    """
    with translated(path):
        timesteps = checkpoint.counters.get("timesteps", 0)
        if not isinstance(timesteps, int) or not 0 <= timesteps < 2**63:
            raise ValueError(f"counters: expected timesteps from 0 to 2**63, got {shortened(timesteps)}")
        digests = checkpoint.held_out.get("digests", [])
        if not isinstance(digests, list | tuple) or not all(isinstance(digest, str) for digest in digests):
            raise ValueError(f"held_out: expected digests of levels, got {shortened(digests)}")
        Rows.of(checkpoint.curve)


@contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Convert errors raised while restoring a checkpoint to a :class:`CheckpointError` that names the file."""
    try:
        yield
    except (ConfigError, RuntimeError, LookupError, ValueError, TypeError, AttributeError) as error:
        cause = " ".join(" ".join(str(error).splitlines()[:2]).split())  # torch lists every parameter
        raise _error(path, f"it cannot be restored: {cause}") from error


def check_observations(expected: Mapping[str, tuple[int, ...]], checkpoint: Checkpoint, path: Path) -> None:
    """Check that the policy of a checkpoint was trained on these observations.

    Raises:
        CheckpointError: if names or shapes differ.
    """
    got = {name: tuple(shape) for name, shape in checkpoint.observation_shapes.items()}
    if got != dict(expected):
        raise _error(path, f"expected a policy for observations {dict(expected)}, got one for {got}")


def _options_of_7(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run from a checkpoint of format 7.

    Raises:
        ValueError: if one has a value that this version cannot continue with.
    """
    found = dict(options)
    for name, only in _ONLY.items():
        value = found.pop(name, only)
        if only is not None and value != only:
            raise ValueError(f"{name}: expected {only!r}, the only one that this version has, got {shortened(value)}")
    found["anneal"], entropy = found.pop("anneal_lr", True), found.pop("anneal_entropy", True)
    if found["anneal"] != entropy:
        raise ValueError("anneal_lr, anneal_entropy: expected equal values, the only ones that this version has")
    return found


def _check_parameters(parameters: Mapping[str, Tensor]) -> None:
    """Check that parameters are finite float32 and stored in full; of a large one the file may hold a single number."""
    for name, parameter in parameters.items():
        if not isinstance(parameter, Tensor) or parameter.dtype != torch.float32 or not parameter.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous float32 tensor")
        if not parameter.isfinite().all():
            raise ValueError(f"{name}: expected finite parameters, got NaN or infinity; use an earlier checkpoint")


def _find_damage(path: Path) -> str | None:
    """Return the name of a damaged part of a zip file, None if all are intact.

    Raises:
        ValueError: if it could take more memory than its size: by compressed or overlapping parts, or by other objects
            than the values and tensors of a checkpoint.
    """
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        stored = all(part.compress_type == zipfile.ZIP_STORED for part in parts)
        if not stored or sum(part.file_size for part in parts) > path.stat().st_size:
            raise ValueError("it holds compressed or overlapping parts")
        damaged = archive.testzip()
        for part in parts:
            if not damaged and part.filename.endswith(".pkl"):
                _check_objects(archive.read(part))
    return damaged


def _check_objects(pickled: bytes) -> None:
    """Check which classes and functions a pickle names; those that torch allows include ``bytearray``, of any size."""
    for opcode, name, _ in pickletools.genops(pickled):
        if "GLOBAL" in opcode.name or opcode.name == "INST":
            module, _, attribute = str(name).partition(" ")
            if name not in _OBJECTS and not (module == "torch" and attribute.endswith("Storage")):
                raise ValueError(f"it holds an object of a kind that no checkpoint has, {name}")


def _read(path: Path) -> Any:
    if not path.is_file():
        raise _error(path, "expected a checkpoint file, but the file does not exist")
    try:
        damaged = _find_damage(path)
        fields = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise _error(path, f"expected a checkpoint, but the file cannot be read: {error}") from error
    if damaged:
        raise _error(path, f"expected an intact checkpoint, but its part {damaged} is damaged")
    return fields


def _error(path: str | Path, cause: str) -> CheckpointError:
    cause = cause if len(cause) <= _MOST_CAUSE else f"{cause[:_MOST_CAUSE]}..."  # it may quote the file
    return CheckpointError(f"{path}: {cause}; pass a file written by 'nclone-env train' of this version")
