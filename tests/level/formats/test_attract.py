"""Attract files and recordings of nclone: reading, and the rejection of damaged ones."""

import struct

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level import is_attract, is_peer, read_attract, read_peer, write_map
from nclone_env.level.formats.reader import LevelFile

from ..level_bases import make_attract, make_level, same

INPUTS = bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
DATA = make_attract(make_level(author="Builders", level_id=12), INPUTS, surplus=b"\x01" * 10, kind=1)
START = len(DATA) - len(INPUTS) - 30

LEVEL = make_level()
MAP = write_map(LEVEL)
PEER_INPUTS = bytes([0, 1, 7, 2])


def edited(offset: int, value: int) -> bytes:
    data = bytearray(DATA)
    struct.pack_into("<I", data, offset, value)
    return bytes(data)


def test_level_and_inputs_are_read():
    file = read_attract(DATA, "12")
    assert same(file.level, make_level(author="Builders", level_id=12))
    assert file.level.source == "12"
    assert file.inputs.dtype == np.uint8
    assert file.inputs.tobytes() == INPUTS
    assert not file.inputs.flags.writeable
    assert (file.kind, file.replay_id) == (1, 3)


def test_recording_may_be_empty():
    assert read_attract(make_attract(make_level(), b"")).inputs.shape == (0,)


def test_truncation_at_every_offset_is_an_error():
    for end in range(len(DATA)):
        with pytest.raises(LevelFormatError, match="cut: offset"):
            read_attract(DATA[:end], "cut")


def test_lengths_must_fill_the_file():
    with pytest.raises(LevelFormatError, match=rf"expected 8 \+ {START - 8} .*got a file of {len(DATA) + 1}"):
        read_attract(DATA + b"\0")


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (START + 1, 3, rf"offset {START + 1}: expected length of the replay block 40, got 3"),
        (START + 5, 2, rf"offset {START + 5}: expected replay format version 1, got 2"),
        (START + 9, 11, rf"offset {START + 9}: expected number of frames 10, got 11"),
        (START + 25, 3, rf"offset {START + 25}: expected ninja mask \(one player\) 1, got 3"),
        (START + 34, 16, rf"offset {START + 34}: expected an input byte of 0\.\.15, got 16"),
    ],
)
def test_replay_fields_that_disagree_are_refused(offset, value, message):
    with pytest.raises(LevelFormatError, match=message):
        read_attract(edited(offset, value))


def test_short_replay_block_is_refused():
    data = bytearray(DATA[: START + 12])
    struct.pack_into("<I", data, 4, 12)
    with pytest.raises(LevelFormatError, match="expected a replay block of at least 30 bytes, got 12"):
        read_attract(bytes(data))


def test_detection():
    assert is_attract(DATA)
    assert not is_attract(b"")
    assert not is_attract(write_map(make_level()))


def test_attract_header_without_replay_block_is_a_map():
    data = DATA[:START]
    assert not is_attract(data)
    assert same(LevelFile(data).level(), make_level(author="Builders", level_id=12))


def test_file_cut_in_the_recording_is_an_error_not_a_map():
    with pytest.raises(LevelFormatError, match="replay block"):
        LevelFile(DATA[:-1]).level()


def peer_file(inputs: bytes = PEER_INPUTS, won: int = 1, version: int = 1) -> bytes:
    return struct.pack("<3IB", version, len(MAP), len(inputs), won) + MAP + inputs


def older_peer_file() -> bytes:
    return struct.pack("<2I", len(MAP), len(PEER_INPUTS)) + MAP + PEER_INPUTS


@pytest.mark.parametrize(("data", "won"), [(peer_file(), True), (peer_file(won=0), False), (older_peer_file(), None)])
def test_both_forms(data, won):
    file = read_peer(data)
    assert same(file.level, LEVEL)
    assert file.inputs.tobytes() == PEER_INPUTS
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
    assert not is_peer(make_attract(LEVEL, PEER_INPUTS))


def test_an_input_that_is_none():
    where = 13 + len(MAP) + 1
    with pytest.raises(LevelFormatError, match=f"offset {where}: expected an input byte of 0..7, got 8"):
        read_peer(peer_file(bytes([0, 8])))
