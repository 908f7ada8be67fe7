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
    library,
    plans,
    recordings,
    states,
)

_MODULES = (
    levels,
    environments,
    recordings,
    states,
    checkpoints,
    library,
    plans,
    galleries,
    arguments,
    commands,
    calls,
)
TARGETS = {target.name: target for module in _MODULES for target in module.TARGETS}
