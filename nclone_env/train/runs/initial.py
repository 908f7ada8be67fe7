"""The beginning of a run from the policy of another one."""

from __future__ import annotations

from pathlib import Path

from nclone_env.train.checkpoint import check_observations, load_checkpoint, restore_config, translated
from nclone_env.train.config import TrainConfig
from nclone_env.train.policy import ActorCritic
from nclone_env.train.runs.settled import check_policy

_CRITIC = "critic."


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
    other = restore_config(checkpoint, path)
    check_policy(config, other, path)
    check_observations(policy.observation_shapes, checkpoint, path)
    own = policy.state_dict()
    with translated(path):
        policy.load_state_dict(
            {name: own[name] if name.startswith(_CRITIC) else value for name, value in checkpoint.policy.items()}
        )
