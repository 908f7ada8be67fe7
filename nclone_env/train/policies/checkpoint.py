"""Checkpoints: the state of a run after an update in one file, loaded without executing code from it.

A checkpoint fixes options: the inputs and the architecture of its policy, and those that its run keeps.
"""

import dataclasses
import errno
import json
import pickletools
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nclone_env._files import UNREADABLE, check_directory, expanded, fill_file, open_regular, there
from nclone_env._version import __version__
from nclone_env.errors import CheckpointError, ConfigError, checked, cut, plain, shortened
from nclone_env.options import Option, leaves
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.files import check_kind, checkpoint_file
from nclone_env.train.policies.network import ActorCritic, make_policy

FORMAT = 8
_CRITIC = "critic."
_REMOVED = ("amp", "compile", *(f"generated_{name}" for name in ("count", "interval", "families", "difficulty")))
"""Options of earlier versions, which fix nothing."""
_FILES = ("levels", "starts", "warm_start")  # their folder may have moved
_OBJECTS = ("collections OrderedDict", "torch._utils _rebuild_tensor_v2")
_MOST_CAUSE = 500  # characters
_MOST_DIRECTORY = 1 << 20  # bytes of the list of members: thousands


@cache
def commit() -> str:
    """Return the commit of this copy of the package, with ``+`` behind it if a file has changed since.

    It is that of the repository that the package lies in, or that it was installed from; empty if neither is known.
    """
    folder = Path(__file__).resolve().parents[3]
    with suppress(OSError, subprocess.SubprocessError):
        if (folder / ".git").exists():
            git = ("git", "-C", str(folder), "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+")
            return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    with suppress(PackageNotFoundError, ValueError):
        installed = json.loads(distribution("nclone_env").read_text("direct_url.json") or "{}")
        return str(installed.get("vcs_info", {}).get("commit_id", ""))[:8]
    return ""


def described_version() -> str:
    """Return the version of the package, and its commit in brackets if it is known."""
    return f"{__version__} ({commit()})" if commit() else __version__


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
    package_version: str = dataclasses.field(default_factory=described_version)
    """Version of the package that wrote the file, with its commit since format 8."""
    format: int = FORMAT
    """Version of the checkpoint format."""
    path: Path = Path()
    """The file that it was read from, for messages; not saved."""


SAVED_FIELDS = tuple(item.name for item in dataclasses.fields(Checkpoint) if item.name != "path")
"""Fields of the file, in its order."""


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically, creating its folder if necessary."""
    fields = {name: getattr(checkpoint, name) for name in SAVED_FIELDS}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fill_file(path, lambda temporary: torch.save(fields, temporary))
    except RuntimeError as error:
        raise OSError(errno.EIO, "torch cannot write it; the disk may be full", str(path)) from error


@checked()
def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        CheckpointError: if the file is missing, damaged, not a checkpoint, or of another format version.
    """
    path = expanded(path)
    fields = _read(path)
    if not isinstance(fields, dict):
        raise _error(path, "expected a checkpoint of nclone_env, got a file with other contents")
    if fields.get("format", FORMAT) != FORMAT:  # first: formats differ in their fields
        cause = f"expected checkpoint format {FORMAT}, got {shortened(fields['format'])}"
        raise _of_other_version(path, cause, fields.get("package_version"))
    missing = sorted(set(SAVED_FIELDS) - set(fields))
    if missing:
        raise _error(path, f"expected a checkpoint of nclone_env, got a file without {', '.join(missing)}")
    return Checkpoint(**{name: fields[name] for name in SAVED_FIELDS}, path=path)


