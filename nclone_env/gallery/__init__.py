"""Static web sites that show levels and replay recordings in the browser."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.gallery.entries import Entry, collect
    from nclone_env.gallery.site import LevelFiles, PlayedTrack, check_output, level_files, write_site

__getattr__, __dir__ = face(__name__)
