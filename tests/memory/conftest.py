import pytest


@pytest.fixture
def few_snapshots(monkeypatch):
    """Keep a third of the snapshots, as each takes milliseconds; when half of them were dropped, six are yet judged."""
    monkeypatch.setattr("nclone_env.memory.watch._CAPACITY", 24)
    monkeypatch.setattr("nclone_env.memory.watch._MOST_APART", 1.12)
