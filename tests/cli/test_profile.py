import itertools
import json
import os
import pickle
import sys
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nclone_env.cli.app import main, with_default_target
from nclone_env.cli.profile import parse_bytes, run, train, train_command
from nclone_env.cli.train import train_command as run_command
from nclone_env.cli.watch import random_runs
from nclone_env.config import EnvironmentConfig
from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING, DEAD
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.load import load_levels
from nclone_env.memory.explain.stats import compute_stats
from nclone_env.memory.measure.measurements import ProfileSettings
from nclone_env.memory.passes import Process, measure
from nclone_env.memory.show import JSON_REPORT, write_reports
from nclone_env.options import flat
from nclone_env.sim.trajectory import simulate
from nclone_env.train.runs.recipes import purpose

from ..memory.by_hand import measurements

SHORT = ["--steps", "12", "--num-envs", "2", "--levels", "first-steps"]
STATE = ["--observations", "game_state"]
TWO_LEVELS = EnvironmentConfig(levels=("first-steps/01-walk", "first-steps/06-hop"))
SMALL_RUN = [*SHORT, "--num-steps", "16", "--num-minibatches", "2", "--hidden-size", "8", "--max-frames", "80"]

profiles = pytest.mark.usefixtures("frozen_heap")


def sizes_here(target):
    """Make one and two environments in this process; a fresh process would get a copy of the target, as here."""
    target = pickle.loads(pickle.dumps(target))
    points = [measure(Process(target, count, 1, traced=False)) for count in (1, 2)]
    return [(point, replace(point, python_bytes=0)) for point in points]


@pytest.fixture
def measured_here(monkeypatch):
    monkeypatch.setattr("nclone_env.memory.passes.measure_one_and_two", sizes_here)


@pytest.fixture(params=["here", pytest.param("fresh", marks=pytest.mark.slow)])
def measured(request):
    """Estimates measure one and two environments: in this process, and in fresh ones with the slow tests."""
    if request.param == "here":
        request.getfixturevalue("measured_here")


@pytest.mark.skipif(sys.platform != "linux", reason="a variable of glibc")
def test_a_command_of_its_own_starts_once_more_without_the_caches_of_threads(monkeypatch, capsys):
    started = []
    monkeypatch.setattr("os.execv", lambda path, command: started.append(command) or exit(7))
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "nclone_env", "profile"])
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=2")
    monkeypatch.setattr("nclone_env.cli.profile.measured", lambda *arguments: exit(8))
    for own, status in (("pytest", 8), ("profile", 7), ("profile", 8)):
        monkeypatch.setattr("sys.argv", ["nclone-env", own])
        with pytest.raises(SystemExit, match=str(status)):
            main(["profile", "vector", *SHORT])
    assert started == [[sys.executable, "-m", "nclone_env", "profile"]]
    assert os.environ["GLIBC_TUNABLES"] == "glibc.malloc.arena_max=2:glibc.malloc.tcache_count=0"


@pytest.fixture(autouse=True)
def no_fresh_processes(monkeypatch):
    """Leave out the fresh processes, which tests/memory/test_sizes.py starts."""
    monkeypatch.setattr("nclone_env.memory.passes.measure_sizes", lambda *arguments: ())


@profiles
def test_the_vector_environment_is_profiled(tmp_path, capsys):
    assert main(["profile", *SHORT, *STATE, "--output-dir", str(tmp_path), "--json", "--html"]) == 0
    content = json.loads((tmp_path / "memory_profiling_report.json").read_text())
    assert content["settings"]["num_envs"] == 2
    assert len(content["snapshots"]) == 13
    assert content["verdict"] in ("flat", "growing")
    assert content["speed"]
    assert content["phases"][0]["name"] == "whole step"
    printed = capsys.readouterr().out
    assert "Memory profile: native vector environment, 2 environments" in printed
    page = (tmp_path / "memory_profiling_report.html").read_text()
    assert "<h1>Memory profile: native vector environment, 2 environments</h1>" in page


@pytest.mark.usefixtures("measured_here")
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["vector", "--contract", "out", "--autoreset", "disabled"], "native vector environment"),
        (["single"], "list of single environments"),
        (["gym"], "list of environments of gymnasium.make"),
        (["sync"], "Gymnasium's SyncVectorEnv"),
    ],
)
def test_every_form_of_environment_has_a_command(words, name, capsys):
    """Their steps are those of tests/profiler."""
    assert main(["profile", *words, *SHORT, *STATE, "--estimate"]) == 0
    assert capsys.readouterr().out.startswith(f"Estimate: {name}, 2 environments")


