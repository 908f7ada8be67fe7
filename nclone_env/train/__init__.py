"""PPO training; the only subpackage that imports torch, and only in its modules.

The modules in this folder are public: ``docs/reference/training.md`` describes them. The folders hold their parts, in
the order of the data flow: ``levels`` → ``network`` → ``collect`` → ``learn`` → ``runs`` → ``reports``.
"""

from __future__ import annotations

from importlib.util import find_spec

from nclone_env._optional import installation
from nclone_env.errors import MissingExtraError


def require_training_extra() -> None:
    """Check that the optional dependencies of the trainer are installed.

    Raises:
        MissingExtraError: if one is missing; the message names the extra to install.
    """
    missing = [name for name in ("torch", "tensorboard", "matplotlib", "threadpoolctl") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"training requires {', '.join(missing)}; {installation('train')}")
