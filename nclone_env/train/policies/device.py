"""A policy on a device beside its environments: the choice of the device, random numbers, and what the host waits for.

On a device nothing is read between the beginning of a rollout and the end of its update: an operation whose result the
host needs would wait for all those before it. So random numbers are computed there, and work that repeats itself is
recorded once as a CUDA graph. Everything also runs on the processor, as the tests do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from nclone_env.errors import ConfigError, shortened
from nclone_env.memory import MemoryNode
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.acting import policy_outputs
from nclone_env.train.policies.network import NO_STATES, PICTURES, ActorCritic, FlatParameters
from nclone_env.train.policies.torch_network import masked, on_vector
from nclone_env.train.ranks import Ranks

if TYPE_CHECKING:
    from nclone_env.env import Device


def learning_device(config: TrainConfig, ranks: Ranks) -> Device | None:
    """Return the device of a run's environments and policy, None for the processor and the threads of the run.

    ``auto`` takes a GPU for pictures only: other policies cost less on the processor, unless environments are many.
    """
    is_other = config.recurrent_size or config.learner != "ppo"
    if config.device == "cpu" or (config.device == "auto" and is_other):
        return None
    if config.recurrent_size:
        raise ConfigError(
            f"device: expected cpu with recurrent_size {config.recurrent_size}, got {config.device}; "
            "policies with memory learn on the processor: use --device cpu"
        )
    if config.learner != "ppo":
        raise ConfigError(
            f"device: expected cpu with learner {shortened(config.learner)}, got {config.device}; "
            "learners other than ppo read rollouts in host memory: use --device cpu"
        )
    from nclone_env.env import NOT_ON_DEVICES, device_of  # the code for GPUs

    usable, seen = torch.cuda.is_available(), config.environment.observations
    is_slower = not any(name in PICTURES for name in seen) or any(name in NOT_ON_DEVICES for name in seen)
    has_enough = ranks.local_count <= torch.cuda.device_count()
    if config.device == "auto" and (is_slower or not (usable and has_enough)):
        return None
    if not usable:
        build = f"is built for CUDA {torch.version.cuda} but finds no GPU" if torch.version.cuda else "has no CUDA"
        raise ConfigError(
            f"device: expected a GPU for cuda, but PyTorch {torch.__version__} {build}; "
            "use --device cpu, or install a CUDA build of PyTorch and NVIDIA's driver"
        )
    if not has_enough:
        raise ConfigError(
            f"device: expected a GPU for each of the {ranks.local_count} ranks of this machine, "
            f"got {torch.cuda.device_count()}; start as many, or use --device cpu"
        )
    if ranks.count > 1:
        torch.cuda.set_device(ranks.local_number)
    return device_of(f"cuda:{torch.cuda.current_device()}")


class DeviceNetwork:
    """A policy on a device; the parameters in host memory are a copy that each update brings up to date.

    Checkpoints, cloning and resuming read and write those; ``load`` takes them over. ``vector``, (p,) float32, are the
    parameters on the device, ``module`` is the policy on them.
    """

    def __init__(self, policy: ActorCritic, parameters: FlatParameters, place: torch.device):
        self._policy, self._parameters = policy, parameters
        self.vector = torch.zeros(len(parameters.vector), dtype=torch.float32, device=place)
        self.module = on_vector(policy, self.vector)
        self.load()

    def load(self) -> None:
        """Take over the parameters in host memory, which were changed there."""
        send(self._parameters.vector, self.vector)

    def outputs(
        self, seat: int, observations: Mapping[str, np.ndarray], states: np.ndarray = NO_STATES
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return logits (n, a) and values (n,) for n observations in host memory, by the parameters there."""
        return policy_outputs(self._policy, observations, states)

    def memory(self) -> MemoryNode:
        """Return the bytes of the parameters; activations come on top."""
        return MemoryNode("network on the device", self.vector.nbytes, shared=True)


