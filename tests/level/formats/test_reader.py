import os
from pathlib import Path

import pytest

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level.formats import reader
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.reader import LevelFile
from nclone_env.level.formats.text import format_text

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


def test_a_file_of_one_level_is_no_pack():
    file = LevelFile(FORMATS["map"])
    assert file.pack is None
    assert same(file.level(), RAW)
