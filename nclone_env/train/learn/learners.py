"""The learners by name. To add one, put a function that makes it into ``LEARNERS`` and name it by ``learner``."""

from collections.abc import Callable

from nclone_env.errors import ConfigError, shortened
from nclone_env.train.learn.device_update import DevicePPO
from nclone_env.train.learn.learner import Learner, LearnerParts
from nclone_env.train.learn.ppo import PPO


def make_learner(parts: LearnerParts) -> Learner:
    """Return the learner that the configuration names.

    Raises:
        ConfigError: if there is none of this name.
    """
    name = parts.config.learner
    if name not in LEARNERS:
        raise ConfigError(
            f"learner: expected one of {', '.join(LEARNERS)}, got {shortened(name)}; "
            "add a function that makes it to nclone_env.train.learn.learners.LEARNERS"
        )
    return LEARNERS[name](parts)


LEARNERS: dict[str, Callable[[LearnerParts], Learner]] = {
    "ppo": lambda parts: PPO(parts) if parts.device is None else DevicePPO(parts)
}
"""Name to what makes the learner."""
