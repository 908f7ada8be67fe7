import itertools
import json
import shlex
import urllib.parse

import numpy as np
import pytest

from nclone_env.cli.app import main
from nclone_env.cli.levels import convert_level, list_levels, show_level, validate_levels
from nclone_env.cli.output import release_claims
from nclone_env.errors import ConfigError
from nclone_env.level import catalog
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.formats.text import format_text
from nclone_env.level.level import RawLevel
from nclone_env.render.picture import WORLD
from nclone_env.sim import trajectory

RECORDS = [(0, 10, 10, 0, 0), (3, 50, 50, 0, 0), (4, 60, 60, 0, 0), (2, 70, 70, 0, 0)]
PACKED = [(0, 10, 10, 0, 0), (3, 50, 50, 0, 0), (4, 60, 60, 0, 0)]
RAW = RawLevel(np.zeros((23, 42), np.uint8), np.array(RECORDS, np.uint8), title="small", author="me")


@pytest.fixture
def level(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(format_text(RAW))
    return path


@pytest.fixture
def picture(monkeypatch):
    """Replace rendering by a red picture, so that only the command is tested."""
    red = np.zeros((600, 1056, 3), np.uint8)
    red[..., 0] = 255
    monkeypatch.setattr("nclone_env.level.load.load_level", lambda raw: raw)
    monkeypatch.setattr("nclone_env.render.picture.level_picture", lambda *arguments: red)
    monkeypatch.setattr("nclone_env.render.picture.used_area_of", lambda raw: WORLD)


def test_list_names_sets_levels_and_titles(tmp_path, monkeypatch, capsys, level):
    folder = tmp_path / "levels" / "walks"
    folder.mkdir(parents=True)
    (folder / "one.toml").write_text(level.read_text())
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "package")
    assert list_levels() == 0
    assert capsys.readouterr().out.split() == ["walks", "(1", "level)", "walks/one", "small"]


def test_convert_to_map_and_back_gives_the_same_file(tmp_path, level, capsys):
    assert convert_level(str(level), tmp_path / "small.map") == 0
    assert (tmp_path / "small.map").read_bytes() == write_map(RAW)
    assert convert_level(str(tmp_path / "small.map"), tmp_path / "again.toml") == 0
    assert (tmp_path / "again.toml").read_bytes() == level.read_bytes()
    assert f"wrote {tmp_path / 'small.map'} (1250 bytes)" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.toml", "small.map", "small.toml"]


def test_existing_files_need_force(tmp_path, level):
    target = tmp_path / "x.map"
    target.write_bytes(b"precious")
    with pytest.raises(ConfigError, match=r"x\.map: already exists; --force overwrites it"):
        convert_level(str(level), target)
    assert target.read_bytes() == b"precious"
    assert convert_level(str(level), target, force=True) == 0
    assert target.read_bytes() == write_map(RAW)
    (tmp_path / "y.map").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"y\.map: already exists"):
        convert_level(str(level), tmp_path / "y.map")


def test_invalid_targets_are_refused(tmp_path, level, capsys):
    assert main(["levels", "convert", str(level), str(level / "new" / "x.map")]) == 2
    refused = f"output: expected a folder, got {level}, which is a file; name another"
    assert capsys.readouterr().err == f"nclone-env: {refused}\n"
    assert main(["levels", "convert", str(level), str(tmp_path / "new" / "folder" / "x.map")]) == 0
    assert (tmp_path / "new" / "folder" / "x.map").read_bytes() == write_map(RAW)
    (tmp_path / "folder.map").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.map: expected the name of a file to write, got a folder"):
        convert_level(str(level), tmp_path / "folder.map", force=True)
    release_claims()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.map", "new", "small.toml"]


def test_validate_reports_every_file(tmp_path, level, capsys):
    (tmp_path / "bad.map").write_bytes(b"\0" * 50)
    (tmp_path / "outside.toml").write_text(level.read_text().replace("gold 70 70", "gold 200 70"))
    assert validate_levels((str(level),)) == 0
    assert capsys.readouterr().out.endswith("1 level, 0 with errors\n")
    assert validate_levels((str(tmp_path),)) == 1
    out = capsys.readouterr().out
    assert f"error: {tmp_path / 'bad.map'}: offset 50: expected a map of at least 1230 bytes, got the end" in out
    assert f"warning: {tmp_path / 'outside.toml'}: entities outside the world: gold (1)" in out
    assert out.endswith("3 levels, 1 with errors\n")


