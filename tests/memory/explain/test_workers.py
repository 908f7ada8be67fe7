import json
import multiprocessing
import os
import shutil
import time
import types
from multiprocessing import spawn
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import nclone_env
from nclone_env.memory import profile
from nclone_env.memory.explain.workers import WorkerLines, _loads, _wait, _with_file, trace
from nclone_env.memory.measure.snapshots import tracing

PACKAGE = Path(nclone_env.__file__).parent


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
    while not (list(Path(lines._folder).glob("*.json")) and lines.taken()) and process.is_alive():
        time.sleep(0.1)
    taken = lines.taken()
    ended.set()
    shares, keepers = lines.close(0, 1)
    process.join()
    line = f"{__file__}:{work.__code__.co_firstlineno + 4}"
    assert max(shares, key=lambda place: shares[place]) == line
    assert [keeper.name for keeper in keepers if keeper.line == line] == [f"work.kept in {process.name}"]
    assert spawn.get_preparation_data is before
    assert set(taken) == {process.pid}
    assert taken[process.pid] is None or taken[process.pid] > 100_000
    assert not lines.taken()


def test_a_line_of_a_function_sent_by_cloudpickle_has_its_file():
    def make() -> Any:
        return lambda: [first]

    sent = cloudpickle.loads(cloudpickle.dumps(make))
    first = make.__code__.co_firstlineno
    assert sent.__code__.co_filename == "<dynamic-code>"
    assert _with_file(f"<dynamic-code>:{first + 1}") == f"{__file__}:{first + 1}"
    assert _with_file("<dynamic-code>:0") == "<dynamic-code>:0"
    assert _with_file("other.py:7") == "other.py:7"


@pytest.fixture
def grown(monkeypatch):
    """Lines of workers of which one took 20 MB in 3 s, and another began meanwhile."""
    monkeypatch.setattr("nclone_env.memory.measure.process.command_of", lambda process: f"command {process}")
    lines = WorkerLines()
    lines.open()
    monkeypatch.setattr("time.perf_counter", iter([0.0, 1.0, 2.0, 3.0, 4.0]).__next__)
    for place, sizes in enumerate(
        [{7: 1}, {7: 10_000_000, 8: 1}, {7: 20_000_000, 8: 2}, {7: 30_000_000, 9: 5_000_000}]
    ):
        lines.note(float(place), sizes)
    return lines


def test_processes_that_grow_without_lines_are_named_with_what_they_grew_in_the_judged_part(grown):
    lines, names = grown, ["process 7: command 7", "process 9: command 9"]
    shares, keepers = lines.close(1.0, 3.0)
    assert not shares
    assert [(keeper.name, keeper.kind) for keeper in keepers] == list(zip(names, ["+19.07 MB", "+4.77 MB"]))


def test_processes_say_what_the_profiler_has_taken_in_them(grown):
    for process, text in ((7, "4096"), (8, "")):
        (grown._folder / f"{process}.taken").write_text(text)
    os.utime(grown._folder / "8.taken", (0, 0))  # it takes more for however long
    assert grown.taken() == {7: 4096, 8: None}
    grown.close(0.0, 3.0)


def test_every_second_note_on_processes_is_dropped(grown):
    grown.thin()
    shares, (keeper,) = grown.close(0.0, 3.0)
    assert not shares
    assert keeper.kind == "+19.07 MB"  # of the first and the third note
    grown.clear()
    assert grown.close(0.0, 3.0) == ({}, ())


@pytest.mark.parametrize(("rate", "is_named"), [(5e6, True), (2e6, True), (1e6, False)])
def test_lines_that_explain_less_than_a_tenth_are_not_named(grown, rate, is_named):
    """Of 25 MB in 2 s: the rest is memory of native code, which workers do not trace."""
    keeper = [f"{__file__}:1", "kept", "list", 0]
    (grown._folder / "7.json").write_text(json.dumps(({f"{__file__}:1": rate}, [keeper])))
    shares, keepers = grown.close(1.0, 3.0)
    assert shares == ({f"{__file__}:1": 1.0} if is_named else {})
    assert keepers[0].name == ("kept" if is_named else "process 7: command 7")


