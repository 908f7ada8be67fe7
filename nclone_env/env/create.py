"""Functions that make environments of a configuration: one, a vector on the processor, or one on a GPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nclone_env.config import DEFAULT_OBSERVATIONS, EnvironmentConfig, ObservationName
from nclone_env.env.single import NPlusPlusEnv
from nclone_env.env.vector import NPlusPlusVectorEnv


def create_environment(config: EnvironmentConfig | None = None, **options: Any) -> NPlusPlusEnv:
    """Return a single environment; the defaults of :class:`EnvironmentConfig` if ``config`` is None.

    Args:
        config: configuration.
        **options: the other arguments of :class:`NPlusPlusEnv`, including fields of the configuration.
    """
    return NPlusPlusEnv(config, **options)


def create_vector_environment(
    config: EnvironmentConfig | None = None, num_envs: int = 1, *, device: Any = "cpu", **options: Any
) -> NPlusPlusVectorEnv:
    """Return ``num_envs`` environments in one process.

    Args:
        config: configuration; the defaults of :class:`EnvironmentConfig` if None.
        num_envs: number of environments.
        device: ``"cpu"``, or ``"cuda"`` for :class:`nclone_env.env.cuda.NPlusPlusCudaVectorEnv`, which returns tensors.
        **options: the other arguments of :class:`NPlusPlusVectorEnv`: ``autoreset_mode``, ``num_threads``,
            ``gymnasium_infos``, ``reward_function``, and fields of the configuration.
    """
    if isinstance(device, str) and device == "cpu":
        return NPlusPlusVectorEnv(config, num_envs, **options)
    from nclone_env.env.cuda import NPlusPlusCudaVectorEnv  # imports nothing of a GPU, but is rarely used

    return NPlusPlusCudaVectorEnv(config, num_envs, device=device, **options)


def compile_kernels(observations: Sequence[ObservationName] = DEFAULT_OBSERVATIONS) -> None:
    """Compile the kernels of environments with some observations, or load them."""
    config = EnvironmentConfig(observations=tuple(observations))
    create_vector_environment(config, autoreset_mode="SameStep").close()
    env = create_vector_environment(config)
    env.reset(seed=0)
    env.step(np.zeros(1, dtype=np.int64))
    env.gather([0])
    env.set_state(0, env.get_state(0))
    env.close()
