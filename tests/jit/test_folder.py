"""Where compiled code is kept, and for how long."""

import os
import time
from pathlib import Path

import pytest

from nclone_env._cache import cache_root, distrust
from nclone_env.errors import ConfigError
from nclone_env.jit import cache_folder
from nclone_env.jit.cache import CodeFiles
from nclone_env.jit.folder import remove_unused_code
from nclone_env.jit.sources import compiler_digest

from ..processes import run_copy


@pytest.mark.parametrize(
    "setting",
    ["BOUNDSCHECK=1", "OPT=1", "OPT=max", "DEBUGINFO=1", "LOOP_VECTORIZE=0", "SLP_VECTORIZE=1", "DEBUG_JIT=1"],
)
def test_settings_of_numba_have_a_folder_of_their_own(tmp_path, setting):
    where = "import sys; from nclone_env.jit import cache_folder; sys.stdout.write(str(cache_folder()))"
    (tmp_path / "where.py").write_text(where)
    name, value = setting.split("=")
    folder, _ = run_copy(
        tmp_path / "where.py", **{f"NUMBA_{name}": value}, NCLONE_ENV_CACHE_DIR=str(tmp_path / "cache")
    )
    assert Path(folder).is_dir()
    assert Path(folder).parent == tmp_path / "cache"
    assert Path(folder).name != compiler_digest()


@pytest.mark.parametrize("variable", ["NCLONE_ENV_CACHE_DIR", "XDG_CACHE_HOME"])
@pytest.mark.parametrize(
    ("value", "folder"),
    [
        *(("~/kernels", "{home}/kernels"), ("~", "{home}"), ("~no-such-user", "{here}/~no-such-user")),
        *(("x", "{here}/x"), ('"/a b"', "/a b"), ("'~/kernels'\r", "{home}/kernels"), ("/a\r\n", "/a")),
    ],
)
def test_a_variable_that_no_shell_expanded_means_the_home_folder(tmp_path, monkeypatch, variable, value, folder):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NCLONE_ENV_CACHE_DIR", raising=False)
    monkeypatch.setenv(variable, value)
    found = cache_root() if variable == "NCLONE_ENV_CACHE_DIR" else cache_root().parent
    assert found == Path(folder.format(home=tmp_path, here=Path.cwd()))


def test_an_address_is_no_folder(monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", "s3://bucket/kernels")
    with pytest.raises(ConfigError, match="NCLONE_ENV_CACHE_DIR: expected a path on this machine, got 's3://bucket/k"):
        cache_root()


def test_without_a_folder_there_is_a_warning(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(blocker))
    with pytest.warns(RuntimeWarning, match="kernels are not cached: .*: Not a directory; set NCLONE_ENV_CACHE_DIR"):
        assert cache_folder.__wrapped__() is None


def test_it_is_private(tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path / "cache"))
        folder = cache_folder.__wrapped__()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]
    assert distrust(folder) == ""


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_one_that_others_can_write_is_refused(tmp_path, monkeypatch, depth, mode):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path / "cache"))
    path = (cache_folder.__wrapped__(), tmp_path / "cache")[depth]
    path.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"{path}: can be written by others"):
        assert cache_folder.__wrapped__() is None
    path.chmod(0o755)
    assert cache_folder.__wrapped__() is not None


def test_the_root_may_be_shared_if_no_user_can_rename_what_others_own(tmp_path, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o1777)
    assert cache_folder.__wrapped__() is not None


@pytest.mark.parametrize("depth", [0, 1])
def test_one_of_another_user_is_refused(tmp_path, monkeypatch, depth):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path / "cache"))
    path = (cache_folder.__wrapped__(), tmp_path / "cache")[depth]
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if owner == 0:
        assert cache_folder.__wrapped__() is not None, "what root has made is trusted"
        os.chown(path, 54321, -1)
        owner = 54321
    with pytest.warns(RuntimeWarning, match=f"{path}: belongs to user {owner}"):
        assert cache_folder.__wrapped__() is None


def planted(path, how):
    """Make a file look as if another user had put it there, or could have written to it."""
    if how == "owner":
        os.chown(path, 54321, -1)
    elif how == "link":
        aside = path.with_name("aside")
        path.rename(aside)
        os.chown(aside, 54321, -1)
        path.symlink_to(aside)
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.chmod(int(how, 8))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("how", ["owner", "link", "pipe", "664", "646"])
def test_a_file_that_others_put_there_is_not_used(tmp_path, how):
    """Also after the folder was closed to them; it is replaced."""
    files = CodeFiles("kernel", lambda: tmp_path)
    files.save(("key",), "code")
    path = tmp_path / files._file_name(("key",))
    planted(path, how)
    assert files.load(("key",)) is None
    files.save(("key",), "code again")
    assert files.load(("key",)) == "code again"
    path.chmod(0o444)
    assert files.load(("key",)) == "code again", "a cache that can only be read"


@pytest.mark.parametrize("mask", [0, 0o002, 0o022, 0o077])
def test_files_are_closed_to_others_whatever_new_files_are(tmp_path, mask):
    before = os.umask(mask)
    try:
        files = CodeFiles("kernel", lambda: tmp_path)
        files.save(("key",), "code")
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644 & ~mask
    assert files.load(("key",)) == "code"


def test_without_home_it_is_among_the_temporary_files(tmp_path, monkeypatch):
    for name in ("NCLONE_ENV_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def unknown():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    assert cache_root() == tmp_path / f"nclone_env-{os.getuid()}"


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
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["1" * 16, "ab", "levels", compiler_digest()])
    make_folder(tmp_path, "0" * 16, 31)
    cache_folder.__wrapped__()
    assert (tmp_path / ("0" * 16)).is_dir()  # nothing is looked for while the folder is there


def test_use_is_noted(tmp_path, monkeypatch):
    monkeypatch.setenv("NCLONE_ENV_CACHE_DIR", str(tmp_path))
    make_folder(tmp_path, compiler_digest(), 31)
    folder = cache_folder.__wrapped__()
    assert time.time() - folder.stat().st_mtime < 3600
    assert (folder / "code").exists()


def test_a_folder_that_is_removed_meanwhile_is_no_error(tmp_path):
    remove_unused_code(tmp_path / "gone")


def test_compiling_removes_the_code_that_was_not_used_for_a_month(tmp_path):
    files = CodeFiles("kernel", lambda: tmp_path)
    for name, days in (("old", 31), ("used", 31), ("recent", 29)):
        files.save((name,), "code")
        then = time.time() - days * 86400
        os.utime(tmp_path / files._file_name((name,)), (then, then))
    assert files.load(("used",)) == "code"
    remove_unused_code.cache_clear()
    files.save(("new",), "code")
    assert [files.load((name,)) for name in ("old", "used", "recent", "new")] == [None, "code", "code", "code"]
