"""Commands that are asked to stop, or whose output nothing reads any more: what was done is saved."""

import csv
import json
import os
import signal
import sys
from contextlib import contextmanager, suppress

import pytest

from nclone_env import _files
from nclone_env.cli import benchmark as benchmarks
from nclone_env.cli.app import main
from nclone_env.jobs import evaluating, generating, showing, solving, validating
from nclone_env.train import loop
from nclone_env.train.policies.checkpoint import load_checkpoint
from tests.benchmark.bases import honest

SMALL = ["--num-envs", "4", "--num-steps", "8", "--hidden-size", "8", "--num-threads", "1", "--max-frames", "60"]
RUN = ["--checkpoint-interval", "1000", "--episodes", "1", "--no-video", "--output", "runs", "--name", "a"]
LEVELS = [f"first-steps/0{number}" for number in ("1-walk", "2-step", "6-hop")]


def saved_steps():
    """Return the steps of the run that were saved; the CSV tells how many there were."""
    with open("runs/a/learning_curve.csv") as file:
        played = [int(row["timesteps"]) for row in csv.DictReader(file)][-1]
    assert load_checkpoint("runs/a/checkpoint.pt").counters["timesteps"] == played
    return played // 32


def lines_in(name):
    with open(name) as file:
        return len([json.loads(line) for line in file])


def generated():
    with open("pack.txt") as file:
        assert len(file.readlines()) == len(os.listdir("pack-recordings")) == lines_in("pack.jsonl")
    return lines_in("pack.jsonl")


def in_journal(folder):
    with open(f"{folder}/shard-1-of-1.journal") as file:
        return len(file.readlines()) - 1


VALIDATE = ["levels", "validate", *LEVELS, "--output"]
SOLVE = ["solve", *LEVELS, "--frames", "3000", "--threads", "1", "--output"]
GENERATE = ["levels", "generate", "--count", "4", "--family", "pads", "--processes", "1", "--output"]
COMMANDS = {
    "train": (["train", *SMALL, *RUN, "--total-timesteps", "160"], (loop, "advance"), saved_steps),
    "solve": ([*SOLVE, "found"], (solving, "_search"), lambda: lines_in("found/solutions.jsonl")),
    "solve, a shard": ([*SOLVE, "parts", "--shard", "1/1"], (solving, "_search"), lambda: in_journal("parts")),
    "generate": ([*GENERATE, "pack.txt"], (generating, "_make"), generated),
    "generate, a shard": ([*GENERATE, "g", "--shard", "1/1"], (generating, "_make"), lambda: in_journal("g")),
    "validate": ([*VALIDATE, "rows.jsonl"], (validating, "_checked"), lambda: lines_in("rows.jsonl")),
    "validate, a shard": ([*VALIDATE, "v", "--shard", "1/1"], (validating, "_checked"), lambda: in_journal("v")),
}
"""Arguments, what is called for each part of the work, and what returns how many parts were saved."""


STREAMS = {
    "": ((), ()),
    "| tee": ((1,), ()),
    "2>&1 | tee": ((1, 2), ()),
    "2> >(head)": ((2,), ()),
    "2>&-": ((), (2,)),
    "<&-": ((), (0,)),
    "<&- 2>&1 | tee": ((1, 2), (0,)),
}
"""As a shell writes them: which streams lose their reader after two parts of the work, and which are closed before."""


@contextmanager
def closed(*numbers):
    """Close streams of the process; the system gives their numbers to the files that are opened next."""
    kept = {number: os.dup(number) for number in numbers}
    for number in numbers:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    try:
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)


