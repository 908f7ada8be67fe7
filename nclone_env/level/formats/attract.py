"""Files with a level and a recording made on it, by the game and by the package nclone (numbers are little-endian).

Attract files of the game are two lengths, a map block and a replay block: its head and one input byte a frame (physics
01, sections 14.3 and 14.4).

Recordings of nclone are a map block, then input bytes:

====== ===== ==============================================================================================
0      4     format version, 1; older files lack it
4      4     length M of the map block
8      4     number of frames T
12     1     1 if the run reached the exit, else 0; older files lack it
13     M     map block (:mod:`nclone_env.level.formats.map_bytes`)
13 + M T     one input byte a frame: bit 0 jump, 1 right, 2 left
====== ===== ==============================================================================================

Older ones have only the two lengths before the map block. They do not state how the run ended; nclone saved runs that
reached the exit.
"""

import struct
from dataclasses import dataclass

import numpy as np

from nclone_env.errors import LevelFormatError
from nclone_env.game import INPUT_JUMP, INPUT_LEFT, INPUT_RIGHT, INPUT_SUICIDE
from nclone_env.level.formats.map_bytes import RECORD_SIZE, RECORDS_OFFSET, read_map
from nclone_env.level.level import RawLevel

_LENGTHS = struct.Struct("<2I")
_PEER_HEAD = struct.Struct("<3I?")
_REPLAY_HEAD = struct.Struct("<B6IB4x")  # kind, length, version, frames, id, mode, unknown, mask
_BLOCK_LENGTH_OFFSET = 1
_VERSION = 1
_SOLO_MASK = 1
SMALLEST_MAP = RECORDS_OFFSET + RECORD_SIZE
_ALL_INPUTS = INPUT_JUMP | INPUT_RIGHT | INPUT_LEFT | INPUT_SUICIDE


@dataclass(frozen=True, eq=False)
class AttractFile:
    """A level and a recording made on it.

    Attributes:
        level: the level.
        inputs: (frames,) uint8, read-only; one input byte 0..15 a frame.
        kind: 0 level, 1 level inside an episode, 2 level inside a story.
        replay_id: number of the level or of its episode, as the recording states it.
    """

    level: RawLevel
    inputs: np.ndarray
    kind: int
    replay_id: int


def is_attract(data: bytes) -> bool:
    """Return whether there is a replay block at the place and of the length stated by the header.

    Map bytes can have the header of an attract file without its replay block; they are not an attract file.
    """
    if len(data) < SMALLEST_MAP:
        return False
    map_length, replay_length = _LENGTHS.unpack_from(data)
    start = _LENGTHS.size + map_length
    stated = data[start + _BLOCK_LENGTH_OFFSET : start + _BLOCK_LENGTH_OFFSET + 4]
    return start >= SMALLEST_MAP and replay_length >= _REPLAY_HEAD.size and stated == data[4:8]


def read_attract(data: bytes, source: str = "<bytes>") -> AttractFile:
    """Read an attract file; LevelFormatError if lengths, replay header, inputs or map block break the format."""
    if len(data) < _LENGTHS.size:
        raise LevelFormatError(source, f"offset {len(data)}", "an attract header of 8 bytes", "the end")
    map_length, replay_length = _LENGTHS.unpack_from(data)
    start = _LENGTHS.size + map_length
    if start > len(data):
        expected = f"a recording: a .replay file, or an attract file with a map block of {map_length} bytes"
        raise LevelFormatError(source, "offset 0", expected, f"{len(data)} bytes, of another kind or cut")
    if len(data) != start + replay_length:
        lengths = f"8 + {map_length} (map block) + {replay_length} (replay block) bytes"
        raise LevelFormatError(source, "offset 0", lengths, f"a file of {len(data)}")
    kind, replay_id = _read_replay_head(data[start:], start, source)
    inputs = read_inputs(data, start + _REPLAY_HEAD.size, source)
    return AttractFile(read_map(data[:start], source), inputs, kind, replay_id)


def _read_replay_head(block: bytes, start: int, source: str) -> tuple[int, int]:
    """Return kind and id of a replay block after checking its other fields."""
    size = len(block)
    if size < _REPLAY_HEAD.size:
        expected = f"a replay block of at least {_REPLAY_HEAD.size} bytes"
        raise LevelFormatError(source, f"offset {start}", expected, f"{size}")
    kind, length, version, frames, replay_id, _, _, mask = _REPLAY_HEAD.unpack_from(block)
    for place, name, value, wanted in (
        (1, "length of the replay block", length, size),
        (5, "replay format version", version, _VERSION),
        (25, "ninja mask (one player)", mask, _SOLO_MASK),
        (9, "number of frames", frames, size - _REPLAY_HEAD.size),
    ):
        if value != wanted:
            raise LevelFormatError(source, f"offset {start + place}", f"{name} {wanted}", str(value))
    return kind, replay_id


def read_inputs(data: bytes, start: int, source: str, most: int = _ALL_INPUTS) -> np.ndarray:
    """Return the input bytes from ``start`` to the end, read-only; LevelFormatError if one is above ``most``."""
    inputs = np.frombuffer(bytes(data[start:]), np.uint8)
    invalid = np.flatnonzero(inputs > most)
    if invalid.size:
        frame = int(invalid[0])
        raise LevelFormatError(source, f"offset {start + frame}", f"an input byte of 0..{most}", str(inputs[frame]))
    return inputs


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
    """Read a recording; LevelFormatError if lengths, inputs or map block break the format."""
    sizes = _sizes(data)
    if sizes is None:
        raise LevelFormatError(source, "offset 0", "lengths of a map block and of inputs that make the file", "others")
    first, map_length, won = sizes
    last = first + map_length
    inputs = read_inputs(data, last, source, INPUT_JUMP | INPUT_RIGHT | INPUT_LEFT)
    return PeerFile(read_map(data[first:last], source), inputs, won)


def _sizes(data: bytes) -> tuple[int, int, bool | None] | None:
    """Return the place and length of the map block, and whether the run reached the exit; None for other data."""
    if len(data) < _PEER_HEAD.size + SMALLEST_MAP:
        return None
    version, map_length, frames, won = _PEER_HEAD.unpack_from(data)
    if version == _VERSION and map_length >= SMALLEST_MAP and _PEER_HEAD.size + map_length + frames == len(data):
        return _PEER_HEAD.size, map_length, won
    map_length, frames = _LENGTHS.unpack_from(data)  # level files have lengths there too, the second one 0
    if map_length >= SMALLEST_MAP and frames and _LENGTHS.size + map_length + frames == len(data):
        return _LENGTHS.size, map_length, None
    return None
