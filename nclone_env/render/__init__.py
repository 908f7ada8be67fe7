"""Pictures: grey observations composed by kernels, colour pictures for people, a window."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.render.arrays import PictureArrays
    from nclone_env.render.compose import write_global_view, write_player_frame
    from nclone_env.render.observed import picture_arrays
    from nclone_env.render.picture import (
        PALETTES,
        WORLD,
        Area,
        SpriteSheet,
        encoded,
        level_picture,
        sprite_sheet,
        union,
        used_area_of,
        world_picture,
        zoom_of,
    )
    from nclone_env.render.raster import all_glyphs, numbered
    from nclone_env.render.shapes import tile_outline
    from nclone_env.render.window import Window

__getattr__, __dir__ = face(__name__)