@pytest.fixture
def pipes(tmp_path, monkeypatch):
    """Yield reader and writer of two pipes, by the number of the stream that they stand for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nclone_env.cli.progress._TWICE", 0.0)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it is ignored, as in a background job
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    made = {number: os.pipe() for number in (1, 2)}
    yield {number: (open(read), open(write, "w", buffering=1)) for number, (read, write) in made.items()}  # noqa: SIM115
    for number, handler in handlers.items():
        signal.signal(number, handler)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None)
CASES = [
    # Quick: every command, signal and kind of streams some times; with the slow tests all three with each other.
    pytest.param(command, number, streams, marks=[] if (i + j + k) % (2 * len(SIGNALS)) == 0 else pytest.mark.slow)
    for i, command in enumerate(COMMANDS)
    for j, number in enumerate(SIGNALS)
    for k, streams in enumerate(STREAMS)
    if number is not None or STREAMS[streams][0]  # else nothing happens
]


@pytest.mark.parametrize(("command", "number", "streams"), CASES)
def test_what_was_done_is_saved(command, number, streams, pipes, monkeypatch):
    unread, without = STREAMS[streams]
    words, (module, name), saved = COMMANDS[command]
    done, real = [], getattr(module, name)

    def work(*arguments):
        result = real(*arguments)
        if result is not None:
            done.append(result)
        if len(done) == 2 and result is not None:
            for stream in unread:
                pipes[stream][0].close()
            if number is not None:
                signal.raise_signal(number)
        return result

    monkeypatch.setattr(module, name, work)
    with monkeypatch.context() as context:
        for stream, attribute in ((1, "stdout"), (2, "stderr")):
            context.setattr(sys, attribute, pipes[stream][1])
        context.setattr(sys, "stdin", sys.stdin)
        with closed(*without):
            status = main(words)
    for ends in pipes.values():
        for end in ends:
            with suppress(OSError):
                end.close()
    kept = saved()
    lost = len(done) - kept
    assert 0 <= lost <= (2 if "shard" in command else 0), "a shard keeps no result of a task that may have been stopped"
    assert kept >= 1
    if number is not None:
        assert status in ((141, 128 + number) if 1 in unread else (128 + number,))
        assert len(done) in (2, 3), "threads may have begun another one"
    else:
        assert status == (141 if 1 in unread else 0)


SHOW = ["gallery", *LEVELS, "--output", "g"]
SUBMIT = ["benchmark", "submit", "builtin", "--track", "Builtin-v1", "--budget", "100m", "--output"]
EVALUATE = ["evaluate", "builtin", "--levels", LEVELS[0], "--episodes", "1", "--no-video", "--output", "e"]
ENDED = {
    "submit": ([*SUBMIT, "b.zip"], (evaluating, "_played"), ()),
    "submit, a shard": ([*SUBMIT, "b", "--shard", "1/1"], (evaluating, "_played"), ("b", "b/shard-1-of-1.journal")),
    "verify": (["benchmark", "verify", "a.zip"], (benchmarks, "_report"), ()),
    "table": (["benchmark", "table", "a.zip"], (_files, "synchronise"), ()),
    "gallery": (SHOW, (showing, "_files"), ()),
    "gallery, written": (SHOW, (_files, "synchronise"), ()),
    "gallery of a submission": (["gallery", "--recordings", "a.zip", "--output", "g"], (showing, "_files"), ()),
    "evaluate": (EVALUATE, (_files, "synchronise"), ("e",)),
}
"""Commands that keep nothing of what is half done: arguments, what is called in the middle, and what stays."""
ENDINGS = [
    pytest.param(command, number, unread, marks=[] if (i + j + k) % 6 == 0 else pytest.mark.slow)
    for i, command in enumerate(ENDED)
    for j, number in enumerate(SIGNALS[:3])
    for k, unread in enumerate([(), (1, 2)])
]


@pytest.mark.parametrize(("command", "number", "unread"), ENDINGS)
def test_nothing_is_left_half_written(command, number, unread, pipes, tmp_path, monkeypatch):
    words, (module, name), stays = ENDED[command]
    temporary, real = tmp_path / "temporary", getattr(module, name)
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    honest().save("a.zip")
    before = set(tmp_path.rglob("*"))

    def work(*arguments):
        monkeypatch.setattr(module, name, real)
        for stream in unread:
            pipes[stream][0].close()
        signal.raise_signal(number)
        return real(*arguments)

    monkeypatch.setattr(module, name, work)
    with monkeypatch.context() as context:
        for stream, attribute in ((1, "stdout"), (2, "stderr")):
            context.setattr(sys, attribute, pipes[stream][1])
        assert main(words) in ({128 + number, 141} if unread else {128 + number})
    said = [] if unread else os.read(pipes[2][0].fileno(), 1 << 16).decode().splitlines()
    assert len(said) == (not unread)
    assert set(tmp_path.rglob("*")) - before == {tmp_path / name for name in stays}
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
