"""What a run asks of an algorithm, and what an algorithm is made from."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch

from nclone_env.env import Workers
from nclone_env.memory import MemoryNode
from nclone_env.train.collect.device import DeviceRollout
from nclone_env.train.collect.rollout import RolloutStorage
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.device import DeviceNetwork
from nclone_env.train.policies.mlp import Network
from nclone_env.train.policies.network import ActorCritic, FlatParameters
from nclone_env.train.ranks import Ranks


class UpdateStatistics(NamedTuple):
    """Means over the steps of one update."""

    policy_loss: float
    """Clipped surrogate loss."""
    value_loss: float
    """Half the mean squared error of the values."""
    entropy: float
    """Entropy of the policy, in nats."""
    approx_kl: float
    """Estimate of the KL divergence from the policy that collected the rollout."""
    clip_fraction: float
    """Fraction of probability ratios outside the clipping range."""
    clone_kl: float
    """KL divergence of the policy from the clone of a warm start, KL(clone || policy); 0 where it is not used."""
    grad_norm: float
    """Norm of the gradient before clipping, mean over the minibatches."""


class Learner(Protocol):
    """An algorithm: it updates the parameters of a policy on rollouts."""

    def update(self, number: int, learning_rate: float, entropy_coef: float, reference_coef: float) -> UpdateStatistics:
        """Update the parameters on the stored rollout, whose advantages and returns have been computed.

        Args:
            number: number of the update, from 1; random numbers follow from it and the seed of the run.
            reference_coef: coefficient of the KL divergence from the reference probabilities in the storage.
        """

    def warm_up(self) -> None:
        """Prepare for updates as fast as all others, and leave the parameters as they are."""

    def memory(self) -> MemoryNode:
        """Return the bytes of optimiser and scratch."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps besides the parameters: arrays and plain values by name."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from such a state, with tensors in the place of arrays."""


class LearnerParts(NamedTuple):
    """What a learner is made from."""

    config: TrainConfig
    policy: ActorCritic
    """The network to train."""
    parameters: FlatParameters
    """The vector of its parameters."""
    storage: RolloutStorage | DeviceRollout
    """The rollout to read; on a device its fields are tensors."""
    network: Network | DeviceNetwork
    """What acts: computes outputs and gradients by the threads, or has its ``module`` on the device."""
    workers: Workers
    """The threads."""
    part_size: int
    """Largest number of steps of a part of a minibatch that a thread differentiates."""
    ranks: Ranks
    """The processes that train together."""
    device: torch.device | None
    """Device of environments, rollout and policy; None: the processor."""
