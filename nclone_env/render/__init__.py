"""Pictures: grey observations composed by kernels, colour pictures for people, a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.render.area import WORLD as WORLD
    from nclone_env.render.area import Area as Area
    from nclone_env.render.area import union as union
    from nclone_env.render.area import zoom_of as zoom_of
    from nclone_env.render.arrays import FACES_RIGHT as FACES_RIGHT
    from nclone_env.render.arrays import PictureArrays as PictureArrays
    from nclone_env.render.bar import BAD as BAD
    from nclone_env.render.bar import BRIGHT as BRIGHT
    from nclone_env.render.bar import DIM as DIM
    from nclone_env.render.bar import GOLD as GOLD
    from nclone_env.render.bar import GOOD as GOOD
    from nclone_env.render.bar import GROUND as GROUND
    from nclone_env.render.bar import Colour as Colour
    from nclone_env.render.bar import bar_height as bar_height
    from nclone_env.render.bar import write_bar as write_bar
    from nclone_env.render.beams import BEAM_COLOURS as BEAM_COLOURS
    from nclone_env.render.beams import BEAM_WIDTHS as BEAM_WIDTHS
    from nclone_env.render.compose import list_sprites as list_sprites
    from nclone_env.render.compose import write_global_view as write_global_view
    from nclone_env.render.compose import write_player_frame as write_player_frame
    from nclone_env.render.files import encoded as encoded
    from nclone_env.render.files import reduced as reduced
    from nclone_env.render.files import write_picture as write_picture
    from nclone_env.render.glyphs import all_glyphs as all_glyphs
    from nclone_env.render.overlay import draw_message as draw_message
    from nclone_env.render.overlay import draw_table as draw_table
    from nclone_env.render.overlay import with_path as with_path
    from nclone_env.render.picture import level_picture as level_picture
    from nclone_env.render.picture import used_area_of as used_area_of
    from nclone_env.render.picture import world_picture as world_picture
    from nclone_env.render.pictures import picture_arrays as picture_arrays
    from nclone_env.render.sprites import SHEET_COLUMNS as SHEET_COLUMNS
    from nclone_env.render.sprites import SPRITE as SPRITE
    from nclone_env.render.sprites import sprite_sheet as sprite_sheet
    from nclone_env.render.sprites import walls_picture as walls_picture
    from nclone_env.render.window import Window as Window
    from nclone_env.render.window import check_display as check_display

__all__, __getattr__, __dir__ = face(__name__)
