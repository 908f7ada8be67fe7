"""The sources of the configured pictures; what draws them is only imported for those."""

import numpy as np

from nclone_env.config import EnvironmentConfig
from nclone_env.level import LevelArrays, LevelSet
from nclone_env.render.arrays import NO_PICTURES, NO_RESOLUTION, PictureArrays


def picture_arrays(config: EnvironmentConfig, levels: LevelArrays, owner: LevelSet | None = None) -> PictureArrays:
    """Return the sources of the configured pictures; empty arrays for pictures that are not configured.

    OpenCV is imported only if a picture is configured. The level set ``owner`` caches the layers for all environments
    and processes; without one nothing is cached.
    """
    has_frame, has_view = ("player_frame" in config.observations, "global_view" in config.observations)
    if not has_frame and not has_view:
        return NO_PICTURES
    from nclone_env.render.raster import all_glyphs, frame_resolution, static_layers, view_resolution

    def draw(scale: tuple[float, float], shape: tuple[int, int]) -> np.ndarray:
        """Return the layers at a scale, drawn once for all processes."""
        if owner is None:
            return static_layers(levels, scale, shape)
        name = f"layers-{shape[1]}x{shape[0]}-{scale[0]!r}x{scale[1]!r}"
        layout = {"layers": np.dtype(np.uint8)}
        return owner.derived(name, layout, lambda: {"layers": static_layers(levels, scale, shape)})["layers"]

    return PictureArrays(
        all_glyphs(),
        frame_resolution(config.render, draw) if has_frame else NO_RESOLUTION,
        view_resolution(config.render, draw) if has_view else NO_RESOLUTION,
    )
