"""Options fixed by a checkpoint: the inputs and the architecture of its policy, and those that its run keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nclone_env.errors import CheckpointError
from nclone_env.train.config import TrainConfig
from nclone_env.train.policy import ActorCritic
from nclone_env.train.runs.checkpoint import (
    Checkpoint,
    check_observations,
    load_checkpoint,
    restore_configs,
    translated,
)

OF_POLICY = (
    "observations",
    "picture_size",
    "max_entities",
    "local_position",
    "locals_size",
    "locals_planes",
    "outcome_frames",
    "frame_stack",
    "paths",
    "action_heads",
    "activation",
    "hidden_size",
    "shared_trunk",
)
"""Fields of ``TrainConfig`` that a policy is trained for."""
OF_RUN = (
    *OF_POLICY,
    "levels",
    "mirrored",
    "held_out",
    "split_seed",
    "curriculum",
    "starts",
    "generated_count",
    "num_envs",
    "num_steps",
    "success_window",
    "warm_start",
)
"""Fields that a run keeps when it is resumed."""
_CRITIC = "critic."
_FILES = ("levels", "starts", "warm_start")  # their folder may have moved


def changed(fields: tuple[str, ...], saved: TrainConfig, given: TrainConfig) -> str | None:
    """Return the name of the first field that differs, None if all agree."""
    return next((name for name in fields if _compared(saved, name) != _compared(given, name)), None)


def check_resumable(config: TrainConfig, checkpoint: Checkpoint, path: Path) -> None:
    """Check that a run which continues from a checkpoint keeps the options that cannot change.

    Args:
        config: configuration of the run.
        checkpoint: the checkpoint.
        path: its file.

    Raises:
        CheckpointError: if one differs.
    """
    saved, _ = restore_configs(checkpoint, path)
    name = changed(OF_RUN, saved, config)
    if name is None and saved.keeps_clone != config.keeps_clone:
        name = "clone_kl_coef"
    if name is not None:
        expected, got = (_text(getattr(each, name)) for each in (saved, config))
        raise CheckpointError(
            f"{path}: {name}: expected {expected}, as in the run to resume, got {got}; leave out {_flag(name)}, or "
            "begin another run with its policy by --init"
        )


def _check_policy(config: TrainConfig, saved: TrainConfig, path: Path) -> None:
    """Check that the policy of another run fits a run.

    Raises:
        CheckpointError: if it sees something else, or is another network.
    """
    name = changed(OF_POLICY, saved, config)
    if name is not None:
        expected, got = getattr(config, name), getattr(saved, name)
        fix = option(name, got)
        raise CheckpointError(f"{path}: expected a policy with {name} {_text(expected)}, got {_text(got)}; pass {fix}")


def initialise_policy(policy: ActorCritic, config: TrainConfig, path: Path) -> None:
    """Copy the parameters of another run's policy, except those of the value function alone.

    The value function estimates returns of other levels or rewards there, so its head, and its layers if they are
    separate, keep their initial values.

    Args:
        policy: the network of the new run, changed in place.
        config: configuration of the new run.
        path: checkpoint of the other run.

    Raises:
        CheckpointError: if the file cannot be read, or its network or observations differ.
    """
    checkpoint = load_checkpoint(path)
    other, _ = restore_configs(checkpoint, path)
    _check_policy(config, other, path)
    check_observations(policy.observation_shapes, checkpoint, path)
    own = policy.state_dict()
    with translated(path):
        policy.load_state_dict(
            {name: own[name] if name.startswith(_CRITIC) else value for name, value in checkpoint.policy.items()}
        )


def option(name: str, value: Any) -> str:
    """Return the option of the command line that sets a field to a value."""
    if isinstance(value, bool):
        return _flag(name) if value else f"--no-{_flag(name)[2:]}"
    return f"{_flag(name)} {_text(value)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value) or "none"
    return str(value)


def _compared(config: TrainConfig, name: str) -> Any:
    value = getattr(config, name)
    if name in _FILES:
        return tuple(Path(each).name for each in value)
    return sorted(value) if isinstance(value, tuple) else value
