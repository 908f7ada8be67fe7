"""Options fixed by a checkpoint: the inputs and the architecture of its policy, and those that its run keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nclone_env.errors import CheckpointError
from nclone_env.options import Option, leaves
from nclone_env.train.config import TrainConfig
from nclone_env.train.network.policy import ActorCritic
from nclone_env.train.runs.checkpoint import Checkpoint, check_observations, load_checkpoint, restore_config, translated

OF_POLICY = tuple(each for each in leaves(TrainConfig) if each.fixed == "policy")
"""Options that a policy is trained for."""
OF_RUN = tuple(each for each in leaves(TrainConfig) if each.fixed)
"""Options that a run keeps when it is resumed."""
_CRITIC = "critic."
_FILES = ("levels", "starts", "warm_start")  # their folder may have moved


def changed(options: tuple[Option, ...], saved: TrainConfig, given: TrainConfig) -> Option | None:
    """Return the first option that differs, None if all agree."""
    return next((each for each in options if _compared(each, saved) != _compared(each, given)), None)


def check_resumable(config: TrainConfig, checkpoint: Checkpoint, path: Path) -> None:
    """Check that a run which continues from a checkpoint keeps the options that cannot change.

    Raises:
        CheckpointError: if one differs.
    """
    saved = restore_config(checkpoint, path)
    found = changed(OF_RUN, saved, config)
    if found is None and saved.keeps_clone != config.keeps_clone:
        found = next(each for each in leaves(TrainConfig) if each.key == "clone_kl_coef")
    if found is not None:
        expected, got = (_text(found.value(each)) for each in (saved, config))
        raise CheckpointError(
            f"{path}: {found.key}: expected {expected}, as in the run to resume, got {got}; leave out "
            f"{_flag(found.key)}, or begin another run with its policy by --init"
        )


def _check_policy(config: TrainConfig, saved: TrainConfig, path: Path) -> None:
    """Check that the policy of another run fits a run.

    Raises:
        CheckpointError: if it sees something else, or is another network.
    """
    found = changed(OF_POLICY, saved, config)
    if found is not None:
        name, expected, got = found.key, found.value(config), found.value(saved)
        fix = option(name, got)
        raise CheckpointError(f"{path}: expected a policy with {name} {_text(expected)}, got {_text(got)}; pass {fix}")


def initialise_policy(policy: ActorCritic, config: TrainConfig, path: Path) -> None:
    """Copy the parameters of another run's policy, except those of the value function alone.

    The value function estimates returns of other levels or rewards there, so its head, and its layers if they are
    separate, keep their initial values.

    Args:
        policy: the network of the new run, changed in place.

    Raises:
        CheckpointError: if the file cannot be read, or its network or observations differ.
    """
    checkpoint = load_checkpoint(path)
    other = restore_config(checkpoint, path)
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
        return " ".join(map(str, value)) or "none"
    return str(value)


def _compared(option: Option, config: TrainConfig) -> Any:
    value = option.value(config)
    if option.key in _FILES:
        return tuple(Path(each).name for each in value)
    return sorted(value) if isinstance(value, tuple) else value
