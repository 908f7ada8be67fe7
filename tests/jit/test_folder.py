"""Where compiled code is kept, and for how long."""

import os
import time
from pathlib import Path

from nclone_env.jit import cache_folder, source_digest

from ..processes import REPOSITORY, run_module


def test_bounds_checks_have_a_folder_of_their_own(tmp_path):
    where = "import sys; from nclone_env.jit import cache_folder; sys.stdout.write(str(cache_folder()))"
    (tmp_path / "where.py").write_text(where)
    path = {"NCLONE_ENV_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"{REPOSITORY}:{tmp_path}"}
    (folder,) = run_module("where", NUMBA_BOUNDSCHECK="1", **path)
    assert Path(folder).is_dir()
    assert Path(folder).parent == tmp_path / "cache"
    assert Path(folder).name != source_digest()


def test_an_unwritable_cache_falls_back_to_a_temporary_folder(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(blocker))
    folder = cache_folder.__wrapped__()
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    folder.rmdir()


def make_folder(root: Path, name: str, days: float) -> None:
    """Make a folder with a file in it that was last used so many days ago."""
    (root / name).mkdir()
    (root / name / "code").write_text("")
    then = time.time() - days * 86400
    os.utime(root / name, (then, then))


def test_a_new_folder_removes_those_not_used_for_a_month(tmp_path, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path))
    for name, days in (("0" * 16, 31), ("1" * 16, 29), ("removed-" + "2" * 16, 31), ("levels", 31), ("ab", 31)):
        make_folder(tmp_path, name, days)
    cache_folder.__wrapped__()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["1" * 16, "ab", "levels", source_digest()])
    make_folder(tmp_path, "0" * 16, 31)
    cache_folder.__wrapped__()
    assert (tmp_path / ("0" * 16)).is_dir()  # nothing is looked for while the folder is there


def test_use_is_noted(tmp_path, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path))
    make_folder(tmp_path, source_digest(), 31)
    folder = cache_folder.__wrapped__()
    assert time.time() - folder.stat().st_mtime < 3600
    assert (folder / "code").exists()
