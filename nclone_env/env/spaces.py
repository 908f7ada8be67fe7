"""Gymnasium spaces, derived from the table of observations."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium

from nclone_env.obs.spec import ObservationSpec


def observation_space(specs: Sequence[ObservationSpec]) -> gymnasium.spaces.Dict:
    """Return the single observation space: a Dict with one Box an observation."""
    return gymnasium.spaces.Dict(
        {spec.name: gymnasium.spaces.Box(spec.low, spec.high, spec.shape, spec.dtype.type) for spec in specs}
    )
