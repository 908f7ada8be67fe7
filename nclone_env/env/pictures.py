"""The shared arrays behind the configured picture observations."""

from __future__ import annotations

from collections.abc import Collection

from nclone_env.level.library import LevelArrays
from nclone_env.render.arrays import NO_LAYERS, NO_PICTURES, PictureArrays


def picture_arrays(observations: Collection[str], levels: LevelArrays) -> PictureArrays:
    """Return what the configured pictures are composed from; empty arrays if none is configured.

    OpenCV is imported only if a picture is.
    """
    if "player_frame" not in observations and "global_view" not in observations:
        return NO_PICTURES
    from nclone_env.render.glyphs import glyphs, static_layers

    layers = static_layers(levels) if "global_view" in observations else NO_LAYERS
    return PictureArrays(glyphs(), layers)
