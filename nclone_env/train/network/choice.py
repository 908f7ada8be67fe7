"""The choice of the network: by hand where it covers the policy, through torch otherwise."""

from __future__ import annotations

from nclone_env.train.network.autograd import Autograd
from nclone_env.train.network.mlp import MLP, covers
from nclone_env.train.network.parameters import FlatParameters
from nclone_env.train.network.protocols import Network, StoredSteps
from nclone_env.train.policy import ActorCritic


def make_network(
    policy: ActorCritic, parameters: FlatParameters, storage: StoredSteps, seats: int, most_rows: int
) -> Network:
    """Return the network of a policy on stored steps; arguments as of ``train.network.mlp.MLP``."""
    dtypes = {name: array.dtype for name, array in storage.flat_observations.items()}
    kind = MLP if covers(dtypes, storage.frame_stack) else Autograd
    return kind(policy, parameters, storage, seats, most_rows)
