"""The commands ``nclone-env benchmark`` and ``data``; ``tests/compat/test_minari.py`` writes data sets."""

import itertools
import os
import pickle
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest

from nclone_env.benchmark import entries, load_track, read_submission, verify
from nclone_env.benchmark.track import track_levels
from nclone_env.cli.app import main
from nclone_env.cli.progress import LevelProgress, TrainingProgress
from nclone_env.game import INPUT_OF_ACTION, KEYS
from nclone_env.jobs import Evaluating
from nclone_env.jobs import run as run_job
from nclone_env.plan import Solution
from nclone_env.replay.play import Play
from nclone_env.train import TrainConfig, train

from ..docs.pages import ROOT


def run(*words) -> int:
    return main(["benchmark", *map(str, words)])


def test_tracks_are_listed_and_shown(capsys):
    assert run("list") == 0
    assert "Builtin-v1" in capsys.readouterr().out
    assert run("show", "Builtin-v1") == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["digest"] == load_track("Builtin-v1").digest
    assert lines["budgets"] == "4m (4,000,000 steps), 100m (100,000,000 steps), 30min (1,800 seconds)"


def test_a_baseline_becomes_a_row(folder, capsys):
    assert run("run", "Builtin-v1", "--baseline", "random", "--seed", 0, 1, "--output", "random.zip") == 0
    assert run("run", "Builtin-v1", "--baseline", "nearest-exit", "--output", "exit.zip") == 0
    capsys.readouterr()
    assert run("verify", "random.zip", "exit.zip") == 0
    out = capsys.readouterr().out
    assert "random.zip: accepted" in out
    assert "  proved   episodes: 512" in out
    assert "  claimed  mode: state" in out
    assert out.endswith("2 submissions, 0 refused\n")
    assert run("verify", folder) == run("verify", "exit.zip", folder, "random.zip") == 0
    assert capsys.readouterr().out.count("2 submissions, 0 refused\n") == 2
    (folder / "bob").mkdir()
    shutil.copy("random.zip", "bob/MINE.ZIP")
    assert run("table", ".") == 1
    assert "left out: random.zip: it is a copy of bob/MINE.ZIP" in capsys.readouterr().err
    shutil.rmtree("bob")
    assert run("table", "random.zip", "exit.zip", "random.zip", "--force") == 0
    page = (folder / "results.md").read_text()
    assert [line.split(" | ")[0] for line in page.splitlines() if line.startswith(("| random", "| nearest"))] == [
        "| nearest-exit",
        "| random",
    ] * 2
    picture = folder / "results-builtin-v1.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    (folder / "results.md").unlink()
    picture.write_text("mine")
    assert run("table", "random.zip", "exit.zip") == 2
    assert "results-builtin-v1.png: already exists; --force overwrites it" in capsys.readouterr().err
    assert (picture.read_text(), (folder / "results.md").exists()) == ("mine", False)
    assert run("table", "random.zip", "exit.zip", "--no-plots") == 0
    assert picture.read_text() == "mine"
    assert run("table", "random.zip", "exit.zip", "--force") == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("command", ["verify", "table"])
def test_submissions_are_expected(command, folder, capsys):
    (folder / "none").mkdir()
    expected = "files: expected at least one submission or a folder of them, got"
    assert run(command) == run(command, "none") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"nclone-env: {expected} {got}" for got in ("none", "'none', where no name ends in .zip")]


def test_a_refused_submission_is_left_out(folder, capsys):
    run("run", "Builtin-v1", "--baseline", "random", "--output", "random.zip")
    (folder / "bad.zip").write_bytes((folder / "random.zip").read_bytes()[:-30])
    assert run("verify", "bad.zip") == 1
    assert "bad.zip: refused\n  fault    bad.zip: file: expected a submission, a zip file" in capsys.readouterr().out
    assert run("table", "bad.zip", "random.zip", "--no-plots") == 1
    assert "left out: bad.zip" in capsys.readouterr().err


