import bz2
import gzip
import lzma
import os
import struct
import zipfile
import zlib
from dataclasses import replace
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level import RawLevel, build_room, write_map, write_pack
from nclone_env.level.formats import pack_text, reader
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text

from ..level_bases import make_attract, make_level, same

RAW = make_level()
FORMATS = {"text": format_text(RAW).encode(), "map": write_map(RAW), "attract": make_attract(RAW, b"\x01\x02")}
REPLAY = struct.pack("<B6IBI", 0, 33, 1, 3, 7, 0, 0, 1, 0xFFFFFFFF) + b"\1\2\3"


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
    "UTF-16 text; save it as UTF-8": [
        *(
            f"{begin}00#\n".encode(name)
            for begin in ("$a#", "# b\r\n$a#")
            for name in ("utf-16-le", "utf-16-be", "utf-16")
        ),
        FORMATS["text"].decode().encode("utf-16-be"),
        "a".encode("utf-32"),
    ],
    "a gzip file": [gzip.compress(FORMATS["map"])],
    "a bzip2 file": [bz2.compress(FORMATS["map"])],
    "an xz file": [lzma.compress(FORMATS["text"])],
    "a checkpoint or another zip file; unpack": [b"PK\3\4" + bytes(40)],
    "a recording$": [b"\x89NREP\r\n\x1a\1" + bytes(100)],
    "a recording whose line ends were converted": [b"\x89NREP\n\x1a\1" + bytes(100)],
    "an empty zip file": [b"PK\5\6" + bytes(18)],
    "a tar archive; unpack": [b"a.txt".ljust(257, b"\0") + b"ustar  \0" + bytes(2000)],
    "a zstd file": [bytes.fromhex("28b52ffd") + bytes(40)],
    "a WebM or Matroska video": [bytes.fromhex("1a45dfa3") + bytes(40)],
    "a GIF picture": [b"GIF89a" + bytes(40)],
    "a PNG picture": [b"\x89PNG\r\n\x1a\n" + bytes(2000)],
    "a replay of the game without its level": [REPLAY],
    "a replay from the server of the game, without its level": [
        struct.pack("<4I", kind, 5, 6, 7) + zlib.compress(REPLAY) for kind in (0, 1, 4)
    ],
    "a replay of an episode without its levels": [bytes.fromhex("8e03c0ff") + struct.pack("<5I", *[33] * 5)],
    "a replay of a story without its levels": [bytes.fromhex("ce0038ff") + bytes(104)],
    "data in zlib": [zlib.compress(REPLAY), zlib.compress(b"\0\1\2", 0), zlib.compress(FORMATS["map"], 9)],
    "an array of NumPy": [b"\x93NUMPY\1\0" + bytes(40)],
    "an SQLite database": [b"SQLite format 3\0" + bytes(2000)],
    "a pointer of Git LFS; fetch": [b"version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize = 3\n"],
    "a text that begins with": [b"<!DOCTYPE html>", b'{"tiles": []}', b'"$a#00#"', FORMATS["map"].hex().encode()],
}


@pytest.mark.parametrize(("data", "got"), [(data, got) for got, all_ in OTHERS.items() for data in all_])
def test_files_of_other_kinds_are_named(data, got):
    with pytest.raises(LevelFormatError, match=f"<bytes>: file: expected .* level.*, got {got}"):
        read_level(data)


@pytest.mark.parametrize("name", ["a.toml", "a"])
def test_a_zip_file_is_one_whatever_its_name_is(tmp_path, name):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("a.toml", FORMATS["text"])
    with pytest.raises(LevelFormatError, match="got a checkpoint or another zip file; unpack"):
        LevelFile.open(tmp_path / name).level()


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

    def refuse(_path, _most):
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


@pytest.mark.parametrize("name", ["nprofile", "nprofile.gz", "nprofile_original"])
def test_the_save_file_of_the_game_is_named(tmp_path, monkeypatch, name):
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    data = bytes(1 << 17)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    with pytest.raises(LevelFormatError, match="expected a level file, got the save file of the game, which has no"):
        read_level(tmp_path / name)


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
    monkeypatch.setattr(pack_text, "_lines", None)
    assert [LevelFile.open(path).level(number).digest for number in (0, 19)] == [packed[0].digest, packed[19].digest]
    monkeypatch.undo()
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    for contents in (None, b"", b"other", index.read_bytes()[:-24]):
        index.unlink(missing_ok=True)
        if contents is not None:
            index.write_bytes(contents)
        assert LevelFile.open(path).level(19).digest == packed[19].digest
        assert (index.read_bytes() if index.exists() else None) == contents, "it is not ours"


@pytest.mark.parametrize(
    "edit", ["sorted", "sorted, times kept", "exchanged", "commented", "shorter", "older format", "of another pack"]
)
def test_an_index_that_does_not_fit_is_replaced(tmp_path, monkeypatch, edit):
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    path = tmp_path / "large.txt"
    names = [f"long title {number}" if number % 2 else f"t{number}" for number in range(20)]
    lines = [write_pack([replace(RAW, records=RAW.records[:-1], title=name)]) for name in names]
    path.write_bytes(b"".join(lines))
    reader.write_index(path)
    index = path.with_name("large.txt.index")
    first = index.read_bytes()
    if edit == "older format":
        with index.open("wb") as file:
            np.save(file, pack_text.Pack(path.read_bytes()).lines)
    elif edit == "of another pack":
        path.with_name("other.txt").write_bytes(b"".join(reversed(lines)))
        reader.write_index(path.with_name("other.txt"))
        index.write_bytes(path.with_name("other.txt.index").read_bytes())
    else:
        lines = {
            "sorted": sorted(lines),
            "sorted, times kept": sorted(lines),
            "exchanged": [lines[1], lines[0], *lines[2:]],
            "commented": [b"#" + lines[0][1:], *lines[1:]],
            "shorter": lines[:7],
        }[edit]
        later = 0 if edit == "sorted, times kept" else 2_000_000_000  # as clocks of some file systems are coarse
        before = path.stat().st_mtime_ns
        path.write_bytes(b"".join(lines))
        os.utime(path, ns=(0, before + later))
    expected = [line[1:].split(b"#")[0].decode() for line in lines if line[:1] == b"$"]
    for _ in range(2):
        file = LevelFile.open(path)
        assert [file.level(number).title for number in range(len(file.pack))] == expected
    assert (index.read_bytes() == first) == (edit in ("older format", "of another pack"))
    monkeypatch.setattr(pack_text, "_lines", None)
    assert LevelFile.open(path).level(3).title == expected[3], "the index serves again"


def test_a_file_of_one_level_is_no_pack():
    file = LevelFile(FORMATS["map"])
    assert file.pack is None
    assert same(file.level(), RAW)
