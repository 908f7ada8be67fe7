"""Checkpoints: archives with other members, pickles with other opcodes, and fields with other values."""

from __future__ import annotations

import io
import random
import tempfile
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

from nclone_env.errors import CheckpointError

from .accidents import VALUES, damaged, drawn
from .archives import with_other_members, with_other_values
from .target import SOURCE, Target


@lru_cache(maxsize=1)
def fields() -> dict[str, Any]:
    """Return the fields of a small checkpoint."""
    import dataclasses

    import torch

    from nclone_env.options import flat
    from nclone_env.train.config import TrainConfig
    from nclone_env.train.policies.checkpoint import Checkpoint
    from nclone_env.train.policies.network import ActorCritic
    from tests.train.runs import curve_of

    config = TrainConfig.of(hidden_size=8)
    checkpoint = Checkpoint(
        train_config=flat(config),
        observation_shapes={"game_state": [30]},
        policy=ActorCritic({"game_state": (30,)}, hidden_size=8).state_dict(),
        optimiser={"mean": torch.arange(3.0), "square": torch.ones(3), "count": 7},
        counters={"timesteps": 5, "updates": 1, "episodes": 2},
        episodes={"vector_steps": 5, "counts": torch.ones(2)},
        observations={"game_state": torch.full((1, 2, 30), 0.5)},
        environments={"snapshots": torch.arange(5, dtype=torch.uint8), "sizes": torch.tensor([2, 3])},
        curve=curve_of([{"timesteps": 5, "success_rate": 0.5, "steps_per_second": 9.0}]),
        held_out={},
        selection={},
        reference={},
    )
    return {item.name: getattr(checkpoint, item.name) for item in dataclasses.fields(checkpoint)[:-1]}


def saved(fields: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(fields, stream)
    return stream.getvalue()


@lru_cache(maxsize=1)
def checkpoints() -> list[bytes]:
    return [saved(fields())]


def checkpoint(rng: random.Random) -> bytes:
    share = rng.random()
    if share < 0.2:
        return damaged(rng, checkpoints()[0])
    if share < 0.5:
        return with_other_members(rng, checkpoints()[0])
    changed = dict(fields())
    if share < 0.7:
        name = rng.choice(("train_config", "observation_shapes", "policy"))
        changed[name] = with_other_values(rng, dict(changed[name]))
    else:
        changed = with_other_values(rng, changed)
    try:
        return saved(changed)
    except Exception:  # noqa: BLE001 - a value that no checkpoint can hold
        return saved({**fields(), "format": drawn(rng, VALUES[:20])})


def read(data: bytes) -> None:
    from nclone_env.train.policies.checkpoint import load_checkpoint, restore_config, restore_policy

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"{SOURCE}.pt"
        path.write_bytes(data)
        content = load_checkpoint(path)
        restore_policy(content)
        restore_config(content)


TARGETS = (Target("checkpoint", checkpoints, checkpoint, read, (CheckpointError,)),)