def test_training_runs_are_submitted_with_their_policies(folder, capsys):
    config = TrainConfig.of(
        levels=("first-steps",), observations=("game_state",), total_timesteps=256, num_envs=16, num_steps=16, seed=3
    )
    checkpoint = train(config).checkpoint
    assert run("submit", checkpoint.parent, "--track", "Builtin-v1") == 0
    assert "result.zip: accepted" in capsys.readouterr().out
    found = read_submission(folder / "result.zip").runs[0]
    assert found.seed == 3
    assert found.claimed["steps"] == 256
    assert found.claimed["levels"] == ["first-steps"]
    assert found.policy == checkpoint.read_bytes()
    assert found.probable is not None
    again = verify(folder / "result.zip", policies=True)
    assert again.accepted
    assert again.proved[-1] == "run 0: policy: 272 of 272 episodes chosen again by the included policy"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("submit builtin --track Builtin-v1", "run 0: budget 4m: expected steps of 0 to 4000000, got 10027008"),
        ("submit builtin builtin --track Builtin-v1 --budget 100m", "runs: expected different seeds, got"),
        ("run Builtin-v1 --seed 0 1 0", "seed: expected different ones, got 0 1 0; name each once"),
    ],
)
def test_what_would_be_refused_is_not_played(words, error, folder, capsys):
    assert run(*words.split()) == 2
    assert capsys.readouterr().err.startswith(f"nclone-env: {error}")
    assert list(folder.iterdir()) == []


def test_shards_are_merged_to_the_submission_of_one_process(folder, capsys):
    words = ("submit", "builtin", "--track", "Builtin-v1", "--budget", "100m")
    for number in (2, 1, 2):
        assert run(*words, "--shard", f"{number}/2", "--output", "parts") == 0
    assert "1 of 2 batches of episodes are played; journal shard-2-of-2.journal in parts" in capsys.readouterr().out
    assert main(["merge", "parts", "--output", "joined.zip"]) == 0
    assert verify(folder / "joined.zip").accepted
    job = Evaluating(("builtin",), "Builtin-v1", "state", "100m")
    with ThreadPoolExecutor(2) as executor:
        run_job(job, folder / "one.zip", executor)
    assert (folder / "joined.zip").read_bytes() == (folder / "one.zip").read_bytes()
    pickle.dumps(job.task(0))
    assert run("submit", "a.replay", "--track", "Planning-v1", "--shard", "1/2", "--output", "parts") == 2
    assert "shard: expected none for recordings, which are only read; leave --shard out" in capsys.readouterr().err


def test_what_a_person_plays_becomes_a_row(folder, press, capsys, monkeypatch):
    unseen = lambda play: np.zeros((*play._window.size[::-1], 3), np.uint8)  # noqa: E731
    monkeypatch.setattr(Play, "picture", unseen)
    keys = {bit: key for key, bit in KEYS.items()}
    assert run("show", "Planning-v1") == 0
    levels = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())["levels"]
    assert levels.startswith("100 (generated) in 10 bands, ")
    known = read_submission(ROOT / "docs/submissions/planning-planner.zip").runs[0].sampled
    for number in (0, 3):
        actions = known.actions[known.steps[:number].sum() :][: known.steps[number]]
        inputs = np.array(INPUT_OF_ACTION)[actions]
        press([*(" ".join(keys[bit] for bit in keys if code & bit) for code in inputs), "", "s", "", "escape"])
        assert main(["play", f"{levels.split(', ')[1]}#{number}", "--output", "mine", "--scale", "0.2"]) == 0
    assert run("submit", "mine", "--track", "Planning-v1", "--title", "a person", "--output", "mine.zip") == 0
    found = read_submission(folder / "mine.zip").runs[0].sampled
    assert np.flatnonzero(found.ends["won"]).tolist() == [0, 3]
    assert found.ends["frames"][[0, 3]].tolist() == known.steps[[0, 3]].tolist()
    assert found.ends["frames"][1] == load_track("Planning-v1").max_frames
    assert 0 < found.ends["frames"][20] < 2400  # a ninja that waits is killed there


def test_a_clone_of_the_planner_becomes_a_row(folder, monkeypatch):
    levels = {"builtin": {**entries._PPO["builtin"], "levels": ("first-steps/01-walk",)}}
    monkeypatch.setattr(entries, "_PPO", levels)
    assert run("run", "Builtin-v1", "--baseline", "clone", "--budget", "30min", "--output", "clone.zip") == 0
    found = read_submission(folder / "clone.zip").runs[0]
    assert (found.claimed["steps"], found.claimed["demonstrations"]) == (0, 1)
    assert found.claimed["seconds"] > 0
    assert found.policy is not None
    assert found.sampled.ends["won"][:16].mean() > 0.5  # of the level that was cloned


def stopping(monkeypatch, place, name, number, sent=signal.SIGTERM):
    """Send a signal to this process in the call of a method with some number."""
    calls, method = itertools.count(1), getattr(place, name)

    def call(*args):
        if next(calls) == number:
            os.kill(os.getpid(), sent)
        return method(*args)

    monkeypatch.setattr(place, name, call)


