"""The ids of the environment, and their registration with Gymnasium.

The package registers them when it is imported, by the names of the classes, so that this module must import neither.
"""

from typing import Any

import gymnasium

ENVIRONMENT_ID = "nclone/NPlusPlus-v0"

_STATE = {"observations": "game_state", "dict_observations": False}
_FRAMES = {"player_frame_size": 84, "player_frame_scale": 4.0}
_PIXELS = {"observations": "player_frame", "dict_observations": False, "observation": {"frame_stack": 4}}

REGISTERED: dict[str, dict[str, Any]] = {
    ENVIRONMENT_ID: {},
    "nclone/NPlusPlus-State-v0": _STATE,
    "nclone/NPlusPlus-Pixels-v0": {**_PIXELS, "render": _FRAMES},
    "nclone/NPlusPlus-FirstSteps-v0": {**_STATE, "levels": "first-steps", "max_frames": 1200},
    "nclone/NPlusPlus-Jumps-v0": {**_STATE, "levels": "jumps", "max_frames": 1200},
    "nclone/NPlusPlus-Hazards-v0": {**_STATE, "levels": "hazards", "max_frames": 1200},
    **{f"nclone/NPlusPlus-Motifs{n}-v0": {**_STATE, "levels": f"motifs-{n}", "max_frames": 2400} for n in range(1, 10)},
    "nclone/NPlusPlus-Motifs10-v0": {**_STATE, "levels": "motifs-10", "max_frames": 3600},
}
"""The registered ids, and the fields of the configuration in which each differs from the defaults."""


def register() -> None:
    """Register the ids of ``REGISTERED`` for ``gymnasium.make`` and ``gymnasium.make_vec``."""
    for name, fields in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="nclone_env.env.single:NPlusPlusEnv",
                vector_entry_point="nclone_env.env.vector:create_vector_environment",
                kwargs=fields,
            )
