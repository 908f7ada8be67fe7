"""The preparation of a run tells how far it is, can be stopped, and then goes on where it was."""

import time
import types

import numpy as np
import pytest

from nclone_env import _arrays
from nclone_env.cli.app import main
from nclone_env.cli.progress import StopRequest
from nclone_env.errors import StoppedError
from nclone_env.level import known_solutions, load_levels
from nclone_env.train import Hooks, train
from nclone_env.train.levels import solutions
from nclone_env.train.levels.solutions import Planner

from . import runs

LEVELS = ("first-steps/01-walk", "first-steps/02-step", "first-steps/03-drop")


@pytest.fixture
def searched(monkeypatch, tmp_path_factory):
    """Let known solutions stand in for the planner, none kept so far; return the levels that it is asked for."""
    names, cache = [], tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    monkeypatch.setattr(_arrays, "folder", lambda: cache)

    def solve(level, **options):
        names.append(level.name)
        return types.SimpleNamespace(inputs=np.frombuffer(known_solutions()[level.name], np.uint8), completed=True)

    monkeypatch.setattr(solutions, "solve", solve)
    return names


def config(tmp_path, **fields):
    return runs.config(tmp_path, **{"levels": LEVELS, "starts": ("planned",), "max_frames": 401, **fields})


def stopping_after(count):
    """Return hooks that ask to stop after so many calls of ``on_level``, and the calls."""
    calls = []
    return Hooks(on_level=lambda *call: calls.append(call), stop=lambda: len(calls) >= count), calls


def test_planned_levels_are_counted(tmp_path, searched):
    calls = []
    train(config(tmp_path, num_threads=1), Hooks(on_level=lambda *call: calls.append(call)))
    planned, played = ([(f"solutions {what}", done, 3) for done in (1, 2, 3)] for what in ("planned", "played"))
    assert calls == planned + played
    assert searched == list(LEVELS)
    train(config(tmp_path), Hooks(on_level=lambda *call: calls.append(call)))
    assert calls[6:] == played, "the solutions are kept"


def test_a_stopped_preparation_goes_on_where_it_was(tmp_path, searched):
    settings = config(tmp_path, num_threads=1, max_frames=401)
    hooks, calls = stopping_after(2)
    with pytest.raises(StoppedError, match="stop: asked to end with 2/3 solutions planned"):
        train(settings, hooks)
    assert not list(tmp_path.iterdir()), "no folder is left"
    searched.clear()
    calls.clear()
    done = train(settings, Hooks(on_level=lambda *call: calls.append(call)))
    assert searched == [LEVELS[2]], "the first two are kept"
    assert calls == [("solutions planned", 3, 3), *(("solutions played", done, 3) for done in (1, 2, 3))]
    assert done.counters.updates == 4, "the negative control: a run that nothing stops"


def test_an_error_ends_the_searches_that_wait(searched):
    levels = load_levels(LEVELS)

    def on_level(*call):
        raise StoppedError("now")

    def search(level):
        time.sleep(0.01)
        return solutions.solve(level).inputs

    waiting = Planner(1, Hooks(on_level=on_level))._searched(levels * 20, "", 60, search)
    with pytest.raises(StoppedError):
        list(waiting)
    assert len(searched) < 20


def test_the_command_ends_as_signals_do(tmp_path, searched, monkeypatch, capsys):
    monkeypatch.setattr(StopRequest, "__call__", lambda self: bool(searched))
    monkeypatch.setattr(StopRequest, "exit_status", 130)
    options = ["--starts", "planned", "--max-frames", "401", "--num-threads", "1", "--output", str(tmp_path)]
    assert main(["train", "--levels", *LEVELS, *options]) == 130
    said = capsys.readouterr().out
    assert said.endswith("stopped before the first update; nothing had to be saved, and planned solutions are kept\n")
    assert not list(tmp_path.iterdir())
