from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing import spawn
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from nclone_env.memory.workers import WorkerLines, _with_file


def work(began: Any, ended: Any) -> None:
    kept: list[bytes] = []
    began.set()
    while not ended.is_set():
        kept.append(bytes(4000))
        time.sleep(0.001)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_names_its_line_and_the_keeper(method):
    context, lines, before = multiprocessing.get_context(method), WorkerLines(), spawn.get_preparation_data
    lines.open()
    began, ended = context.Event(), context.Event()
    process = context.Process(target=work, args=(began, ended), daemon=True)
    process.start()
    assert began.wait(60)  # imports of a process that has just begun would be lines that grow
    lines.request()
    while not list(Path(lines._folder).glob("*.json")) and process.is_alive():
        time.sleep(0.1)
    ended.set()
    shares, keepers = lines.close()
    process.join()
    line = f"{__file__}:{work.__code__.co_firstlineno + 4}"
    assert max(shares, key=lambda place: shares[place]) == line
    assert [keeper.name for keeper in keepers if keeper.line == line] == [f"work.kept in {process.name}"]
    assert spawn.get_preparation_data is before


def test_a_line_of_a_function_sent_by_cloudpickle_has_its_file():
    def make() -> Any:
        return lambda: [first]

    sent = cloudpickle.loads(cloudpickle.dumps(make))
    first = make.__code__.co_firstlineno
    assert sent.__code__.co_filename == "<dynamic-code>"
    assert _with_file(f"<dynamic-code>:{first + 1}") == f"{__file__}:{first + 1}"
    assert _with_file("<dynamic-code>:0") == "<dynamic-code>:0"
    assert _with_file("other.py:7") == "other.py:7"


def test_processes_that_grow_without_lines_are_named(monkeypatch):
    sizes = iter([{7: 10_000_000, 8: 1}, {7: 30_000_000, 8: 2}, {}])
    monkeypatch.setattr("nclone_env.memory.process.worker_sizes", lambda field: next(sizes))
    monkeypatch.setattr("nclone_env.memory.process.command_of", lambda process: f"command {process}")
    lines = WorkerLines()
    lines.open()
    for _ in range(3):
        lines.note()
    shares, (keeper,) = lines.close()
    assert not shares
    assert (keeper.name, keeper.kind) == ("process 7: command 7", "+19.07 MB")


def test_a_worker_that_imports_gives_a_sign():
    lines = WorkerLines()
    assert not lines.are_loading()
    lines.open()
    try:
        assert not lines.are_loading()
        sign = lines._folder / "7.loading"
        sign.touch()
        assert lines.are_loading()
        os.utime(sign, (0, 0))  # the process has gone on
        assert not lines.are_loading()
    finally:
        lines.close()
    assert not lines.are_loading()
