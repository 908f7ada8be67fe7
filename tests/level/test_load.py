"""References: what a level name or path denotes, and that no file is opened twice to load it."""

import gzip
import os
import re
from collections import Counter
from contextlib import nullcontext
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from nclone_env.errors import LevelFormatError, UnknownLevelError
from nclone_env.level import catalog
from nclone_env.level.catalog import level_sets
from nclone_env.level.formats import reader
from nclone_env.level.formats.map_bytes import write_map
from nclone_env.level.formats.text import format_text
from nclone_env.level.load import LevelRef, levels_as_text, listed_names, load_level, load_levels, resolve

from .level_bases import make_attract, make_level, make_pack, make_page

TITLES = ("the basics", "12th # level", "more")
LEVELS = tuple(make_level([(0, 10, 82 + n, 0, 0)], title=title) for n, title in enumerate(TITLES))


@pytest.fixture
def opened(monkeypatch):
    """How often each file is opened."""
    counts = Counter()
    read = reader._read_start

    def counting(path, most):
        counts[path.name] += 1
        return read(path, most)

    monkeypatch.setattr(reader, "_read_start", counting)
    return counts


class Word(str, Enum):  # noqa: UP042 - the text of a StrEnum is its value
    WALK = "first-steps/01-walk"


class Place(os.PathLike):
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path)


@pytest.mark.parametrize("name", [Word.WALK, np.str_(Word.WALK.value)])
def test_names_may_be_texts_of_any_kind(name):
    for level in (
        load_level(name),
        *load_levels(name),
        *load_levels({name}),
        *load_levels(np.array([str.__str__(name)])),
    ):
        assert level.name == "first-steps/01-walk"
        assert type(level.name) is str
    assert list(map(type, levels_as_text(name))) == [str]
    assert levels_as_text(name) == ("first-steps/01-walk",)


def test_paths_may_be_of_any_kind(tmp_path):
    (tmp_path / "a").write_bytes(MAP)
    assert load_level(Place(tmp_path / "a")).name == load_levels(Place(tmp_path / "a"))[0].name == "a"
    assert [level.name for level in load_levels([Place(tmp_path)])] == ["a"]
    with os.scandir(os.fsencode(tmp_path)) as entries:
        assert [level.name for level in load_levels(entries)] == ["a"]
    assert levels_as_text(Place(tmp_path)) == (str(tmp_path),)


@pytest.mark.parametrize("sources", [None, 3, [None], [{"a": 1}]])
def test_what_is_no_level_is_named(sources):
    with pytest.raises(UnknownLevelError, match="level: expected a name, a path, bytes or a loaded level, got"):
        load_levels(sources)


def files_in(folder, *names):
    return tuple(LevelRef(folder / name, None, name) for name in names)


def test_no_levels_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "nowhere")
    with pytest.raises(UnknownLevelError, match="levels: none"):
        resolve("walks")


def test_names_resolve_to_sets_and_levels(builtin):
    first, second = (LevelRef(builtin / f"walks/{stem}.toml", None, f"walks/{stem}") for stem in "ab")
    assert resolve("walks") == (first, second)
    assert resolve("walks/b") == resolve(builtin / "walks/b.toml") == (second,)


def test_paths_resolve_to_files(builtin, tmp_path, monkeypatch):
    folder = tmp_path / "walks"
    folder.mkdir()
    for name in ("2.map", "1.toml", "12", ".hidden", "README.md"):
        (folder / name).touch()
    with pytest.warns(RuntimeWarning, match=r"walks: left out what is no level: README\.md \(no data\)$"):
        assert resolve(folder) == resolve(str(folder)) == files_in(folder, "1.toml", "12", "2.map")
    assert resolve(str(folder / "README.md")) == files_in(folder, "README.md")
    monkeypatch.chdir(tmp_path)
    assert resolve("walks")[0].path == builtin / "walks/a.toml"
    (folder / "README.md").unlink()
    assert resolve("./walks") == resolve(Path("walks")) == files_in(Path("walks"), "1.toml", "12", "2.map")


def test_folder_without_levels(tmp_path):
    with pytest.raises(UnknownLevelError, match=r"expected a folder of level files, got none in it$"):
        resolve(tmp_path)
    (tmp_path / "AUTHORS").write_text("me\n")
    (tmp_path / "inside").mkdir()
    others, fix = r"AUTHORS \(a text that begins with 'me'\), inside \(a folder\)", r"as .*/\* does in a shell$"
    with pytest.raises(UnknownLevelError, match=f"level files, got others: {others}; name the folders in it, {fix}"):
        resolve(tmp_path)