@profiles
def test_workers_of_asynchronous_environments_are_counted(tmp_path):
    words = ["--steps", "12", "--num-envs", "1", "--levels", "first-steps", *STATE]
    assert main(["profile", "async", *words, "--output-dir", str(tmp_path), "--json"]) == 0
    content = json.loads((tmp_path / "memory_profiling_report.json").read_text())
    assert min(item["worker_bytes"] for item in content["snapshots"]) > 2_000_000
    assert "workers" in [item["quantity"] for item in content["growths"]]


def test_without_a_target_the_vector_environment_is_profiled():
    assert with_default_target(["profile"]) == ["profile", "vector"]
    assert with_default_target(["profile", "--steps", "5"]) == ["profile", "vector", "--steps", "5"]
    assert with_default_target(["profile", "train"]) == ["profile", "train"]
    assert with_default_target(["profile", "--help"]) == ["profile", "--help"]
    assert with_default_target(["run", "--headless"]) == ["run", "--headless"]


def test_a_function_is_profiled(tmp_path, capfd):
    (tmp_path / "mine.py").write_text("import sys\ndef f(): print(sys.argv)")
    with chdir(tmp_path):
        assert main(["profile", "script", "mine:f", "one", "--output-dir", str(tmp_path)]) == 0
    text = capfd.readouterr().out
    assert "['mine:f', 'one']" in text
    assert "Memory profile: mine:f" in text


def test_a_larger_profile_is_told_by_the_exit_status(tmp_path, capsys):
    small = measurements()
    root, *parts = small.owners
    owners = (replace(root, environment_bytes=9 * root.environment_bytes), *parts)
    large = replace(small, settings=ProfileSettings(8), owners=owners)
    for name, measured in (("small", small), ("large", large)):
        write_reports(compute_stats(measured), tmp_path / name, as_json=True)
    before, after = (str(tmp_path / name / JSON_REPORT) for name in ("small", "large"))
    assert main(["profile", "compare", before, before]) == 0
    assert main(["profile", "compare", before, after]) == 1
    assert "different settings: environments: 4 -> 8" in capsys.readouterr().out


@pytest.mark.usefixtures("measured")
def test_an_estimate_is_printed_and_checked(capsys):
    arguments = ["profile", "--estimate", "--num-envs", "1000", *STATE]
    assert main(arguments) == 0
    assert "1,000 environments" in capsys.readouterr().out
    assert main([*arguments, "--memory-limit", "100KB"]) == 2
    printed = capsys.readouterr()
    assert "recycled observations" in printed.out
    assert "100.0 KB allowed" in printed.out
    assert "num_envs: 1,000 need" in printed.err


@pytest.mark.usefixtures("measured")
def test_the_estimate_of_a_training_run(capsys):
    assert main(["profile", "train", "--estimate", *SMALL_RUN]) == 0
    assert "learning curve" in capsys.readouterr().out


@pytest.fixture
def pack(tmp_path, monkeypatch):
    """A pack of levels of a player in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_bytes(write_pack([level.raw for level in load_levels("first-steps")]))


OF_OWN = "profile train --levels own.txt"


@pytest.mark.parametrize(
    ("words", "recipe"),
    [
        (OF_OWN, "game-lookahead"),
        (f"{OF_OWN} --config defaults", "defaults"),
        (f"{OF_OWN} --config=generated", "generated"),
    ],
)
def test_the_run_of_a_profile_has_the_recipe_that_train_takes(words, recipe, pack):
    command, of_run = train_command(words.split()), run_command(words.split()[1:]).keywords["config"]
    assert command.keywords["recipe"] == Path(recipe)
    assert flat(command.keywords["training"]) == flat(of_run)


@pytest.mark.parametrize("words", ["profile train", "profile train --levels jumps", "profile vector --levels own.txt"])
def test_the_run_of_a_profile_is_that_of_the_defaults(words, pack):
    assert train_command(words.split()) is train


@pytest.mark.usefixtures("measured_here")
@pytest.mark.parametrize(("words", "recipe"), [((), "game-lookahead"), (("--config", "generated"), "generated")])
def test_a_profile_says_its_recipe_once(words, recipe, pack, capsys):
    small = [word.replace("first-steps", "own.txt") for word in SMALL_RUN]
    small += ["--starts", "--no-mirrored", *STATE, *words]
    assert main(["profile", "train", "--estimate", *small]) == 0
    said = capsys.readouterr().err
    assert said.count("recipe ") == said.count(f"recipe {recipe}: {purpose(recipe)}; --config takes others: ") == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [(None, None), ("100", 100), ("8GB", 8 << 30), ("1.5 MB", 3 << 19), ("64k", 65536), ("2GiB", 2 << 30), ("3B", 3)],
)
def test_sizes_are_parsed(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "8 apples", "-1MB"])
def test_other_texts_are_refused(text):
    with pytest.raises(ConfigError, match="memory_limit: expected a number and B, KB, MB, GB or TB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["script", "nomodule:f"], "got 'nomodule:f': No module named 'nomodule'"),
        (["script", "json:nofunc"], "got 'json:nofunc': module 'json' has no attribute 'nofunc'"),
        (["script", "json:decoder"], "path: expected a function, got 'json:decoder', which is"),
        (["script", ":f"], "path: expected MODULE:FUNCTION"),
        (["script", "asyncio:open_connection"], "path: expected one that does its work when called, got asyncio:"),
    ],
)
def test_what_cannot_be_profiled_is_named_and_leaves_no_report(words, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["profile", *words]) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


GROWING_SCRIPT = """
import sys, time
watch = sys.modules["nclone_env.memory.passenger"].Passenger.current.watch
kept = []
while not watch._settled or watch._milliseconds() < watch._settled + 4000 or len(watch._log) < 21:
    kept.append(bytes(1000))
    time.sleep(0.001)
