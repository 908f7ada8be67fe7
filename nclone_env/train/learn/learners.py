"""The learners by name. To add one, put a function that makes it into ``LEARNERS`` and name it by ``learner``."""

from collections.abc import Callable

from nclone_env.errors import ConfigError, shortened
from nclone_env.train.learn.device_update import DevicePPO
from nclone_env.train.learn.learner import Learner, LearnerParts
from nclone_env.train.learn.ppo import PPO
from nclone_env.train.network.torch_network import TorchNetwork


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


def _make_ppo(parts: LearnerParts) -> Learner:
    config, _, parameters, storage, network, workers, part_size, ranks, device = parts
    if device is None:
        return PPO(network, parameters, storage, config, workers, part_size, ranks)
    assert isinstance(network, TorchNetwork)
    return DevicePPO(network, parameters, storage, config)


LEARNERS: dict[str, Callable[[LearnerParts], Learner]] = {"ppo": _make_ppo}
"""Name to what makes the learner."""
