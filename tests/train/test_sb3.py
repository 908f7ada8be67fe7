"""The adapter for Stable-Baselines3 where that is not installed; ``make compat-sb3`` tests it with the real one."""

from __future__ import annotations

import importlib
import sys

import pytest

from nclone_env.errors import MissingExtraError


def test_without_stable_baselines3_the_error_names_the_extra(monkeypatch):
    for name in ("stable_baselines3", "stable_baselines3.common.vec_env"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "nclone_env.train.sb3", raising=False)
    with pytest.raises(MissingExtraError, match=r'stable-baselines3 is not installed; .* "\.\[sb3\]"'):
        importlib.import_module("nclone_env.train.sb3")
