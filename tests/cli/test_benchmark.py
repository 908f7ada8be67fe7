"""The commands ``nclone-env benchmark`` and ``data``; ``tests/compat/test_minari.py`` writes data sets."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest

from nclone_env.benchmark import entries, load_track, read_submission, verify
from nclone_env.cli.app import main
from nclone_env.game import INPUT_OF_ACTION, KEYS
from nclone_env.jobs import Evaluating
from nclone_env.jobs import run as run_job
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
    assert run("table", "random.zip", "exit.zip") == 0
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
    assert run("submit", checkpoint.parent, "--track", "Builtin-v1", "--output", "mine.zip") == 0
    found = read_submission(folder / "mine.zip").runs[0]
    assert found.seed == 3
    assert found.claimed["steps"] == 256
    assert found.claimed["levels"] == ["first-steps"]
    assert found.policy == checkpoint.read_bytes()
    assert found.probable is not None
    again = verify(folder / "mine.zip", policies=True)
    assert again.accepted
    assert again.proved[-1] == "run 0: policy: 272 of 272 episodes chosen again by the included policy"


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


def test_minari_is_needed(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "minari", None)
    assert main(["data", "export", "first-steps", "--name", "a-v0"]) == 2
    assert 'minari is not installed; run pip install ".[minari]"' in capsys.readouterr().err


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