MAP = write_map(LEVELS[0])
FOLDERS = {
    "titles with dots": ({"v1.2 test": MAP, "mr. ninja": MAP, "x.toml.bak": MAP, "plain": MAP}, 4, {}),
    "downloads": (
        {"22715.txt": MAP, "a.dat": make_attract(LEVELS[0], b"\1"), "b.TOML": format_text(LEVELS[0]).encode()},
        3,
        {},
    ),
    "gzip": (
        {"a.toml.gz": gzip.compress(format_text(LEVELS[0]).encode()), "p.gz": gzip.compress(make_pack(*LEVELS))},
        4,
        {},
    ),
    "a tab": (
        {
            "S.txt": make_pack(*LEVELS),
            "SI.txt": make_pack(LEVELS[0]),
            "Scodes.txt": b"NGNT AT\nAE\n",
            "AUTHORS": b"one = a person\n",
        },
        4,
        {"AUTHORS": "a text that begins with 'one = a person'", "Scodes.txt": "a text that begins with 'NGNT AT'"},
    ),
    "other files": (
        {
            "1.map": MAP,
            "README.md": b"$ make\n",
            "cut.bin": MAP[:1234],
            "nprofile": bytes(70),
            "p.zip": b"PK\3\4" + bytes(40),
            "pack.txt.index": b"",
            "run.py": b"level = 1\n",
            "s": b"[a]\nb = 1\n",
        },
        2,
        {"README.md": r"b'\$ make'", "cut.bin": "the end after 0", "p.zip": "a checkpoint", "pack.txt.index": "no data"}
        | {"run.py": "a text that begins with 'level = 1'", "s": r"a text that begins with '\[a\]'"},
    ),
    "older game": (
        {"a.txt": b"0" * 713 + b"|5^60,516", "b": b"$a#b#c#" + b"0" * 713 + b"|5^60#", "c": MAP},
        1,
        {"a.txt": "a level of N v1.4", "b": "a level of N v1.4"},
    ),
    "damaged": ({"plain": MAP[:1300], "2.map": MAP[:1], "3.toml": b""}, 3, {}),
    "hidden": ({".a": MAP, ".DS_Store": b"\0\0\0\1Bud1", "b": MAP}, 1, {".a": "a hidden file; rename it"}),
    "index": ({"pack.txt": make_pack(*LEVELS), "pack.txt.index": b"any"}, 3, {}),
    "page": ({"levels.bin": make_page(*LEVELS)}, 3, {}),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", FOLDERS)
def test_contents_decide_in_folders_and_the_rest_is_named(name, tmp_path):
    """As a single file is decided on; only damaged files with the suffixes of levels are left to loading."""
    files, count, others = FOLDERS[name]
    for file, data in files.items():
        (tmp_path / file).write_bytes(data)
    said = ", ".join(rf"{re.escape(file)} \({got}[^)]*\)" for file, got in others.items())
    with pytest.warns(RuntimeWarning, match=f"left out what is no level: {said}$") if others else nullcontext():
        refs = resolve(tmp_path)
    assert len(refs) == count
    for file in {ref.path for ref in refs}:
        assert [ref for ref in refs if ref.path == file] == list(resolve(file))


def test_a_message_names_some_of_many_files(tmp_path):
    (tmp_path / "level").write_bytes(MAP)
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text("no level")
    with pytest.warns(RuntimeWarning, match=r"00\.txt .* 49\.txt \(a text that begins with 'no level'\) and 10 more$"):
        resolve(tmp_path)


def test_a_folder_of_many_other_files_is_refused_in_a_short_message(tmp_path):
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text("no level")
    with pytest.raises(UnknownLevelError, match=r"got others: 00\.txt .* 09\.txt \(a text .*\) and 50 more$") as caught:
        resolve(tmp_path)
    assert len(str(caught.value)) < 1000


def test_links_that_lead_nowhere_and_pipes_are_named(tmp_path):
    (tmp_path / "level").write_bytes(MAP)
    (tmp_path / "gone.map").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    with pytest.warns(RuntimeWarning, match=r"gone\.map \(no such file\), pipe \(a device or pipe\)$"):
        assert len(resolve(tmp_path)) == 1


def test_bytes_of_several_levels(tmp_path):
    for data in (make_pack(*LEVELS), make_page(*LEVELS)):
        levels = load_levels(data)
        assert [level.name for level in levels] == list(TITLES)
        assert [level.raw.digest for level in levels] == [level.digest for level in LEVELS]
        assert [level.raw.digest for level in load_levels(levels_as_text(data))] == [level.digest for level in LEVELS]
        with pytest.raises(LevelFormatError, match="expected one level; load_levels takes several, got a pack of 3"):
            load_level(data)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("first-steps/2", "; did you mean 'first-steps/02-step'[?] Built-in"),
        ("jumps,hazards", "; did you mean 'jumps' and 'hazards', as separate names[?] Built-in"),
        ("jumps hazards,first-steps", "; did you mean 'jumps' and 'hazards' and 'first-steps', as separate"),
        (Path("jumps"), "got './jumps'; did you mean 'jumps'[?] Built-in"),
        ("jumps,zzzzzzzzzzzzzzzz", r"got 'jumps,zzzzzzzzzzzzzzzz'\. Built-in"),
    ],
)
def test_a_number_and_several_names_in_one_word_are_understood(name, hint):
    with pytest.raises(UnknownLevelError, match=hint):
        resolve(name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("walks/bb", "did you mean 'walks/b'"),
        ("gap", "did you mean 'jumps/gap'"),
        ("JUMPS", "did you mean 'jumps'"),
        ("jumps\r\n", "did you mean 'jumps'"),
        ("-", "got '-'; name a file: standard input is not read. Built-in"),
        ("jumps/gap.toml", "did you mean 'jumps/gap'"),
        ("zzzzzz", r"got 'zzzzzz'\."),
        ("", "got ''"),
        ("y" * 5000, "got 'yyy"),
        ("a\0b", "got 'a.*b'"),
        ("format = 1\ntitle = 'Walk'", "; give the contents of a file as bytes. Built-in"),
        ("walks;jumps/gap", "did you mean 'walks' and 'jumps/gap', as separate names"),
    ],
)
def test_unknown_names_list_what_exists(builtin, tmp_path, monkeypatch, name, hint):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownLevelError, match=hint) as error:
        resolve(name)
    assert "Built-in sets with their numbers of levels: jumps (1), walks (2); nclone-env levels list names" in str(
        error.value
    )


