import struct

import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.peer import is_peer, read_peer
from nclone_env.level.formats.reader import LevelFile

from ..level_bases import make_attract, make_level, same

LEVEL = make_level()
MAP = write_map(LEVEL)
INPUTS = bytes([0, 1, 7, 2])


def peer_file(inputs: bytes = INPUTS, won: int = 1, version: int = 1) -> bytes:
    return struct.pack("<3IB", version, len(MAP), len(inputs), won) + MAP + inputs


def older_peer_file() -> bytes:
    return struct.pack("<2I", len(MAP), len(INPUTS)) + MAP + INPUTS


@pytest.mark.parametrize(("data", "won"), [(peer_file(), True), (peer_file(won=0), False), (older_peer_file(), None)])
def test_both_forms(data, won):
    file = read_peer(data)
    assert same(file.level, LEVEL)
    assert file.inputs.tobytes() == INPUTS
    assert file.won is won
    assert same(LevelFile(data).level(), LEVEL)


@pytest.mark.parametrize(
    "data", [peer_file()[:-1], peer_file() + b"\0", peer_file(version=2), b"\0" + older_peer_file(), MAP, b""]
)
def test_other_data_are_none(data):
    assert not is_peer(data)
    with pytest.raises(LevelFormatError, match="mine: offset 0: expected lengths of a map block and of inputs"):
        read_peer(data, "mine")


def test_an_attract_file_is_none():
    assert not is_peer(make_attract(LEVEL, INPUTS))


def test_an_input_that_is_none():
    where = 13 + len(MAP) + 1
    with pytest.raises(LevelFormatError, match=f"offset {where}: expected an input byte of 0..7, got 8"):
        read_peer(peer_file(bytes([0, 8])))
