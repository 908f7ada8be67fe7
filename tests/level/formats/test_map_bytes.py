import struct

import numpy as np
import pytest
from hypothesis import given, settings

from nclone_env.errors import LevelFormatError
from nclone_env.level.formats.map_bytes import read_map, record_count, write_map

from ..level_bases import RECORDS, levels, make_level, same


def counts_of(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<u2", 40, 1150)


@settings(max_examples=60)
@given(levels())
def test_written_levels_read_back_the_same(raw):
    data = write_map(raw)
    assert same(read_map(data), raw)
    assert write_map(read_map(data)) == data


def test_layout_is_the_games():
    raw = make_level(title="näme", author="me", level_id=7, game_mode=2)
    data = write_map(raw)
    assert struct.unpack_from("<6I", data) == (0, len(data), 7, 2, 0x25, 0xFFFFFFFF)
    assert data[38:45] == "näme".encode() + b"\0\0"
    assert data[167:170] == b"me\0"
    assert data[184 + 5 + 42 * 3] == 5
    assert counts_of(data)[[0, 1, 3, 6, 7, 8, 9, 39]].tolist() == [1, 1, 2, 1, 0, 1, 0, 1]
    assert data[1230:1235] == bytes(RECORDS[0])
    assert len(data) == 1230 + 5 * len(RECORDS)


def test_names_may_fill_their_fields():
    raw = make_level(title="t" * 128, author="a" * 16)
    assert same(read_map(write_map(raw)), raw)


def test_reader_is_lenient_about_the_header():
    data = bytearray(write_map(make_level()))
    data[0:8] = b"\xff" * 8
    data[12:16] = struct.pack("<I", 77)
    data[38:167] = b"a\x07b\x9fc" + b"d" * 124
    raw = read_map(bytes(data))
    assert raw.title == "abc" + "d" * 123
    assert raw.game_mode == 4
    assert raw.digest == make_level().digest
    assert same(read_map(write_map(raw)), raw)


def test_surplus_records_and_counted_switches_change_nothing():
    data = bytearray(write_map(make_level()))
    data[1150 + 14] = data[1150 + 18] = 1
    assert same(read_map(bytes(data) + b"\x01\x02\x03"), make_level())


def test_arrays_are_read_only_and_the_source_is_kept():
    raw = read_map(write_map(make_level()), "x.map")
    assert raw.source == "x.map"
    assert not raw.tiles.flags.writeable
    assert not raw.records.flags.writeable


def test_record_count_adds_the_switches_of_doors():
    counts = np.zeros(40, "<u2")
    counts[[0, 1, 6, 7, 8, 9]] = [1, 5, 2, 99, 3, 98]
    assert record_count(counts) == 1 + 5 + 2 * 2 + 2 * 3


def test_truncation_at_every_offset_is_an_error():
    data = write_map(make_level())
    for end in range(len(data)):
        with pytest.raises(LevelFormatError, match=rf"cut: offset {end}: expected .*, got the end"):
            read_map(data[:end], "cut")


def test_truncated_records_say_what_the_counts_ask_for():
    data = write_map(make_level())
    message = f"expected 16 records up to offset {len(data)}, as the counts at 1150 say, got the end after 15"
    with pytest.raises(LevelFormatError, match=message):
        read_map(data[:-2])


def edited(offset: int, *values: int) -> bytes:
    data = bytearray(write_map(make_level()))
    data[offset : offset + len(values)] = bytes(values)
    return bytes(data)


def test_no_records_is_an_error():
    with pytest.raises(LevelFormatError, match="offset 1230: expected a ninja record"):
        read_map(edited(1150, *[0] * 80)[:1230])


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (1230, 1, "record 0 at offset 1230: expected the ninja as the first record, got mine"),
        (
            1230 + 15 * 5,
            6,
            "record 15 at offset 1305: expected the locked_door_switch of this locked_door in record 16",
        ),
        (1156, 3, "expected 17 records up to offset 1315"),
    ],
)
def test_records_without_meaning_are_refused(offset, value, message):
    with pytest.raises(LevelFormatError, match=message):
        read_map(edited(offset, value))


@pytest.mark.parametrize(
    "counts",
    [{}, {3: 2}, {0: 1}, {3: 1, 25: 7}, {0: 1, 1: 1, 2: 1}, {0: 1, 3: 2, 4: 2, 6: 1, 8: 2}],
    ids=["none", "exits", "ninja", "others", "the first three", "one door more"],
)
def test_counts_that_are_not_those_of_the_records(counts):
    """All records are read, as in the files of a public generator."""
    table = np.zeros(40, "<u2")
    table[list(counts)] = list(counts.values())
    data = write_map(make_level())
    raw = read_map(data[:1150] + table.tobytes() + data[1230:])
    assert raw.digest == make_level().digest
    (note,) = raw.notes
    assert note.startswith("the counts at 1150 are not those of the records: they cover ")
    assert note.endswith(" of 16; all are read")


