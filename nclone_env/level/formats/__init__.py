"""Level file formats, one a file: each module's text is the format."""

from typing import TYPE_CHECKING

from nclone_env._faces import face

if TYPE_CHECKING:  # for other rooms, each imported on first use
    from nclone_env.level.formats.attract import AttractFile, is_attract, read_attract
    from nclone_env.level.formats.header import GAME_MODE_NAMES
    from nclone_env.level.formats.map_bytes import RECORD_SIZE, RECORDS_OFFSET, read_map, write_map
    from nclone_env.level.formats.pack_text import write_pack
    from nclone_env.level.formats.peer import PeerFile, is_peer, read_peer
    from nclone_env.level.formats.reader import MAP_SUFFIX, TEXT_SUFFIX, appearance, read_bytes, write_index
    from nclone_env.level.formats.text import format_text

__all__, __getattr__, __dir__ = face(__name__)
