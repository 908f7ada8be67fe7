"""The progress line."""

import ast
import io
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from nclone_env import cli
from nclone_env._table import bar
from nclone_env.cli import progress as progress_module
from nclone_env.cli.progress import (
    EndedError,
    LevelProgress,
    StatusLine,
    TrainingProgress,
    ended_by_signals,
    progress_line,
    remaining,
    say,
    stop_on_signals,
)

ROW = {
    "timesteps": 250_000,
    "steps_per_second": 43_210.9,
    "episodes": 1234,
    "success_rate": 0.5,
    "min_success_rate": 0.25,
    "mean_return": 3.14159,
    "kilobytes_per_environment": 0.72,
}


def test_line():
    assert progress_line(ROW, 1_000_000, 12.4) == (
        "[#####               ]  25%   12 s, 17 s left  43,211 steps/s  1,234 episodes  success 50.0% (worst 25.0%)  "
        "return 3.14  0.7 KB/env"
    )


def test_remaining_time():
    texts = [remaining(seconds) for seconds in (0.0, 119.4, 120.0, 7100.0, 7200.0, 90_000.0)]
    assert texts == ["0 s left", "119 s left", "2 min left", "118 min left", "2.0 h left", "25.0 h left"]


def test_line_before_the_first_episode_ends():
    nan = float("nan")
    row = ROW | {"episodes": 0, "success_rate": nan, "min_success_rate": nan, "mean_return": nan}
    assert progress_line(row, 1_000_000, 1.0).endswith("0 episodes  0.7 KB/env")


def test_plain_stream_gets_periodic_lines_and_the_last_one():
    stream = io.StringIO()
    progress = TrainingProgress(1_000_000, stream, interval=1e9)
    for _ in range(3):
        progress(ROW)
    assert stream.getvalue() == ""
    progress.finish()
    assert stream.getvalue().count("\n") == 1
    assert "25%" in stream.getvalue()
    assert "left" not in stream.getvalue()  # nothing follows the last line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_gets_one_line_rewritten():
    stream = Terminal()
    progress = TrainingProgress(1_000_000, stream)
    progress(ROW)
    progress(ROW)
    assert stream.getvalue().count("\r\x1b[K") == 2
    assert "\n" not in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "written"),
    [(Terminal(), "\r\x1b[Ka\r\x1b[Kb\n\r\x1b[Kc\r\x1b[K"), (io.StringIO(), "b\n")],
    ids=["terminal", "file"],
)
def test_lines_that_stay_take_the_place_of_the_live_one(stream, written):
    line = StatusLine(stream)
    line.show("a")
    line.put("b")
    line.show("c")
    line.clear()
    assert stream.getvalue() == written


def test_a_plain_stream_gets_lines_now_and_then():
    now, often = io.StringIO(), StatusLine(stream := io.StringIO(), interval=0.0)
    for text in ("a", "b"):
        StatusLine(now, interval=1e9).show(text)
        often.show(text)
    assert (now.getvalue(), stream.getvalue()) == ("", "a\nb\n")


def test_bar():
    assert [bar(share) for share in (0.0, 0.5, 1.0)] == [f"[{' ' * 20}]", f"[{'#' * 10}{' ' * 10}]", f"[{'#' * 20}]"]


def test_what_few_rows_have_stays_in_the_line():
    stream = io.StringIO()
    progress = TrainingProgress(1_000_000, stream, interval=0.0)
    progress(ROW | {"held_out_success": 0.125, "held_out_any": 0.5})
    progress(ROW)
    assert stream.getvalue().count("return 3.14  held out 12.5% (any 50.0%)  0.7 KB/env") == 2


def test_time_is_that_since_the_preparation(monkeypatch):
    clock = iter([0.0, 0.0, 40.0, 47.0, 48.0])  # the display and its line are made, a part is compiled, two rows come
    monkeypatch.setattr("nclone_env.cli.progress.time.monotonic", lambda: next(clock))
    progress = TrainingProgress(1_000_000, Terminal())
    progress.begin()
    progress(ROW)
    assert progress.seconds == 7.0
    progress.begin()  # a part that is prepared later does not set it back
    assert progress.seconds == 7.0


