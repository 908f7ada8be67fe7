"""Level file formats, one a file: each module's text is the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.level.formats.attract import AttractFile as AttractFile
    from nclone_env.level.formats.attract import is_attract as is_attract
    from nclone_env.level.formats.attract import read_attract as read_attract
    from nclone_env.level.formats.header import GAME_MODE_NAMES as GAME_MODE_NAMES
    from nclone_env.level.formats.map_bytes import RECORD_SIZE as RECORD_SIZE
    from nclone_env.level.formats.map_bytes import RECORDS_OFFSET as RECORDS_OFFSET
    from nclone_env.level.formats.map_bytes import read_map as read_map
    from nclone_env.level.formats.map_bytes import write_map as write_map
    from nclone_env.level.formats.pack_text import write_pack as write_pack
    from nclone_env.level.formats.peer import PeerFile as PeerFile
    from nclone_env.level.formats.peer import is_peer as is_peer
    from nclone_env.level.formats.peer import read_peer as read_peer
    from nclone_env.level.formats.reader import MAP_SUFFIX as MAP_SUFFIX
    from nclone_env.level.formats.reader import TEXT_SUFFIX as TEXT_SUFFIX
    from nclone_env.level.formats.reader import appearance as appearance
    from nclone_env.level.formats.reader import read_bytes as read_bytes
    from nclone_env.level.formats.reader import write_index as write_index
    from nclone_env.level.formats.text import format_text as format_text

__all__, __getattr__, __dir__ = face(__name__)