@checked()
def restore_policy(checkpoint: Checkpoint) -> ActorCritic:
    """Return the policy of a checkpoint.

    No memory is allocated for what the checkpoint only claims to contain: the network is built without weights and
    takes those of the file.

    Raises:
        CheckpointError: if the parameters do not match the observation shapes, or one is not finite.
    """
    with translated(checkpoint.path):
        config = restore_config(checkpoint)
        shapes = {name: tuple(shape) for name, shape in checkpoint.observation_shapes.items()}
        if not all(type(size) is int for shape in shapes.values() for size in shape):  # a product repeats a text
            raise ValueError("expected whole numbers as shapes of observations")
        with torch.device("meta"):
            policy = make_policy(config, shapes)
        _check_network(policy, checkpoint)
        _check_parameters(checkpoint.policy)
        policy.load_state_dict(checkpoint.policy, assign=True)
    return policy.requires_grad_()


@checked()
def restore_config(checkpoint: Checkpoint) -> TrainConfig:
    """Return the configuration of a checkpoint.

    Raises:
        CheckpointError: if an option is unknown to this version of the package, or its value is invalid.
    """
    with translated(checkpoint.path):
        return TrainConfig.of(**{key: value for key, value in checkpoint.train_config.items() if key not in _REMOVED})


def resumed_config(source: str | Path) -> TrainConfig:
    """Return the configuration with which a run goes on in the folder of its checkpoint, given either."""
    file = checkpoint_file(source)
    checkpoint = load_checkpoint(file)
    restore_policy(checkpoint)
    return restore_config(checkpoint).replace(output=file.parent.parent, name="")


def check_results(checkpoint: Checkpoint) -> None:
    """Check what is read of a run without continuing it: its counters and held-out levels."""
    with translated(checkpoint.path):
        timesteps = checkpoint.counters.get("timesteps", 0)
        if not isinstance(timesteps, int) or not 0 <= timesteps < 2**63:
            raise ValueError(f"counters: expected timesteps from 0 to 2**63, got {shortened(timesteps)}")
        digests = checkpoint.held_out.get("digests", [])
        if not isinstance(digests, list | tuple) or not all(isinstance(digest, str) for digest in digests):
            raise ValueError(f"held_out: expected digests of levels, got {shortened(digests)}")


@contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Convert errors raised while restoring a checkpoint to a :class:`CheckpointError` that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except (ConfigError, *UNREADABLE) as error:
        cause = " ".join(" ".join(str(error).splitlines()[:2]).split())  # torch lists every parameter
        raise _error(path, f"it cannot be restored: {cause}") from error


def check_observations(expected: Mapping[str, tuple[int, ...]], checkpoint: Checkpoint) -> None:
    """Check that the policy of a checkpoint was trained on these observations."""
    got = {name: tuple(shape) for name, shape in checkpoint.observation_shapes.items()}
    if got != dict(expected):
        raise _error(checkpoint.path, f"expected a policy for observations {dict(expected)}, got one for {got}")


def check_resumable(config: TrainConfig, checkpoint: Checkpoint) -> None:
    """Check that a run which continues from a checkpoint keeps network and options that cannot change."""
    restore_policy(checkpoint)
    saved = restore_config(checkpoint)
    found = _changed(("policy", "run"), saved, config)
    if found is None and saved.keeps_clone != config.keeps_clone:
        found = next(each for each in leaves(TrainConfig) if each.key == "clone_kl_coef")
    if found is not None:
        expected, got = (_text(found.value(each)) for each in (saved, config))
        raise CheckpointError(
            f"{checkpoint.path}: {found.key}: expected {expected}, as in the run to resume, got {got}; leave out "
            f"{_flag(found.key)}, or begin another run with its policy by --init"
        )


def initial_policy(config: TrainConfig, path: Path) -> Checkpoint:
    """Return the checkpoint of another run whose policy a run may begin with."""
    checkpoint = load_checkpoint(path)
    restore_policy(checkpoint)
    other = restore_config(checkpoint)
    found = _changed(("policy",), other, config)
    if found is not None:
        name, expected, got = found.key, _text(found.value(config)), found.value(other)
        fix = option(name, got)
        raise CheckpointError(f"{path}: expected a policy with {name} {expected}, got {_text(got)}; pass {fix}")
    return checkpoint


