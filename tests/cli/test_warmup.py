"""``nclone-env warmup``: all kernels, or those of a part."""

import pytest

from nclone_env.cli import warmup
from nclone_env.cli.app import main


@pytest.fixture
def run(monkeypatch):
    """Names of the tasks that were run in this process; none compiles anything."""
    names: list[str] = []
    tasks = [task._replace(run=lambda name=task.name: names.append(name)) for task in warmup._TASKS]
    monkeypatch.setattr(warmup, "_TASKS", tasks)
    monkeypatch.setattr(warmup, "available_cores", lambda: 1)
    monkeypatch.delenv("NCLONE_ENV_QUIET", raising=False)
    return names


def test_everything_by_default(run, capsys):
    assert main(["warmup"]) == 0
    assert run[-1] == "trainer"
    assert len(run) == len(warmup._TASKS) - 1, "all but what is for GPUs"
    assert capsys.readouterr().out.count(" ... ") == len(run)


def test_parts(run):
    assert main(["warmup", "train"]) == 0
    assert run == ["environment of the trainer", "video of an episode", "network and update", "trainer"]
    run.clear()
    assert main(["warmup", "plan", "sim"]) == 0
    assert run == ["simulator", "planner"]
    run.clear()
    assert main(["warmup", "cuda"]) == 0
    assert run == ["environment on a GPU"]
