"""Whose a file is."""

from __future__ import annotations

import sys

import pytest

from nclone_env.memory.traced import is_own


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/usr/lib/python3/dist-packages/pandas/core.py", False),
        ("/other/venv/lib/python3.12/site-packages/torch/nn.py", False),
        ("{folder}/listed/module.py", False),
        ("{folder}/alone.py", False),
        ("{folder}/mine/module.py", True),
        ("{folder}/listed_not/module.py", True),
        ("/home/me/site-packages.py", True),
        ("<string>", False),
    ],
)
def test_libraries_are_libraries_wherever_they_are_installed(file, own, tmp_path, monkeypatch):
    """``pip --target`` installs into any folder, whose ``RECORD`` lists what is of a library."""
    monkeypatch.syspath_prepend(str(tmp_path))
    info = tmp_path / "listed-1.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("listed/module.py,sha256=x,3\nalone.py,,\nlisted-1.0.dist-info/RECORD,,\n")
    assert sys.path[0] == str(tmp_path)
    assert is_own(file.format(folder=tmp_path)) == own
