"""Training with PPO; the only part of the package that imports torch (but not on import of this module)."""

from __future__ import annotations

from importlib.util import find_spec

from nclone_env.errors import MissingExtraError


def require_training_extra() -> None:
    """Check that the optional packages of the trainer are installed.

    Raises:
        MissingExtraError: if one is not; the message names the extra that brings it.
    """
    missing = [name for name in ("torch", "tensorboard", "matplotlib") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f'training needs {", ".join(missing)}, which is not installed; run: pip install "nclone-env[train]"'
        )
