"""Makes a wider network out of that of a policy, which begins by doing the same: for ``nclone-env train --init``.

The wider policy sees more squares of ``locals`` around those of the first, further observations, and has more hidden
units (Net2Net; Chen, Goodfellow and Shlens, 2016). The first policy has ``game_state`` and ``locals`` of three planes:

    python -m profiling.training.widened RUN wide.pt --locals-size 13 --max-entities 16 --hidden-size 128

A weight from something new to something old begins at zero, all others of the new units as in any new policy.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path

import torch
import tyro
from torch import Tensor

from nclone_env.obs import frame_specs
from nclone_env.train import load_policy
from nclone_env.train.policies.checkpoint import save_checkpoint
from nclone_env.train.policies.network import ActorCritic, make_policy


def widened(old: ActorCritic, new: ActorCritic) -> dict[str, Tensor]:
    """Return parameters of ``new`` with which its actor and critic compute what those of ``old`` do."""
    given, found = old.state_dict(), new.state_dict()
    inputs = torch.cat([columns(new)[name][: len(own)] for name, own in columns(old).items()])
    for name, value in given.items():
        target = found[name]
        if name.startswith("encoders.locals") and value.dim() == 2:
            *planes, before = old.observation_shapes["locals"]
            after = new.observation_shapes["locals"][-1]
            ring = (after - before) // 2
            grid = torch.zeros(len(value), *planes[:-1], after, after)
            grid[..., ring : ring + before, ring : ring + before] = value.reshape(-1, *planes, before)
            target[:] = grid.flatten(1)
        elif value.dim() == 2:
            places = inputs if value.shape[1] == len(inputs) else torch.arange(value.shape[1])
            target[: len(value)] = 0
            target[: len(value), places] = value
        else:
            target[: len(value)] = value
    return found


def columns(policy: ActorCritic) -> Mapping[str, Tensor]:
    """Return the columns of each input of the first hidden layers."""
    ends = itertools.accumulate(policy.input_widths.values())
    return {name: torch.arange(end - policy.input_widths[name], end) for name, end in zip(policy.input_widths, ends)}


def main(
    policy: tyro.conf.Positional[str],
    output: tyro.conf.Positional[Path],
    locals_size: int = 13,
    max_entities: int = 16,
    hidden_size: int = 128,
    seed: int = 0,
) -> None:
    """Write a checkpoint of the wider policy.

    Args:
        policy: run, checkpoint or name of the first policy.
        output: file to write.
        locals_size: side of ``locals`` in squares, at least that of the first policy.
        max_entities: rows of ``entity_states``, which the first policy does not see.
        hidden_size: units of each hidden layer, at least those of the first policy.
        seed: of the new weights.
    """
    first = load_policy(policy, levels=("first-steps",))
    config = first.config.replace(
        observations=(*first.config.environment.observations, "entity_states"),
        locals_size=locals_size,
        max_entities=max_entities,
        hidden_size=hidden_size,
    )
    shapes = {spec.name: spec.shape for spec in frame_specs(config.environment)}
    network = make_policy(config, dict(sorted(shapes.items())), torch.Generator().manual_seed(seed))
    changes = {"hidden_size": hidden_size, "locals_size": locals_size, "max_entities": max_entities}
    kept = dataclasses.replace(
        first.checkpoint,
        train_config={
            **first.checkpoint.train_config,
            **changes,
            "observations": config.environment.observations,
        },
        observation_shapes={name: list(shape) for name, shape in network.observation_shapes.items()},
        observations={},
        policy=widened(first.network, network),
    )
    save_checkpoint(output, kept)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
