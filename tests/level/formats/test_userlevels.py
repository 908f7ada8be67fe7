"""Pages of userlevels from the server of the game."""

import struct
import zlib
from dataclasses import replace
from itertools import accumulate

import pytest

from nclone_env.errors import LevelFormatError
from nclone_env.level import LARGEST_MAP, UNPUBLISHED, write_map
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.userlevels import UserlevelPage

from ..level_bases import make_attract, make_level, make_page, same

LEVELS = [make_level(title=f"userlevel {number}", author="a person", level_id=22715 + number) for number in range(4)]
PAGE = make_page(*LEVELS)
HEADS = 48 + 44 * len(LEVELS)
"""The end of the heads."""
ENDS = list(accumulate((len(make_page(raw)) - 48 - 44 for raw in LEVELS), initial=HEADS))[1:]
"""The end of each block."""


def test_what_a_page_contains_is_read():
    file = LevelFile(PAGE, "page")
    assert len(file.pack) == 4
    assert file.pack.titles == tuple(raw.title for raw in LEVELS)
    for number, raw in enumerate(LEVELS):
        assert same(file.level(number), raw)
        assert file.level(number).source == f"page#{number}"
    assert same(LevelFile(make_page(LEVELS[0])).level(), LEVELS[0])


@pytest.mark.parametrize("length", range(48, len(PAGE), 61))
def test_levels_before_the_end_of_a_cut_page_are_read(length):
    """Those behind it are named, and no part of a level is taken for all of it."""
    data = PAGE[:length]
    if length < HEADS:
        with pytest.raises(LevelFormatError, match="expected a page of userlevels with 4 heads up to offset 224"):
            UserlevelPage(data)
        return
    page = UserlevelPage(data, "page")
    for number, end in enumerate(ENDS):
        if end <= length:
            assert same(page.level(number), LEVELS[number])
        else:
            with pytest.raises(LevelFormatError, match=f"page: level {number}: expected a whole map block"):
                page.level(number)


def test_a_block_that_a_tool_has_unpacked_is_read():
    data = write_map(LEVELS[0])
    for level_id in (0x25, 1, UNPUBLISHED):  # a whole file has any id where the block has its constant
        whole = replace(LEVELS[0], level_id=level_id)
        assert same(LevelFile(write_map(whole)[8:]).level(), whole)
        assert same(LevelFile(write_map(whole)).level(), whole)
    assert same(
        LevelFile(make_attract(replace(LEVELS[0], level_id=0x25), b"")).level(), replace(LEVELS[0], level_id=0x25)
    )
    with pytest.raises(LevelFormatError):
        LevelFile(data[12:]).level()


def with_block(packed: bytes) -> bytes:
    start = 48 + 44
    return make_page(LEVELS[0])[:start] + struct.pack("<IH", 6 + len(packed), 1) + packed


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_block(b"other"), "level 0: expected a map block in zlib, got Error -3"),
        (
            with_block(zlib.compress(bytes(LARGEST_MAP + 1))),
            "level 0: expected a whole map block of at most .* got more",
        ),
        (with_block(zlib.compress(bytes(100))), "offset 108: expected a map of at least 1230 bytes, got the end"),
        (with_block(zlib.compress(bytes(3000))), "record 0 .*: expected"),
        (
            PAGE[:16] + struct.pack("<I", 10_001) + PAGE[20:] + bytes(44 * 10_001),
            "offset 16: expected a page .* 10001 heads",
        ),
        (make_page(), "expected one level; load_levels takes several, got a pack of 0 levels"),
    ],
)
def test_damaged_pages_are_refused(data, message):
    with pytest.raises(LevelFormatError, match=message):
        LevelFile(data).level()


def test_a_text_that_begins_with_a_date_is_no_page():
    assert LevelFile(b"2026-11-27-18:22 " + b"a" * 100).pack is None