"""
"""Ends when there is enough to tell whether it grows, however slow it is."""


def test_a_leaking_script_is_told_with_its_line_and_keeper(tmp_path, capfd):
    (tmp_path / "leak.py").write_text(GROWING_SCRIPT)
    words = ["profile", "script", str(tmp_path / "leak.py"), "--output-dir", str(tmp_path), "--fail-on-growth"]
    assert main(words) == 1
    text = capfd.readouterr().out
    assert "GROWING: " in text
    assert "leak.py:6" in text
    assert "kept by kept (list of" in text


def test_headless_prints_the_speed(capsys):
    words = "--num-envs 4 --steps 10 --levels first-steps --observations game_state --seed 5"
    assert main(["run", "--headless", *words.split()]) == 0
    text = capsys.readouterr().out
    assert "4 environments, 10 steps of random actions, seed 5" in text
    assert "environment steps/s" in text


@pytest.mark.usefixtures("frozen_heap")
def test_a_profile_writes_its_reports_and_prints_the_verdict(capsys, tmp_path):
    words = "--headless --profile-memory --profile-frames 100 --memory-snapshot-interval 10 --num-envs 3 --json"
    assert main(["run", *words.split(), *STATE, "--output-dir", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    texts = {"memory_profiling_report.txt", "profiling_stats.txt"}
    assert names == texts | {"memory_profiling_report.json", "profiling_stats.prof"}
    text = capsys.readouterr().out
    assert "FLAT" in text
    assert str(tmp_path / "out" / "profiling_stats.txt") in text
    content = json.loads((tmp_path / "out" / "memory_profiling_report.json").read_text())
    assert (content["settings"]["num_envs"], len(content["traced"])) == (3, 11)
    assert ["levels", "first-steps"] in content["facts"]
    assert ["autoreset", "same-step"] in content["facts"]


def test_without_headless_a_window_shows_random_play_on_each_level(monkeypatch):
    shown = []
    monkeypatch.setattr("nclone_env.cli.watch.show", lambda views: shown.append(views))
    assert run(levels=TWO_LEVELS.levels, steps=100, seed=3) == 0
    views = [list(itertools.islice(view, 2)) for view in shown[0].runs(endless=True)]
    first, second = ([view[number].inputs for view in views] for number in (0, 1))
    assert len(first) == 2
    assert first != second
    assert first == [each.inputs for each in random_runs(TWO_LEVELS, 100, 3)]


def test_random_actions_are_held_and_an_episode_ends_with_its_end():
    level = "hazards/01-mind-the-mine"
    (played,) = random_runs(EnvironmentConfig(levels=(level,)), 1000, 0)
    states = simulate(played.level, played.inputs).state
    assert states[-1] in (DEAD, CELEBRATING)
    assert not np.isin(states[:-1], (DEAD, CELEBRATING)).any()
    assert len(played.inputs) < 4000
    held = np.array(played.inputs[: len(played.inputs) // 4 * 4]).reshape(-1, 4)
    assert (held == held[:, :1]).all()