def initialise_policy(policy: ActorCritic, checkpoint: Checkpoint) -> None:
    """Copy the parameters of another run's policy, except those of the value function alone.

    The value function estimates returns of other levels or rewards there, so its head, and its layers if they are
    separate, keep their initial values.
    """
    check_observations(policy.observation_shapes, checkpoint)
    own = policy.state_dict()
    with translated(checkpoint.path):
        policy.load_state_dict(
            {name: own[name] if name.startswith(_CRITIC) else value for name, value in checkpoint.policy.items()}
        )


def _changed(kinds: tuple[str, ...], saved: TrainConfig, given: TrainConfig) -> Option | None:
    """Return the first option of those that a checkpoint fixes for such reasons that differs, None if all agree."""
    fixed = (each for each in leaves(TrainConfig) if each.fixed in kinds)
    return next((each for each in fixed if _compared(each, saved) != _compared(each, given)), None)


def option(name: str, value: Any) -> str:
    """Return the option of the command line that sets a field to a value."""
    if isinstance(value, bool):
        return _flag(name) if value else f"--no-{_flag(name)[2:]}"
    return f"{_flag(name)} {_text(value)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)


def _compared(option: Option, config: TrainConfig) -> Any:
    value = option.value(config)
    if option.key in _FILES:
        return tuple(Path(each).name for each in value)
    return sorted(value) if isinstance(value, tuple) else value


def _check_network(policy: ActorCritic, checkpoint: Checkpoint) -> None:
    """Check that a policy without weights has parameters of the shapes in the file."""
    own, read = (
        {name: tuple(parameter.shape) for name, parameter in parameters.items()}
        for parameters in (policy.state_dict(), checkpoint.policy)
    )
    differing = next((name for name in {**own, **read} if own.get(name) != read.get(name)), None)
    if differing is not None:
        expected, got = (shapes.get(differing, "none") for shapes in (own, read))
        cause = f"expected the network of this version, with {differing} {expected}, got one with {got}"
        raise _of_other_version(checkpoint.path, cause, checkpoint.package_version)


def _check_parameters(parameters: Mapping[str, Tensor]) -> None:
    """Check that parameters are finite float32 and stored in full; of a large one the file may hold a single number."""
    for name, parameter in parameters.items():
        if not isinstance(parameter, Tensor) or parameter.dtype != torch.float32 or not parameter.is_contiguous():
            raise ValueError(f"{name}: expected a contiguous float32 tensor")
        if not parameter.isfinite().all():
            raise ValueError(f"{name}: expected finite parameters, got NaN or infinity; use an earlier checkpoint")


def _find_damage(path: Path) -> str | None:
    """Return the name of a damaged part of a zip file, None if all are intact."""
    with open_regular(path) as file:
        check_directory(file, _MOST_DIRECTORY)
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
    if not there(path.exists):
        raise _error(path, "expected a checkpoint file, but the file does not exist")
    check_kind(path)
    try:
        damaged = _find_damage(path)
        fields = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise _error(path, f"expected a checkpoint, but the file cannot be read: {error}") from error
    if damaged:
        raise _error(path, f"expected an intact checkpoint, but its part {damaged} is damaged")
    return fields


def _of_other_version(path: Path, cause: str, version: Any) -> CheckpointError:
    """Return the error about a file that another version wrote, or that is damaged."""
    if version == described_version():
        return _error(path, cause)
    writer = f"{__version__} of an earlier commit" if version == __version__ else plain(shortened(version)[1:-1])
    return CheckpointError(
        f"{path}: {cause}, written by nclone_env {writer}; this is {described_version()}: install the other one to use "
        "the file, or train again"
    )


def _error(path: str | Path, cause: str) -> CheckpointError:
    cause = cause if len(cause) <= _MOST_CAUSE else f"{cause[:_MOST_CAUSE]}..."  # it may quote the file
    return CheckpointError(f"{cut(path)}: {cause}; pass a file written by 'nclone-env train' of this version")