def test_addresses_and_links_to_nothing_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gone").symlink_to("nowhere")
    for name, got in (
        ("https://example.org/a.toml", "a path on this machine, got 'https://example.org/a.toml'; save the file and"),
        ("gone", "a level file, got 'gone', a link to nothing$"),
        ("gone.toml", "a level file, got 'gone.toml', which does not exist$"),
    ):
        with pytest.raises(UnknownLevelError, match=f"level: expected {got}"):
            resolve(name)


def test_listed_names_are_cut():
    refs = files_in(Path("folder"), *map(str, range(23)))
    assert listed_names(refs[:2]) == "0, 1"
    assert listed_names(refs).endswith("18, 19 and 3 more")


def test_a_file_that_cannot_be_read_resolves_and_fails_to_load(tmp_path, monkeypatch):
    """So that the other files of a command are still looked at."""
    monkeypatch.setattr(reader, "MAX_FILE_SIZE", 100)
    (tmp_path / "huge").write_bytes(bytes(200))
    (ref,) = resolve(tmp_path / "huge")
    with pytest.raises(LevelFormatError, match="expected at most 100 bytes"):
        ref.load()


@pytest.fixture
def files(tmp_path):
    """A folder with a pack, a level of each other format, and a folder of five levels."""
    (tmp_path / "pack.txt").write_bytes(make_pack(*LEVELS))
    (tmp_path / "one.toml").write_text(format_text(LEVELS[0]))
    (tmp_path / "one.map").write_bytes(write_map(LEVELS[0]))
    (tmp_path / "attract").write_bytes(make_attract(LEVELS[0], b"\1\2"))
    (tmp_path / "five").mkdir()
    for number in range(5):
        (tmp_path / "five" / f"{number}.map").write_bytes(write_map(LEVELS[0]))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("one.toml", 1),
        ("one.map", 1),
        ("attract", 1),
        ("pack.txt", 3),
        ("pack.txt#1", 1),
        ("pack.txt#the basics", 1),
        ("pack.txt#12th # level", 1),
        ("pack.txt#1-2", 2),
        ("pack.txt#0-1,2", 3),
        ("pack.txt#" + ",".join("012" * 150), 450),  # longer than the name of a file may be
        ("five", 5),
    ],
)
def test_every_file_is_opened_once(files, opened, name, count):
    assert len(load_levels([files / name])) == count
    assert set(opened.values()) == {1}
    assert len(opened) == (5 if name == "five" else 1)
    if count == 1:
        opened.clear()
        load_level(str(files / name))
        assert set(opened.values()) == {1}


