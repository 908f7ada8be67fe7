from pathlib import Path

import pytest

from nclone_env.errors import UnknownLevelError
from nclone_env.level import catalog
from nclone_env.level.catalog import level_name, level_sets, levels_folder, resolve
from nclone_env.level.formats.reader import read_level


@pytest.fixture
def builtin(tmp_path, monkeypatch):
    """A package folder with two built-in sets, in a checkout."""
    for name in ("walks/b.toml", "walks/a.toml", "walks/README.md", "jumps/gap.toml", "empty/note.txt"):
        path = tmp_path / "levels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "package")
    return tmp_path / "levels"


def test_sets_and_files_are_sorted(builtin):
    assert level_sets() == {
        "jumps": (builtin / "jumps/gap.toml",),
        "walks": (builtin / "walks/a.toml", builtin / "walks/b.toml"),
    }


def test_installed_package_brings_its_levels(builtin, tmp_path):
    assert levels_folder() == builtin
    (tmp_path / "package/_levels/only").mkdir(parents=True)
    (tmp_path / "package/_levels/only/one.toml").touch()
    assert levels_folder() == tmp_path / "package/_levels"
    assert list(level_sets()) == ["only"]


def test_no_levels_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "nowhere")
    assert level_sets() == {}
    with pytest.raises(UnknownLevelError, match="levels: none"):
        resolve("walks")


def test_names_resolve_to_sets_and_levels(builtin):
    assert resolve("walks") == (builtin / "walks/a.toml", builtin / "walks/b.toml")
    assert resolve("walks/b") == (builtin / "walks/b.toml",)
    assert level_name(builtin / "walks/b.toml") == "walks/b"
    assert level_name(Path("/x/y/12")) == "12"


def test_paths_resolve_to_files(builtin, tmp_path, monkeypatch):
    folder = tmp_path / "walks"
    folder.mkdir()
    for name in ("2.map", "1.toml", "12", ".hidden", "README.md"):
        (folder / name).touch()
    assert resolve(folder) == resolve(str(folder)) == (folder / "1.toml", folder / "12", folder / "2.map")
    assert resolve(str(folder / "README.md")) == (folder / "README.md",)
    monkeypatch.chdir(tmp_path)
    assert resolve("walks")[0] == builtin / "walks/a.toml"
    assert resolve("./walks") == resolve(Path("walks")) == (Path("walks/1.toml"), Path("walks/12"), Path("walks/2.map"))


def test_folder_without_levels(tmp_path):
    with pytest.raises(UnknownLevelError, match=r"expected a folder of level files .* got none in it"):
        resolve(tmp_path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("walk", "did you mean 'walks'"),
        ("walks/bb", "did you mean 'walks/b'"),
        ("gap", "did you mean 'jumps/gap'"),
        ("jumps/gap.toml", "did you mean 'jumps/gap'"),
        ("zzzzzz", r"got 'zzzzzz'\."),
        ("", "got ''"),
        ("y" * 5000, "got 'yyy"),
        ("a\0b", "got 'a.*b'"),
    ],
)
def test_unknown_names_list_what_exists(builtin, tmp_path, monkeypatch, name, hint):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownLevelError, match=hint) as error:
        resolve(name)
    assert "Built-in sets and their levels: jumps: gap; walks: a, b" in str(error.value)


def test_every_built_in_level_reads():
    for name, paths in level_sets().items():
        for path in paths:
            assert level_name(path) == f"{name}/{path.stem}"
            assert read_level(path).title
