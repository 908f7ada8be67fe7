import bz2
import gzip
import lzma
import os
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level.build import build_room
from nclone_env.level.formats import pack_text, reader
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text
from nclone_env.level.level import RawLevel

from ..level_bases import make_attract, make_level, same

RAW = make_level()
FORMATS = {
    "text": format_text(RAW).encode(),
    "map": write_map(RAW),
    "attract": make_attract(RAW, b"\x01\x02"),
}


def read_level(source):
    """Return the only level of bytes or of a file."""
    return (LevelFile(source) if isinstance(source, bytes) else LevelFile.open(Path(source))).level()


@pytest.mark.parametrize("name", FORMATS)
def test_format_is_detected_in_bytes_and_files(tmp_path, name):
    assert read_level(FORMATS[name]).digest == RAW.digest
    path = tmp_path / "7"
    path.write_bytes(FORMATS[name])
    for source in (path, str(path)):
        level = read_level(source)
        assert level.digest == RAW.digest
        assert level.source == str(path)


def test_byte_order_mark_is_skipped():
    assert same(read_level(b"\xef\xbb\xbf" + FORMATS["text"]), RAW)


@pytest.mark.parametrize("before", ["  # mine\n", "\ufeff# mine\n\n", "\t# a\n\t# b\n", "\n\n"])
def test_a_text_of_any_name_may_begin_with_comments(before):
    assert same(read_level(before.encode() + FORMATS["text"]), RAW)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.map"
    path.write_bytes(FORMATS["map"][:1000])
    with pytest.raises(
        LevelFormatError, match=r"broken\.map: offset 1000: expected a map of at least 1230 bytes, got the"
    ):
        read_level(path)


def test_toml_suffix_means_text(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_bytes(FORMATS["map"])
    with pytest.raises(LevelFormatError, match=r"broken\.toml: line 1: expected"):
        read_level(path)


def test_empty_data():
    with pytest.raises(LevelFormatError, match=r"<bytes>: offset 0: expected a level file .* got no data"):
        read_level(b"")


def test_text_in_another_encoding():
    data = FORMATS["text"].replace(b"a level", "é".encode("latin-1"))
    with pytest.raises(LevelFormatError, match="line 2: expected UTF-8 text, got byte 0xe9"):
        read_level(data)


OTHERS = {
    "UTF-16 text; save it as UTF-8": ["$a#00#".encode("utf-16-le"), "$a#00#".encode("utf-16"), "a".encode("utf-32")],
    "a gzip file": [gzip.compress(FORMATS["map"])],
    "a bzip2 file": [bz2.compress(FORMATS["map"])],
    "an xz file": [lzma.compress(FORMATS["text"])],
    "a checkpoint or another zip file": [b"PK\3\4" + bytes(40)],
    "a recording$": [b"\x89NREP\r\n\x1a\1" + bytes(100)],
    "a recording whose line ends were converted": [b"\x89NREP\n\x1a\1" + bytes(100)],
    "a PNG picture": [b"\x89PNG\r\n\x1a\n" + bytes(2000)],
    "a pointer of Git LFS; fetch": [b"version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize = 3\n"],
    "a text that begins with": [b"<!DOCTYPE html>", b'{"tiles": []}', b'"$a#00#"', FORMATS["map"].hex().encode()],
}


@pytest.mark.parametrize(("data", "got"), [(data, got) for got, all_ in OTHERS.items() for data in all_])
def test_files_of_other_kinds_are_named(data, got):
    with pytest.raises(LevelFormatError, match=f"<bytes>: file: expected .* level.*, got {got}"):
        read_level(data)


@pytest.mark.parametrize("size", [0x3C, 0x1F, 0x42, 0xFF])
def test_lengths_that_look_like_other_kinds(size):
    """The header of a map begins with its length, whose first byte may be that of any other kind."""
    assert same(read_level(bytes([size]) + FORMATS["map"][1:]), RAW)
    records = np.concatenate([RAW.records, np.tile(RAW.records[-1:], (0x8B1F // 5, 1))])
    data = write_map(RawLevel(RAW.tiles, records))
    assert len(read_level(b"\x1f\x8b" + data[2:]).records) == len(records)


def test_missing_file(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path / "file" / "none"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(UnknownLevelError, match="expected the path of a level file, got no such file") as error:
            read_level(path)
        assert isinstance(error.value.__cause__, OSError)


def test_folder_and_pipe(tmp_path):
    with pytest.raises(LevelFormatError, match="expected a level file, got a folder; name a file in it"):
        read_level(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LevelFormatError, match="expected a level file, got a device or pipe"):
        read_level(tmp_path / "pipe")


def test_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "secret.map"
    path.write_bytes(FORMATS["map"])

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reader, "_read_start", refuse)  # root may read every file
    with pytest.raises(LevelFormatError, match=r"expected a readable level file, got .*Permission denied") as error:
        read_level(path)
    assert isinstance(error.value.__cause__, PermissionError)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_impossible_paths(name):
    with pytest.raises(LevelFormatError, match="expected a readable level file"):
        read_level(name)


def test_huge_file(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    path = tmp_path / "huge"
    path.write_bytes(FORMATS["map"])
    with pytest.raises(LevelFormatError, match="expected at most 100 bytes, got more"):
        read_level(path)


def test_a_large_pack_is_mapped_and_its_index_has_the_places_of_the_lines(tmp_path, monkeypatch):
    path = tmp_path / "large.txt"
    packed = [build_room(f"gold {number} 50").raw for number in range(40, 60)]
    path.write_bytes(b"# mine\n\n" + write_pack(packed))
    whole = LevelFile.open(path)
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    reader.write_index(path)
    index = path.with_name("large.txt.index")
    opened = LevelFile.open(path)
    assert isinstance(opened.data, mmap)
    np.testing.assert_array_equal(opened.lines, whole.pack.lines)
    monkeypatch.setattr(pack_text, "_line_ends", lambda data: iter([(3, 8, 9)]))  # the first line decides on the format
    assert [LevelFile.open(path).level(number).digest for number in (0, 19)] == [packed[0].digest, packed[19].digest]
    monkeypatch.undo()
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    for contents in (None, b"", b"other", index.read_bytes()[:-24]):
        index.unlink(missing_ok=True)
        if contents is not None:
            index.write_bytes(contents)
        assert LevelFile.open(path).level(19).digest == packed[19].digest
    path.write_bytes(write_pack(packed[:2]))
    assert len(LevelFile.open(path).pack) == 2


def test_a_file_of_one_level_is_no_pack():
    file = LevelFile(FORMATS["map"])
    assert file.pack is None
    assert same(file.level(), RAW)
