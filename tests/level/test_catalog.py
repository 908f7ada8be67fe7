"""The built-in levels: where they are and what they are called."""

from nclone_env.level import catalog, level_sets, load_level
from nclone_env.level.catalog import levels_folder


def test_sets_and_files_are_sorted(builtin):
    assert list(level_sets().items()) == [("jumps", ("jumps/gap",)), ("walks", ("walks/a", "walks/b"))]


def test_numbers_in_names_are_sorted_by_value(builtin):
    for name in ("walks-10/a", "walks-9/10", "walks-9/9", "walks-9/9-b", "walks-9/10-a", "trees/a"):
        path = builtin / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert list(level_sets()) == ["jumps", "trees", "walks", "walks-9", "walks-10"]
    assert level_sets()["walks-9"] == ("walks-9/9", "walks-9/9-b", "walks-9/10", "walks-9/10-a")


def test_installed_package_brings_its_levels(builtin, tmp_path):
    assert levels_folder() == builtin
    (tmp_path / "package/_levels/only").mkdir(parents=True)
    (tmp_path / "package/_levels/only/one.toml").touch()
    assert levels_folder() == tmp_path / "package/_levels"
    assert list(level_sets()) == ["only"]


def test_a_folder_that_does_not_exist_has_no_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "nowhere")
    assert level_sets() == {}


def test_every_built_in_level_loads_under_its_name():
    for name, levels in level_sets().items():
        for level in map(load_level, levels):
            assert level.name.startswith(f"{name}/")
            assert level.raw.title
