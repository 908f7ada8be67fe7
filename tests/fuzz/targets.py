"""All targets."""

from __future__ import annotations

from . import (
    arguments,
    calls,
    checkpoints,
    commands,
    environments,
    galleries,
    levels,
    recordings,
    states,
    submissions,
)

_MODULES = (
    levels,
    environments,
    recordings,
    states,
    checkpoints,
    arguments,
    commands,
    calls,
    submissions,
    galleries,
    arguments,
    commands,
    calls,
)
TARGETS = {target.name: target for module in _MODULES for target in module.TARGETS}
