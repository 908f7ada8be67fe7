"""Pictures: grey observations composed by kernels, colour pictures for people, a window."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.render.arrays import FACES_RIGHT, PictureArrays
    from nclone_env.render.colour import Theme
    from nclone_env.render.compose import BEAM_COLOURS, BEAM_WIDTHS, list_sprites, write_global_view, write_player_frame
    from nclone_env.render.observed import picture_arrays
    from nclone_env.render.picture import (
        SHEET_COLUMNS,
        SPRITE,
        WORLD,
        Area,
        encoded,
        level_picture,
        reduced,
        sprite_sheet,
        union,
        used_area_of,
        walls_picture,
        with_path,
        world_picture,
        write_picture,
        zoom_of,
    )
    from nclone_env.render.raster import all_glyphs
    from nclone_env.render.text import (
        BAD,
        BRIGHT,
        DIM,
        GOLD,
        GOOD,
        GROUND,
        Colour,
        bar_height,
        draw_message,
        draw_table,
        write_bar,
    )
    from nclone_env.render.window import Window, check_display

__all__, __getattr__, __dir__ = face(__name__)
