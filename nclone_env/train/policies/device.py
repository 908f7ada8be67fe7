"""Where a run computes its policy, and the transfers between host and device."""

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import ConfigError
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.network import PICTURES
from nclone_env.train.ranks import Ranks


def learning_device(config: TrainConfig, ranks: Ranks) -> torch.device | None:
    """Return the device of a run's policy, None for the processor and the threads of the run.

    ``auto`` takes a GPU for pictures only: other policies cost less on the processor than the launches of its kernels.
    """
    if config.device == "cpu" or (config.device == "auto" and config.recurrent_size):
        return None
    if config.recurrent_size:
        raise ConfigError(
            f"device: expected cpu with recurrent_size {config.recurrent_size}, got {config.device}; "
            "policies with memory learn on the processor: use --device cpu"
        )
    usable = torch.cuda.is_available()
    has_pictures = any(name in PICTURES for name in config.environment.observations)
    if config.device == "auto" and (not has_pictures or ranks.count > 1 or not usable):
        return None
    if not usable:
        build = f"is built for CUDA {torch.version.cuda} but finds no GPU" if torch.version.cuda else "has no CUDA"
        raise ConfigError(
            f"device: expected a GPU for cuda, but PyTorch {torch.__version__} {build}; "
            "use --device cpu, or install a CUDA build of PyTorch and NVIDIA's driver"
        )
    if ranks.count > 1:
        raise ConfigError(
            f"device: expected cpu with several ranks, got cuda with {ranks.count}; "
            "ranks add up their gradients in host memory: use --device cpu, or one process"
        )
    return torch.device("cuda", torch.cuda.current_device())


def is_pinned(device: torch.device | None) -> bool:
    """Return whether host memory should be pinned: only then do copies to the device not wait."""
    return device is not None and device.type == "cuda"


def host_zeros(shape: tuple[int, ...], dtype: np.dtype | type, pinned: bool) -> np.ndarray:
    """Return a zeroed array in host memory, page-locked if ``pinned``; PyTorch rounds such memory up to powers of 2."""
    array = np.zeros(shape, dtype)
    return torch.from_numpy(array).pin_memory().numpy() if pinned and array.size else array


def send(source: np.ndarray, target: Tensor) -> None:
    """Begin to copy an array to a tensor on a device.

    This returns at once if the host memory is pinned; it is not to be overwritten before the next :func:`fetch`, which
    waits for everything that the device was given before. Nothing else in training waits for the device.
    """
    target.copy_(torch.from_numpy(source), non_blocking=True)


def fetch(source: Tensor, target: np.ndarray) -> None:
    """Copy a tensor on a device to an array, and wait for it."""
    torch.from_numpy(target).copy_(source)
