"""Files of policies: those of runs, those that ship with the package by name, and ``hub:USER/NAME`` on Hugging Face.

A policy that ships with the package is a checkpoint without what only training needs, and a card.
"""

import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from nclone_env._files import UNREADABLE, check_directory, expanded, inner_folders, open_regular, there
from nclone_env.errors import (
    CheckpointError,
    ConfigError,
    check_choice,
    cut,
    did_you_mean,
    optional_module,
    plain,
    shortened,
)
from nclone_env.level import appearance
from nclone_env.train.config import TrainConfig

LATEST = "checkpoint.pt"
"""The latest checkpoint in the folder of a run, and that in a repository of the hub."""
BUNDLED = Path(__file__).parents[2] / "policies"
_WEIGHTS, _HUB = ".pt", "hub:"
_KINDS = {"submission.json": "submission", "_stable_baselines3_version": "sb3"}
"""Member that files of another kind have."""
_OTHERS = {
    "submission": "a submission of the benchmark; 'nclone-env watch' and 'gallery --recordings' show its episodes",
    "sb3": "a model of Stable-Baselines3; load it there, or let 'nclone-env watch' show how it plays",
}
"""Files of other kinds, and what to do with them."""
_MOST_DIRECTORY = 1 << 20  # bytes of the list of members: thousands
_MOST_START = 1 << 10
_ZIP = b"PK"
"""Begins every checkpoint."""
_CARD = """---
library_name: nclone_env
tags: [reinforcement-learning]
---

# {name}

A policy for [nclone_env](https://github.com/nclone-env/nclone-env), the platformer N++.
Trained on {levels}; {steps:,} steps, seed {seed}. Observes {observations}.
`nclone-env watch {name}` shows how it plays.
"""


def other_kind(path: str | Path) -> str:
    """Return ``submission`` or ``sb3`` for a zip file of the benchmark or of Stable-Baselines3, empty for any other."""
    with suppress(*UNREADABLE), open_regular(path) as file:
        check_directory(file, _MOST_DIRECTORY)
        with zipfile.ZipFile(file) as archive:
            return next((kind for member, kind in _KINDS.items() if member in archive.namelist()), "")
    return ""


def check_kind(path: Path) -> None:
    """Reject a file of another kind, also where the libraries are missing that read checkpoints."""
    kind = other_kind(path)
    start = b"\0"
    with suppress(OSError), open_regular(path) as file:
        start = file.read(_MOST_START)
    if kind or (start and 0 not in start and not start.startswith(_ZIP)):
        got = _OTHERS[kind] if kind else f"{appearance(start)}; pass the folder of a run or a checkpoint in it"
        raise CheckpointError(f"{plain(path)}: expected a checkpoint of nclone_env, got {got}")


def checkpoint_file(path: str | Path) -> Path:
    """Return the checkpoint that is meant by a file or by the folder of a run."""
    path = expanded(path)
    file = path / LATEST if there(path.is_dir) else path
    if not there(file.exists):
        inner = sorted(path.glob(f"*/{LATEST}")) if there(path.is_dir) else []
        hint = f", such as {inner[0].parent}" if inner else inner_folders(path)
        hint = f"; to begin a new run with this policy pass --init {path}" if is_named(path) else hint
        raise CheckpointError(
            f"{cut(file)}: expected a checkpoint file, but the file does not exist; "
            f"pass the folder of a run or a checkpoint in it{hint}"
        )
    return file


def bundled_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the package, in alphabetical order."""
    return tuple(sorted(path.stem for path in BUNDLED.glob(f"*{_WEIGHTS}")))


def policy_file(path: str | Path) -> Path:
    """Return the checkpoint that is meant by a file, the folder of a run, or the name of a bundled policy or ``hub:``.

    A checkpoint of the user has precedence over a bundled policy of the same name.
    """
    if str(path).startswith(_HUB):
        return _hub_file(str(path))
    try:
        file = checkpoint_file(path)
    except CheckpointError as error:
        name, known = str(path), bundled_names()
        if name in known:
            return BUNDLED / f"{name}{_WEIGHTS}"
        hint = did_you_mean(name, known)
        raise CheckpointError(f"{error}; or name a bundled policy: {', '.join(known)}{hint}") from error
    check_kind(file)
    return file


def is_named(path: str | Path) -> bool:
    """Return whether a policy is named, a bundled one or one on the hub, rather than a file of the user."""
    return str(path).startswith(_HUB) or (str(path) in bundled_names() and not there(Path(path).exists))


def policy_card(name: str) -> dict[str, Any]:
    """Return what is known of a bundled policy: how it was made, and its scores."""
    check_choice("policy", name, bundled_names())
    return tomllib.loads((BUNDLED / f"{name}.toml").read_text(encoding="utf-8"))


def _hub_file(name: str) -> Path:
    """Return the checkpoint of ``hub:USER/NAME``; it is downloaded unless it is there already."""
    hub, repository = _hub(name)
    try:
        return Path(hub.hf_hub_download(repository, LATEST)).resolve()  # a link to a file by its digest
    except (hub.errors.HfHubHTTPError, OSError, ValueError) as error:
        raise CheckpointError(f"{name}: expected a policy on the hub, got: {shortened(str(error), 200)}") from error


def push_policy(file: Path, config: TrainConfig, timesteps: int, name: str) -> str:
    """Put the checkpoint of a run, after so many timesteps, on the hub with a card; return its address."""
    hub, repository = _hub(name)
    card = _CARD.format(
        name=name,
        steps=timesteps,
        seed=config.seed,
        levels=", ".join(map(str, config.environment.levels)),
        observations=", ".join(config.environment.observations),
    )
    try:
        hub.create_repo(repository, exist_ok=True)
        hub.upload_file(path_or_fileobj=card.encode(), path_in_repo="README.md", repo_id=repository)
        hub.upload_file(path_or_fileobj=str(file), path_in_repo=LATEST, repo_id=repository)
    except (hub.errors.HfHubHTTPError, hub.errors.LocalTokenNotFoundError, ValueError) as error:
        raise ConfigError(f"name: expected a repository to write to, got: {shortened(str(error), 200)}") from error
    return f"https://huggingface.co/{repository}"


def _hub(name: str) -> tuple[Any, str]:
    """Return the library, and the repository USER/NAME."""
    parts = name.removeprefix(_HUB).split("/")
    if not name.startswith(_HUB) or len(parts) != 2 or not all(parts):
        raise ConfigError(f"name: expected hub:USER/NAME, got {shortened(name)}")
    return optional_module("huggingface_hub", "hub"), "/".join(parts)
