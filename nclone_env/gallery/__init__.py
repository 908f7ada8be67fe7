"""Static web sites that show levels and replay recordings in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.gallery.entries import Entry as Entry
    from nclone_env.gallery.entries import collect as collect
    from nclone_env.gallery.site import LevelFiles as LevelFiles
    from nclone_env.gallery.site import check_output as check_output
    from nclone_env.gallery.site import level_files as level_files
    from nclone_env.gallery.site import write_site as write_site
    from nclone_env.gallery.tracks import Tracks as Tracks

__all__, __getattr__, __dir__ = face(__name__)
