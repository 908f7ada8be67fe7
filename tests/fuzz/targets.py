"""All targets."""

from __future__ import annotations

from . import checkpoints, levels, library, plans, recordings, states

TARGETS = {
    target.name: target
    for module in (levels, recordings, states, checkpoints, library, plans)
    for target in module.TARGETS
}
