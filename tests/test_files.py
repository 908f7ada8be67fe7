"""Temporary files where no lock on them can tell whether they are in use, as on Windows."""

import os
import time

import pytest

from nclone_env import _files


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(_files, "_OPENS_FOLDERS", False)
    monkeypatch.setattr(_files, "_REMOVES_OPEN", False)


def open_files() -> list[str]:
    return [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]


@pytest.mark.usefixtures("windows")
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_no_file_is_open_when_it_is_renamed(tmp_path, monkeypatch):
    renamed = []
    replace = os.replace

    def watched(left, right, **kwargs):
        assert os.path.realpath(left) not in open_files()
        renamed.append(right)
        replace(left, right, **kwargs)

    monkeypatch.setattr(os, "replace", watched)
    _files.write_file(tmp_path / "a", b"1")
    _files.write_file(tmp_path / "a", b"2")
    assert len(renamed) == 2
    assert (tmp_path / "a").read_bytes() == b"2"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("folder", [False, True])
def test_what_is_in_use_stays_and_what_is_a_day_old_goes(tmp_path, folder):
    with _files.temporary_beside(tmp_path / "a", folder=folder) as temporary:
        _files.remove_temporaries(tmp_path)
        assert temporary.exists()
        os.utime(temporary, (time.time() - 90_000,) * 2)
        _files.remove_temporaries(tmp_path)
        assert not temporary.exists()
