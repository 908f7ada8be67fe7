"""Policies that ship with the package, by name: each a checkpoint without what only training needs, and a card."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from nclone_env.errors import CheckpointError, ConfigError, did_you_mean, shortened
from nclone_env.train.runs.folder import checkpoint_file

FOLDER = Path(__file__).parents[2] / "policies"
_WEIGHTS = ".pt"


def bundled_names() -> tuple[str, ...]:
    """Return the names of the policies that ship with the package, in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{_WEIGHTS}")))


def policy_file(path: str | Path) -> Path:
    """Return the checkpoint that is meant by a file, the folder of a run, or the name of a bundled policy.

    A checkpoint of the user has precedence over a bundled policy of the same name.

    Raises:
        CheckpointError: if there is no such file or policy.
    """
    try:
        return checkpoint_file(path)
    except CheckpointError as error:
        name, known = str(path), bundled_names()
        if name in known:
            return FOLDER / f"{name}{_WEIGHTS}"
        hint = did_you_mean(name, known)
        raise CheckpointError(f"{error}, or name a bundled policy: {', '.join(known)}{hint}") from error


def is_bundled(file: Path) -> bool:
    """Return whether a checkpoint is one of a bundled policy."""
    return file.parent == FOLDER


def policy_card(name: str) -> dict[str, Any]:
    """Return what is known of a bundled policy: how it was made, and its scores.

    Raises:
        ConfigError: if there is no such policy.
    """
    known = bundled_names()
    if name not in known:
        raise ConfigError(
            f"policy: expected one of {', '.join(known)}, got {shortened(name)}{did_you_mean(name, known)}"
        )
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