def test_a_child_of_multiprocessing_has_its_name(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.measure.process.command_of", lambda process: "command")
    child = multiprocessing.get_context("fork").Process(target=int, name="Worker-3", daemon=True)
    child.start()
    lines = WorkerLines()
    for place, size in enumerate([0, 4096]):
        lines.note(float(place), {child.pid: size})
    _, (keeper,) = lines.close(0.0, 1.0)
    child.join()
    assert keeper.name == f"process {child.pid}, Worker-3: command"


def frame_in(file, function="run"):
    found: dict[str, Any] = {}
    exec(compile(f"import sys\ndef {function}():\n    return sys._getframe()", str(file), "exec"), found)
    return found[function]()


@pytest.mark.parametrize(
    ("file", "loads"),
    [
        (PACKAGE / "jit" / "inner.py", True),
        (PACKAGE / "jit" / "decorators.py", False),
        (PACKAGE / "env" / "vector.py", False),
        ("/lib/numba/core/typeinfer.py", True),
        ("/lib/numba/core/serialize.py", False),  # takes a fifth of the time of numba.typed.Dict
        ("/lib/numba/core/typing/typeof.py", False),
        ("/lib/numba/np/ufunc/gufunc.py", False),
        ("/lib/torch/_inductor/graph.py", True),
        ("/lib/torch/_inductor/output_code.py", False),
        ("/lib/torch/_dynamo/convert_frame.py", True),
        ("/lib/torch/_dynamo/eval_frame.py", False),
        ("/lib/jax/_src/interpreters/mlir.py", True),
        ("/lib/jax/_src/interpreters/pxla.py", False),
        ("<frozen importlib._bootstrap>", True),
        ("/home/user/train.py", False),
    ],
)
def test_code_that_calls_what_was_compiled_is_not_left_out(file, loads):
    assert _loads(frame_in(file)) is loads


@pytest.mark.parametrize(("function", "loads"), [("_handle_fromlist", False), ("_find_and_load_unlocked", True)])
def test_an_import_of_what_is_there_is_not_left_out(function, loads):
    assert _loads(frame_in("<frozen importlib._bootstrap>", function)) is loads


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
        lines.close(0, 1)
    assert not lines.are_loading()


def test_what_imports_left_free_goes_back_to_the_system_once_they_have_ended(tmp_path, monkeypatch):
    """It is resident: what a leak takes there would not show."""
    loads, trims = [True, False, False, True, False, False], []
    monkeypatch.setattr("nclone_env.memory.explain.workers.is_loading", lambda: loads.pop(0))
    library = types.SimpleNamespace(malloc_trim=lambda pad: trims.append(loads[:]))
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    monkeypatch.setattr("time.sleep", lambda seconds: None if loads else shutil.rmtree(tmp_path))
    _wait(tmp_path)
    assert trims == [[False, True, False, False], [False]]


@pytest.mark.parametrize(("ago", "taken"), [(1e-9, 20_000_000), (1e9, 30_000_000)])
def test_what_a_program_takes_while_the_profiler_is_imported_is_its_own(ago, taken, tmp_path, monkeypatch):
    """Of 30 MB, by the 10 MB that it had taken before, in however long a time."""
    sizes = iter([50_000_000, 80_000_000])
    monkeypatch.setattr("nclone_env.memory.explain.workers._SNAPSHOTS", 1)
    monkeypatch.setattr("nclone_env.memory.explain.workers._private_bytes", lambda: next(sizes))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with tracing():
        trace(tmp_path, time.perf_counter() - ago, 40_000_000)
    assert int((tmp_path / f"{os.getpid()}.taken").read_text()) == pytest.approx(taken, rel=1e-3)


@pytest.mark.parametrize(("workers", "floor"), [(0, 1024**2), (8, 1024**2), (24, 3 * 1024**2)])
def test_the_floor_of_workers_is_an_arena_or_that_of_each(workers, floor):
    watch = profile()
    watch._workers.note(0.0, dict.fromkeys(range(-workers, 0), 1))
    watch._workers.note(1.0, {})  # they have ended
    assert watch._floors()["workers"] == floor