def test_preparation_on_a_plain_stream():
    stream = io.StringIO()
    progress = LevelProgress(stream, interval=0.0)
    progress.level("solutions planned", 1, 4)
    progress.level("solutions planned", 3, 4)
    progress.level("solutions planned", 1, 2)
    progress.level("levels generated", 8, 1_024)
    progress.stage("environments", 12.34)
    progress.stage("storage", 0.09)  # not worth a line
    assert stream.getvalue().splitlines() == [
        "  [#####               ] 1/4 solutions planned  0 s",
        "  [###############     ] 3/4 solutions planned  0 s, 0 s left",
        "  [##########          ] 1/2 solutions planned  0 s",
        "  [                    ] 8/1,024 levels generated  0 s",
        "  environments ready after 12.3 s",
    ]


class Unread(io.StringIO):
    """A stream whose reader has ended, or that is closed, or in the middle of a write."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


@pytest.fixture
def handlers(monkeypatch):
    """Give the signals their default handlers, also where they are ignored, and back."""
    monkeypatch.setattr(progress_module, "_TWICE", 0.0)
    before = {number: signal.getsignal(number) for number in progress_module._SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", progress_module._SIGNALS, ids=str)
@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "full"), ValueError("closed"), RuntimeError("busy")])
def test_a_message_that_cannot_be_written_stops_nothing(number, error, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Unread(error))
    with stop_on_signals("stopping") as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL, "a second one ends the process"
    assert stop.exit_status == 128 + number
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("handlers")
def test_a_signal_that_is_sent_twice_at_once_counts_once(monkeypatch):
    """``timeout`` sends one to the process and one to its group; the second would end it as by default."""
    monkeypatch.setattr(progress_module.time, "sleep", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with stop_on_signals("stopping") as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
    assert stop.exit_status == 143


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("context", [lambda: stop_on_signals("stopping"), ended_by_signals])
def test_a_signal_that_is_ignored_stays_so(context):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with context() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert stop is None or not stop()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.usefixtures("handlers")
def test_a_signal_ends_a_command_once(monkeypatch):
    monkeypatch.setattr(progress_module.time, "sleep", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    removed = []
    with pytest.raises(EndedError, match="ended by SIGTERM") as raised, ended_by_signals():  # noqa: PT012
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            removed.append(signal.getsignal(signal.SIGTERM))
    assert raised.value.number == signal.SIGTERM
    assert removed == [signal.SIG_DFL], "the second one ends the process"
    with ended_by_signals(), stop_on_signals("stopping") as stop:  # a command that saves is asked first
        signal.raise_signal(signal.SIGTERM)
        assert stop()


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "full")])
def test_an_output_that_cannot_be_written_is_a_request_to_stop(error, monkeypatch):
    stream, done = Unread(error), []
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(OSError) as raised:  # noqa: PT012, SIM117 - what follows the failure goes on
        with stop_on_signals("stopping") as stop:
            sys.stdout.write("a")
            say("b")
            TrainingProgress(1_000_000, interval=0.0)(ROW)
            LevelProgress(interval=0.0).level("levels", 1, 2)
            done.append(stop())
    assert raised.value is error
    assert done == [True]
    assert sys.stdout is stream
    with stop_on_signals("stopping") as stop:  # stderr alone asks for nothing
        monkeypatch.setattr(sys, "stderr", Unread(error))
        assert not stop()


def test_a_line_of_progress_that_cannot_be_written_is_left_out():
    for line in (StatusLine(Unread(BrokenPipeError()), 0.0), LevelProgress(Unread(OSError(28, "full")), 0.0)):
        line.show("a")
        line.clear()
        with pytest.raises(OSError):
            line.put("what stays is output")


def test_another_thread_may_wait_for_signals_in_vain():
    """They go to the main thread, and only that may set handlers."""
    said = []

    def work():
        with stop_on_signals("stopping") as stop:
            said.append(stop())

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert said == [False]
    assert signal.getsignal(signal.SIGTERM) == before


def test_names_reach_the_terminal_with_escapes(capsys):
    hostile = "a\x1b]0;owned\x07\n0 findings\r\u202e\x9b31m"
    say(f"wrote {hostile}", "b")
    StatusLine(stream := Terminal()).put(f"wrote {hostile}")
    out = capsys.readouterr().out
    assert out.split("\n")[1:] == ["b", ""]
    assert all(line.isprintable() for line in out.split("\n"))
    assert "\x1b]" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()


def test_commands_write_by_say_alone():
    """So that no file named by a stranger reaches the terminal as it is."""
    found = set()
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if called in ("print", "sys.stdout.write", "sys.stderr.write"):
                found.add(path.stem)
    assert found <= {"app", "progress", "profile", "profile_script"}
