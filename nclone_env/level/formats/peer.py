"""Recordings of the package nclone: a map block followed by input bytes (numbers are little-endian).

====== ===== ==============================================================================================
offset size  content
====== ===== ==============================================================================================
0      4     format version, 1; older files lack it
4      4     length M of the map block
8      4     number of frames T
12     1     1 if the run reached the exit, else 0; older files lack it
13     M     map block (:mod:`nclone_env.level.formats.map_bytes`)
13 + M T     one input byte a frame: bit 0 jump, 1 right, 2 left
====== ===== ==============================================================================================

Older files have only the two lengths before the map block. They do not state how the run ended; that package saved runs
that reached the exit.
"""

import struct
from dataclasses import dataclass

import numpy as np

from nclone_env.errors import LevelFormatError
from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT
from nclone_env.level.formats.attract import SMALLEST_MAP, is_attract, read_inputs
from nclone_env.level.formats.map_bytes import read_map
from nclone_env.level.level import RawLevel

_HEAD, _OLDER_HEAD = struct.Struct("<3I?"), struct.Struct("<2I")
_VERSION = 1


@dataclass(frozen=True, eq=False)
class PeerFile:
    """A level and a recording made on it.

    Attributes:
        level: the level.
        inputs: (frames,) uint8, read-only; one input byte 0..7 a frame.
        won: whether the run reached the exit, None if the file does not state it.
    """

    level: RawLevel
    inputs: np.ndarray
    won: bool | None


def is_peer(data: bytes) -> bool:
    """Return whether the lengths at the beginning are those of a recording of this size, and of no attract file."""
    return _sizes(data) is not None and not is_attract(data)


def read_peer(data: bytes, source: str = "<bytes>") -> PeerFile:
    """Read a recording.

    Raises:
        LevelFormatError: if lengths, inputs or map block break the format.
    """
    sizes = _sizes(data)
    if sizes is None:
        raise LevelFormatError(source, "offset 0", "lengths of a map block and of inputs that make the file", "others")
    first, map_length, won = sizes
    last = first + map_length
    inputs = read_inputs(data, last, source, INPUT_JUMP | INPUT_RIGHT | INPUT_LEFT)
    return PeerFile(read_map(data[first:last], source), inputs, won)


def _sizes(data: bytes) -> tuple[int, int, bool | None] | None:
    """Return the place and length of the map block, and whether the run reached the exit; None for other data."""
    if len(data) < _HEAD.size + SMALLEST_MAP:
        return None
    version, map_length, frames, won = _HEAD.unpack_from(data)
    if version == _VERSION and map_length >= SMALLEST_MAP and _HEAD.size + map_length + frames == len(data):
        return _HEAD.size, map_length, won
    map_length, frames = _OLDER_HEAD.unpack_from(data)  # level files have lengths there too, the second one 0
    if map_length >= SMALLEST_MAP and frames and _OLDER_HEAD.size + map_length + frames == len(data):
        return _OLDER_HEAD.size, map_length, None
    return None
