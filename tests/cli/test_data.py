"""``nclone-env data export``: what it refuses; ``tests/compat/test_minari.py`` writes data sets."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from nclone_env.cli.app import main


def test_sources_and_minari_are_needed(monkeypatch, capsys):
    assert main(["data", "export", "--name", "a-v0"]) == 2
    assert "sources: expected submissions, recordings or built-in levels, got none" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "minari", None)
    assert main(["data", "export", "first-steps", "--name", "a-v0"]) == 2
    assert 'minari is not installed; run pip install ".[minari]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "error"),
    [("no-such-level", "no-such-level"), ("empty", "sources: expected submissions, or recordings that finish")],
)
def test_wrong_sources_are_named(source, error, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "minari", ModuleType("minari"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["data", "export", source, "--name", "a-v0"]) == 2
    assert error in capsys.readouterr().err
