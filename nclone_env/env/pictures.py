"""The shared arrays behind the configured picture observations."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nclone_env.level.library import LevelSet
from nclone_env.render.arrays import GLOBAL_HEIGHT, GLOBAL_WIDTH, NO_LAYERS, NO_PICTURES, PictureArrays


def picture_arrays(observations: Collection[str], levels: LevelSet) -> PictureArrays:
    """Return what the configured pictures are composed from; empty arrays if none is configured.

    OpenCV is imported only if a picture is.
    """
    if "player_frame" not in observations and "global_view" not in observations:
        return NO_PICTURES
    from nclone_env.render.glyphs import glyphs

    return PictureArrays(glyphs(), _static_layers(levels) if "global_view" in observations else NO_LAYERS)


def _static_layers(levels: LevelSet) -> np.ndarray:
    """Return the layers of the level set, drawn once for all processes."""
    from nclone_env.render.glyphs import static_layers

    name = f"layers-{GLOBAL_WIDTH}x{GLOBAL_HEIGHT}"
    layout = {"layers": np.dtype(np.uint8)}
    return levels.derived(name, layout, lambda: {"layers": static_layers(levels.arrays)})["layers"]
