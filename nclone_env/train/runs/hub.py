"""Policies on the hub of Hugging Face: ``hub:USER/NAME`` stands for one wherever a policy is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nclone_env._optional import optional_module
from nclone_env.errors import CheckpointError, ConfigError, shortened

if TYPE_CHECKING:
    from nclone_env.train.runs.policy import Policy

HUB = "hub:"
_FILE = "checkpoint.pt"
_CARD = """---
library_name: nclone_env
tags: [reinforcement-learning]
---

# {name}

A policy for [nclone_env](https://github.com/nclone-env/nclone-env), the platformer N++.
Trained on {levels}; {steps:,} steps, seed {seed}. Observes {observations}.
`nclone-env watch {name}` shows how it plays.
"""


def hub_file(name: str) -> Path:
    """Return the checkpoint of ``hub:USER/NAME``; it is downloaded unless it is there already.

    Raises:
        CheckpointError: if there is no such policy, or the hub cannot be reached.
    """
    hub, repository = _hub(name)
    try:
        return Path(hub.hf_hub_download(repository, _FILE)).resolve()  # a link to a file by its digest
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        raise CheckpointError(f"{name}: expected a policy on the hub, got: {shortened(str(error), 200)}") from error


def push_policy(file: Path, policy: Policy, name: str) -> str:
    """Put a policy, and the checkpoint that it was loaded from, on the hub with a card; return its address.

    Raises:
        ConfigError: if the hub refuses.
    """
    hub, repository = _hub(name)
    environment = policy.config.environment
    card = _CARD.format(
        name=name,
        steps=policy.checkpoint.counters.get("timesteps", 0),
        seed=policy.config.seed,
        levels=", ".join(map(str, environment.levels)),
        observations=", ".join(environment.observations),
    )
    try:
        hub.create_repo(repository, exist_ok=True)
        hub.upload_file(path_or_fileobj=card.encode(), path_in_repo="README.md", repo_id=repository)
        hub.upload_file(path_or_fileobj=str(file), path_in_repo=_FILE, repo_id=repository)
    except (hub.errors.HfHubHTTPError, hub.errors.LocalTokenNotFoundError, ValueError) as error:
        raise ConfigError(f"name: expected a repository to write to, got: {shortened(str(error), 200)}") from error
    return f"https://huggingface.co/{repository}"


def _hub(name: str) -> tuple[Any, str]:
    """Return the library, and the repository USER/NAME."""
    parts = name.removeprefix(HUB).split("/")
    if not name.startswith(HUB) or len(parts) != 2 or not all(parts):
        raise ConfigError(f"name: expected hub:USER/NAME, got {shortened(name)}")
    return optional_module("huggingface_hub", "hub"), "/".join(parts)