class Repeated:
    """Work on tensors that stay where they are, for which the host does not wait.

    On a GPU the second call records it as a CUDA graph, which replays hundreds of launches as one. The first has done
    everything that cannot be recorded, on the same stream: libraries have allocated their memory by then.
    """

    def __init__(self, work: Callable[[], None], place: torch.device):
        self._work, self._place = work, place
        self._stream: torch.cuda.Stream | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Do the work, or let the device do it."""
        if self._place.type != "cuda":
            self._work()
            return
        with torch.cuda.device(self._place):
            if self._stream is None:
                self._stream = torch.cuda.Stream()
                self._work_on(self._stream)
                return
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
                    self._work()
            self._graph.replay()

    def _work_on(self, stream: torch.cuda.Stream) -> None:
        """Do the work on another stream than that of everything else, between what it was given before and after."""
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._work()
        torch.cuda.current_stream().wait_stream(stream)


def host_zeros(shape: tuple[int, ...], dtype: np.dtype | type, place: torch.device) -> np.ndarray:
    """Return a zeroed array in host memory, page-locked for a GPU: only then do copies to it not wait.

    PyTorch rounds such memory up to powers of 2.
    """
    array = np.zeros(shape, dtype)
    return torch.from_numpy(array).pin_memory().numpy() if place.type == "cuda" and array.size else array


def send(source: np.ndarray, target: Tensor) -> None:
    """Begin to copy an array to a tensor on a device.

    This returns at once if the host memory is pinned; it is not to be overwritten before the next :func:`fetch`, which
    waits for everything that the device was given before. Nothing else in training waits for the device.
    """
    target.copy_(torch.from_numpy(source), non_blocking=True)


def fetch(source: Tensor, target: np.ndarray) -> None:
    """Copy a tensor on a device to an array, and wait for it."""
    torch.from_numpy(target).copy_(source)


def fetch_later(source: Tensor, target: np.ndarray) -> None:
    """Begin to copy a tensor on a device to an array: it is there once the host has waited for what is begun later."""
    torch.from_numpy(target).copy_(source, non_blocking=True)


def on_host(array: np.ndarray | Tensor) -> np.ndarray:
    """Return an array, or a copy of a tensor that is on a device."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def hashed(number: Tensor) -> Tensor:
    """Return ``sim.splitmix`` of each number, int64 for uint64: its additions and products wrap alike."""
    mixed = number + _GOLDEN
    mixed = (mixed ^ _shifted(mixed, 30)) * _MIX_1
    mixed = (mixed ^ _shifted(mixed, 27)) * _MIX_2
    return mixed ^ _shifted(mixed, 31)


def uniform_numbers(seed: int, environments: Tensor, steps: Tensor) -> Tensor:
    """Return the numbers (t, n) float32 of ``sampling.uniform`` for t steps and n environments, int64 each."""
    streams = hashed(torch.full_like(environments, seed)) ^ environments
    bits = hashed(hashed(hashed(streams) ^ steps[:, None]))
    return _shifted(bits, 40).float() * 2.0**-24


def sampled(logits: Tensor, mask: Tensor | None, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Return actions (n,) int64 and their log probabilities, float32, as ``sampling.sample_actions`` draws them.

    Args:
        logits: (n, a) float32.
        mask: (n, a), 0 for each action that is not allowed; None: all are.
        uniform: (n,) float32 from 0 to 1, a random number for each row.
    """
    log_probs = torch.log_softmax(masked(logits, mask), dim=1)
    probabilities = log_probs.exp()
    cumulative = probabilities.cumsum(1)
    # Rounding may leave the sum below the number: then the last action that is possible.
    possible = torch.where(probabilities > 0, torch.arange(logits.shape[1], device=logits.device), -1).amax(1)
    actions = torch.minimum((cumulative <= uniform[:, None]).sum(1), possible)
    return actions, log_probs.gather(1, actions[:, None]).squeeze(1)


def _shifted(number: Tensor, bits: int) -> Tensor:
    """Return the number shifted to the right, with zeros on the left."""
    return (number >> bits) & ((1 << (64 - bits)) - 1)


_GOLDEN, _MIX_1, _MIX_2 = (
    number - (1 << 64) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