def test_show_prints_a_summary_and_writes_a_picture(tmp_path, monkeypatch, level, picture, capsys):
    cv2 = pytest.importorskip("cv2")
    monkeypatch.chdir(tmp_path)
    assert show_level(str(level)) == 0
    out = capsys.readouterr().out
    assert "title      small\nauthor     me\nlevel id   -\ngame mode  solo\n" in out
    assert f"digest     {RAW.digest[:16]}" in out
    assert "    1  exit_switch\n" in out
    image = cv2.imread("small.png")
    assert image.shape == (600, 1056, 3)
    assert image[0, 0].tolist() == [0, 0, 255]  # OpenCV reads blue first
    with pytest.raises(ConfigError, match="--force overwrites it"):
        show_level(str(level))


@pytest.mark.parametrize(
    ("name", "number", "file"),
    [("my pack.txt", 1, "my-pack-1.png"), ("two (copy).txt", 0, "two-copy-0.png"), ("\u6c34.txt", 1, "1.png")],
)
def test_the_name_of_a_picture_needs_no_quotes(name, number, file, tmp_path, monkeypatch, picture):
    monkeypatch.chdir(tmp_path)
    in_pack = RawLevel(RAW.tiles, np.array(PACKED, np.uint8), title="small")
    (tmp_path / name).write_bytes(write_pack([in_pack, in_pack]))
    assert show_level(f"{name}#{number}") == 0
    assert (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    assert shlex.quote(file) == urllib.parse.quote(file) == file
    assert shlex.quote(f"{name}#{number}.png") != f"{name}#{number}.png"


def test_show_crops(tmp_path):
    cv2 = pytest.importorskip("cv2")
    tiles = np.ones((23, 42), np.uint8)
    tiles[1:12, 1:12] = 0
    path, picture, shapes = tmp_path / "corner.map", tmp_path / "p.png", []
    path.write_bytes(write_map(RawLevel(tiles, np.array(RECORDS, np.uint8), title="corner")))
    for options in ({"crop": False}, {}):
        assert show_level(str(path), picture, force=True, **options) == 0
        shapes.append(cv2.imread(str(picture)).shape)
    assert shapes == [(600, 1056, 3), (600, 600, 3)]


@pytest.mark.parametrize(("seconds_a_piece", "speed"), [(0.0032, "9,375"), (0.0001, None)])
def test_validate_warns_of_slow_levels(tmp_path, capsys, monkeypatch, level, seconds_a_piece, speed):
    """The clock of the measurement is replaced, so that the result is the same on every machine."""
    crowd = np.array([*RECORDS, *[(25, 20 + i % 16 * 8, 20 + i // 16 * 4, 0, 0) for i in range(256)]], np.uint8)
    path, pieces = tmp_path / "slow.map", itertools.count()
    path.write_bytes(write_map(RawLevel(RAW.tiles, crowd)))
    monkeypatch.setattr(trajectory, "process_time", lambda: next(pieces) * seconds_a_piece)
    assert validate_levels((str(path), str(level))) == 0
    *warnings, total = capsys.readouterr().out.splitlines()
    text = f"warning: {path}: slow: {speed} frames/s by random play; levels of the game reach 75,000 and more"
    assert warnings == ([text] if speed else [])
    assert total == "2 levels, 0 with errors"


def test_findings_of_shards_are_merged_to_the_table_of_one_process(tmp_path, monkeypatch, capsys, level):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.map").write_bytes(b"\0" * 50)
    words = ["levels", "validate", "first-steps", "small.toml", "bad.map"]
    assert main([*words, "--output", "one.jsonl"]) == 1
    shown = capsys.readouterr().out
    for number, status in ((2, 1), (1, 0), (1, 0)):
        assert main([*words, "--output", "parts", "--shard", f"{number}/2"]) == status
    assert main(["merge", "parts", "--output", "joined.jsonl"]) == 0
    one = (tmp_path / "one.jsonl").read_bytes()
    assert (tmp_path / "joined.jsonl").read_bytes() == one
    assert one.count(b"\n") == 8
    assert all(f"{json.loads(line)['findings'][0]['text']}" in shown for line in one.splitlines()[-1:])