def test_every_file_of_a_built_in_set_is_opened_once(opened):
    name, levels = next(iter(level_sets().items()))
    assert len(load_levels([name])) == len(levels) == len(opened)
    assert set(opened.values()) == {1}


@pytest.mark.parametrize("kind", [str, Path, Path.read_bytes, load_level, lambda path: load_level(path).raw])
def test_a_single_source_needs_no_list(files, kind):
    """A path is not taken for a list of names of one letter."""
    (level,) = load_levels(kind(files / "one.map"))
    assert level.raw.digest == load_level(files / "one.map").raw.digest


def test_the_count_of_opened_files_sees_a_second_opening(files, opened):
    load_levels([files / "one.map", files / "one.map"])
    assert opened == {"one.map": 2}


@pytest.fixture
def namesakes(tmp_path):
    """Folders of files of equal names: ``x/caves``, ``x/mazes`` and ``y/caves``."""
    paths = [tmp_path / folder for folder in ("x/caves", "x/mazes", "y/caves")]
    for number, path in enumerate(paths):
        path.mkdir(parents=True)
        (path / "train.txt").write_bytes(make_pack(*LEVELS))
        (path / "one.toml").write_text(format_text(LEVELS[number]))
    return paths


def test_levels_of_one_call_have_distinct_names(namesakes):
    names = [level.name for level in load_levels([path / "one.toml" for path in namesakes[:2]])]
    assert names == ["caves/one.toml", "mazes/one.toml"]
    names = [level.name for level in load_levels([path / "one.toml" for path in namesakes])]
    assert names == ["x/caves/one.toml", "x/mazes/one.toml", "y/caves/one.toml"]
    packs = load_levels([*(f"{path / 'train.txt'}#0-1" for path in namesakes[:2]), f"{namesakes[0] / 'train.txt'}#2"])
    assert [level.name for level in packs] == [
        *("caves/train.txt#0", "caves/train.txt#1", "mazes/train.txt#0", "mazes/train.txt#1"),
        "train.txt#2",
    ]
    assert [level.raw.title for level in packs] == [*TITLES[:2], *TITLES[:2], TITLES[2]]


def test_a_level_that_is_named_twice_gets_a_number(namesakes):
    one, other = (path / "one.toml" for path in namesakes[:2])
    assert [level.name for level in load_levels([one, one])] == ["one.toml", "one.toml (2)"]
    names = [level.name for level in load_levels([one, other, one])]
    assert names == ["caves/one.toml", "mazes/one.toml", "caves/one.toml (2)"]
    assert [level.name for level in load_levels([LEVELS[0]] * 3)] == [TITLES[0], f"{TITLES[0]} (2)", f"{TITLES[0]} (3)"]
    alone = load_level(one)
    assert load_levels([alone, LEVELS[1]])[0] is alone, "nothing else is renamed"


def test_a_pack_named_many_times_is_opened_once(files, opened):
    names = [str(files / f"pack.txt#{number}") for number in (0, 1, 2)]
    assert [level.raw.title for level in load_levels(names)] == list(TITLES)
    assert opened == {"pack.txt": 1}
    opened.clear()
    for name in names:
        load_levels([name])
    assert opened == {"pack.txt": 3}


@pytest.mark.parametrize("name", ["one.toml", "one.map", "attract", "pack.txt", "pack.txt#0-1", "five"])
def test_the_reference_of_a_level_denotes_it_alone(files, name):
    for ref in resolve(str(files / name)):
        assert resolve(ref.reference) == (ref,)


def test_references_of_built_in_levels_are_their_names(builtin, tmp_path, monkeypatch):
    assert [ref.reference for ref in resolve("walks")] == ["walks/a", "walks/b"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walks").mkdir()
    (tmp_path / "walks" / "a").touch()
    (ref,) = resolve(Path("walks/a"))
    assert ref.reference == str(tmp_path / "walks" / "a")  # the relative path is the name of a built-in level
    assert resolve(ref.reference)[0].path == tmp_path / "walks" / "a"
