import pytest


@pytest.fixture
def few_snapshots(monkeypatch):
    """Keep a third of the snapshots, as each takes milliseconds; when half of them were dropped, six are yet judged.

    Keepers are not looked for: in the heap of all tests that takes all the seconds there are.
    """
    for search in ("find_keepers", "find_graphs"):
        monkeypatch.setattr(f"nclone_env.memory.watch.{search}", lambda *arguments: ())
    monkeypatch.setattr("nclone_env.memory.watch._CAPACITY", 24)
    monkeypatch.setattr("nclone_env.memory.watch._MOST_APART", 1.12)
