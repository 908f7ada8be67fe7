"""Resumed runs that do not wait for a later second."""

import pytest

from nclone_env.train.runs import trackers


@pytest.fixture
def at_once(monkeypatch):
    """Let a run be resumed in the second in which it was stopped; only TensorBoard might show its rows in disorder."""
    monkeypatch.setattr(trackers, "_await_later_name", lambda folder: None)
