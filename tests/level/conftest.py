"""Built-in levels of the tests."""

import pytest

from nclone_env.level import catalog


@pytest.fixture
def builtin(tmp_path, monkeypatch):
    """A package folder with two built-in sets, in a checkout."""
    for name in ("walks/b.toml", "walks/a.toml", "walks/README.md", "jumps/gap.toml", "empty/note.txt"):
        path = tmp_path / "levels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(catalog, "_PACKAGE", tmp_path / "package")
    return tmp_path / "levels"