@pytest.mark.parametrize(("sent", "number"), [(signal.SIGTERM, 2), (signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_baseline_that_is_stopped_keeps_the_seeds_that_were_played(sent, number, folder, monkeypatch, capsys):
    stopping(monkeypatch, LevelProgress, "level", number, sent)
    words = ("run", "Builtin-v1", "--baseline", "random", "--seed", 0, 1, 2, "--output", "random.zip")
    assert run(*words) == 128 + sent
    saved = ", saved in random.zip" if number == 2 else ""
    said = f"stopped with {number - 1} of 3 seeds played{saved}; stop: asked to end with 256/256 episodes played, "
    assert capsys.readouterr().out == f"{said}sampled actions\n"
    assert (folder / "random.zip").exists() is bool(saved)
    if saved:
        assert [each.seed for each in read_submission(folder / "random.zip").runs] == [0]
        assert run("verify", "random.zip") == 0


TINY = {"levels": ("first-steps/01-walk",), "num_envs": 16, "num_steps": 16, "hidden_size": 8}


@pytest.mark.parametrize("during", ["training", "evaluation"])
def test_a_stopped_baseline_says_how_to_continue_with_its_training(during, folder, monkeypatch, capsys):
    monkeypatch.setattr(entries, "_PPO", {"builtin": {**entries._PPO["builtin"], **TINY}})
    place = (TrainingProgress, "__call__", 2) if during == "training" else (LevelProgress, "level", 1)
    stopping(monkeypatch, *place)
    assert run("run", "Builtin-v1", "--steps", 1024, "--seed", 5, "--output", "ppo.zip") == 143
    said = capsys.readouterr().out.splitlines()[-1]
    submit = "nclone-env benchmark submit runs/01-walk-seed5 --track Builtin-v1 --mode state --budget 4m --title ppo"
    if during == "training":
        resume = "nclone-env train --resume runs/01-walk-seed5"
        done = "training is saved after 512 timesteps"
        assert said == f"stopped with 0 of 1 seed played; {done}; continue with {resume}, then {submit}"
        assert main([*resume.split()[1:], "--no-video", "--episodes", "1"]) == 0
    else:
        assert said == f"stopped with 0 of 1 seed played; the policy is trained; continue with {submit}"
    assert main([*submit.split()[1:], "--output", "ppo.zip"]) == 0
    (found,) = read_submission(folder / "ppo.zip").runs
    assert (found.seed, found.claimed["steps"]) == (5, 1024)


def test_a_stopped_planner_keeps_its_solutions(folder, monkeypatch, capsys):
    known = read_submission(ROOT / "docs/submissions/planning-planner.zip").runs[0].sampled
    actions = np.split(known.actions, np.cumsum(known.steps)[:-1])
    inputs = {
        level.name: np.array(INPUT_OF_ACTION)[taken]
        for level, taken in zip(track_levels(load_track("Planning-v1")), actions, strict=True)
    }
    monkeypatch.setattr(entries, "solve", lambda level, **_: Solution(inputs[level.name], 1, 0.0, "first"))
    stopping(monkeypatch, LevelProgress, "level", 3)
    (folder / "runs" / "Planning-v1-planner-seed0").mkdir(parents=True)  # of another call
    assert run("run", "Planning-v1", "--baseline", "planner", "--output", "planner.zip") == 143
    said = capsys.readouterr().out.splitlines()[-1]
    kept = "runs/Planning-v1-planner-seed0-2"
    words = f"nclone-env benchmark submit {kept} --track Planning-v1 --mode planning --budget 1m --title planner"
    done = f"solutions of 3 of 100 levels are in {kept}; {words} takes the others as lost"
    assert said == f"stopped with 0 of 1 seed played; {done}"
    assert main([*words.split()[1:], "--output", "planner.zip"]) == 0
    (found,) = read_submission(folder / "planner.zip").runs
    assert np.flatnonzero(found.sampled.ends["won"]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("sources", "error"),
    [
        (("no-such-level",), "no-such-level"),
        (("empty",), "sources: expected submissions, or recordings that finish their level, got ()"),
        ((), "sources: expected submissions, or recordings that finish their level, got ()"),
    ],
)
def test_wrong_sources_are_named(sources, error, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "minari", ModuleType("minari"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["data", "export", *sources, "--name", "a-v0"]) == 2
    assert error in capsys.readouterr().err