def test_wrong_counts_and_no_whole_records():
    data = write_map(make_level())
    with pytest.raises(LevelFormatError, match=r"offset 1309: expected whole records .*, got 4 bytes over: the map is"):
        read_map(data[:1150] + bytes(80) + data[1230:-1])


def test_right_counts_leave_no_note():
    assert read_map(write_map(make_level())).notes == ()
    assert read_map(write_map(make_level()) + b"\0" * 10).notes == (
        "2 records behind the 16 that the counts at 1150 cover are ignored",
    )


@pytest.mark.parametrize("title", ["caf\u00e9", "anyone\u2019s equation", "\u30c6\u30b9\u30c8", "\u00e9" * 128])
def test_titles(title):
    raw = make_level(title=title, author=title[:4])
    assert same(read_map(write_map(raw)), raw)


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (b"caf\xe9", "caf\u00e9"),
        (b"caf\xc3\xa9", "caf\u00e9"),
        (b"\xe2\x80\x99", "\u2019"),
        (b"\xe2\x80", "\u00e2"),
        (b"a\x1b[31mb", "a[31mb"),
        (("\u0416" * 64).encode(), "\u0416" * 64),
    ],
)
def test_titles_of_other_programs(data, title):
    level = bytearray(write_map(make_level()))
    level[38:167] = data.ljust(129, b"\0")
    raw = read_map(bytes(level))
    assert raw.title == title
    assert same(read_map(write_map(raw)), raw)


def test_exit_without_a_switch_names_record_and_offset():
    data = write_map(make_level([(0, 1, 1, 0, 0), (3, 9, 9, 0, 0), (4, 8, 8, 0, 0)]))
    data = bytearray(data[:-5])
    data[1150 + 2 * 4] = 0
    message = "record 1 at offset 1235: expected the exit_switch of this exit in record 2, got only 2 records"
    with pytest.raises(LevelFormatError, match=message):
        read_map(bytes(data))


def test_thwumps_take_any_orientation():
    assert read_map(write_map(make_level([(0, 1, 1, 0, 0), (20, 1, 1, 200, 9)]))).records[1, 3] == 200


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "expected a ninja record, the start of the level, got no records"),
        ([(0, 0, 0, 0, 0), (40, 0, 0, 0, 0)], r"expected a type of 0\.\.39, which level files can count, got type 40"),
        ([(0, 0, 0, 0, 0), (7, 0, 0, 0, 0)], "expected a locked_door before this locked_door_switch, got none"),
        ([(0, 0, 0, 0, 0), (6, 0, 0, 0, 0), (7, 0, 0, 0, 0), (7, 0, 0, 0, 0)], "record 3 .*before this"),
        ([(0, 0, 0, 0, 0), (8, 0, 0, 0, 0), (7, 0, 0, 0, 0)], "expected trap_door_switch, the switch of the trap_door"),
        (
            [(0, 0, 0, 0, 0), (3, 0, 0, 0, 0), (2, 0, 0, 0, 0)],
            "record 2 .*expected exit_switch, the switch of the exit",
        ),
        ([(0, 0, 0, 0, 0)] * 32768, "expected at most 32767 records, got 32768"),
    ],
)
def test_records_that_no_file_can_hold_are_not_written(records, message):
    with pytest.raises(LevelFormatError, match=message):
        write_map(make_level(records))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"title": "x" * 129}, "title: expected at most 128 characters, got 129"),
        ({"author": "x" * 17}, "author: expected at most 16 characters, got 17"),
        ({"title": "a\nb"}, r"title: expected printable characters, got '\\n'"),
        ({"title": "\u200b"}, r"title: expected printable characters, got '\\u200b'"),
        ({"title": "\u0416" * 65}, "title: expected at most 128 bytes in UTF-8, got 130"),
        ({"level_id": -1}, "level_id: expected a number from 0 to 4294967295, got -1"),
        ({"level_id": 2**32}, "level_id: expected a number from 0"),
        ({"game_mode": 3}, r"game_mode: expected one of 0 \(solo\), 1 \(co-op\), 2 \(race\), 4 \(unset\), got 3"),
    ],
)
def test_headers_that_no_file_can_hold_are_not_written(fields, message):
    with pytest.raises(LevelFormatError, match=message):
        write_map(make_level(**fields))
