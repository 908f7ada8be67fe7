"""The choice of the network: by hand where it covers the policy, through torch otherwise."""

from __future__ import annotations

import torch

from nclone_env.train.network.mlp import MLP, covers
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.policy import ActorCritic
from nclone_env.train.network.protocols import StoredSteps
from nclone_env.train.network.torch_network import TorchNetwork


def make_network(
    policy: ActorCritic,
    parameters: FlatParameters,
    storage: StoredSteps,
    seats: int,
    most_rows: int,
    device: torch.device | None = None,
    amp: bool = False,
) -> MLP | TorchNetwork:
    """Return the network of a policy on stored steps; arguments as of ``train.network.torch_network.TorchNetwork``."""
    dtypes = {name: array.dtype for name, array in storage.flat_observations.items()}
    if device is None and covers(dtypes, storage.frame_stack):
        return MLP(policy, parameters, storage, seats, most_rows)
    return TorchNetwork(policy, parameters, storage, seats, most_rows, device, amp)
