"""``nclone-env data export``: what it refuses; ``tests/compat/test_minari.py`` writes data sets."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from nclone_env.cli.app import main


def test_minari_is_needed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "minari", None)
    assert main(["data", "export", "first-steps", "--name", "a-v0"]) == 2
    assert 'minari is not installed; run pip install ".[minari]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        (("no-such-level",), "no-such-level"),
        (("empty",), "sources: expected submissions, or recordings that finish their level, got []"),
        ((), "sources: expected submissions, or recordings that finish their level, got []"),
    ],
)
def test_wrong_sources_are_named(sources, error, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "minari", ModuleType("minari"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["data", "export", *sources, "--name", "a-v0"]) == 2
    assert error in capsys.readouterr().err
