"""The policies that ship with the package."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest

import nclone_env
from nclone_env.cli.app import main
from nclone_env.errors import CheckpointError, ConfigError
from nclone_env.train import bundled_names, evaluate, load_checkpoint, policy_card, policy_file
from nclone_env.train.runs.bundled import FOLDER

NAMES = bundled_names()


def test_there_are_policies_and_a_card_for_each():
    assert "builtin" in NAMES
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(
        f"{name}{suffix}" for name in NAMES for suffix in (".pt", ".toml")
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_of_this_file(name):
    data, card = (FOLDER / f"{name}.pt").read_bytes(), policy_card(name)
    assert hashlib.sha256(data).hexdigest() == card["sha256"]
    assert hashlib.sha256(data[:-1] + bytes([data[-1] ^ 1])).hexdigest() != card["sha256"]
    assert len(data) < 1_000_000
    assert card["licence"] == "MIT"
    for row in card["scores"]:
        assert 0 <= row["low"] <= row["sampled"] <= row["high"] <= 1
        assert row["sampled"] <= row["any"] <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_file_holds_what_plays_and_no_more(name):
    found, card = load_checkpoint(policy_file(name)), policy_card(name)
    assert found.counters["timesteps"] == card["steps"]
    assert found.train_config["seed"] == card["seed"]
    for part in (found.optimiser, found.episodes, found.environments, found.selection, found.reference):
        assert part == {}
    assert found.generated == found.held_out == {}
    assert all(array.numel() == 0 for array in found.observations.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_wins_the_sample_of_its_card(name):
    tried = policy_card(name)["sample"]
    policy = nclone_env.load_policy(name, levels=tried["levels"])
    results = evaluate(policy.network, policy.environment, "sampled", tried["episodes"], tried["seed"])
    won = [round(result.success_rate * result.episodes) for result in results]
    # rounding on another processor may change a sampled action, and with it an episode
    assert sum(abs(one - other) for one, other in zip(won, tried["won"], strict=True)) <= 2


def test_a_checkpoint_of_the_user_has_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert policy_file("builtin") == FOLDER / "builtin.pt"
    (tmp_path / "builtin").mkdir()
    assert policy_file("builtin") == FOLDER / "builtin.pt"  # the folder of something else
    (tmp_path / "builtin" / "checkpoint.pt").touch()
    assert policy_file("builtin") == tmp_path.relative_to(tmp_path) / "builtin" / "checkpoint.pt"
    for path in ("./builtin.pt", FOLDER / "nosuch.pt", "../policies/builtin"):
        with pytest.raises(CheckpointError, match="or name a bundled policy: builtin"):
            policy_file(path)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(CheckpointError, match=r"or name a bundled policy: builtin.*did you mean 'builtin'\?$"):
        nclone_env.load_policy("bulitin")
    with pytest.raises(ConfigError, match=r"^policy: expected one of builtin.*; did you mean 'builtin'\?$"):
        policy_card("bulitin")


def test_the_commands_take_the_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "builtin", "--levels", "first-steps/01-walk", "--episodes", "4", "--no-video"]) == 0
    assert "100.0%" in capsys.readouterr().out
    assert (tmp_path / "runs" / "builtin-evaluation" / "evaluation.txt").is_file()
    assert main(["watch", "builtin", "--levels", "first-steps/01-walk", "--output", "walk.gif"]) == 0
    options = ["--levels", "first-steps/01-walk", "--num-envs", "16", "--num-steps", "16", "--total-timesteps", "256"]
    assert main(["train", "--init", "builtin", *options, "--episodes", "4", "--no-video"]) == 0
    assert main(["benchmark", "submit", "builtin", "--track", "Builtin-v1", "--budget", "100m"]) == 0
    assert "result.zip: accepted" in capsys.readouterr().out
    assert {path.suffix for path in FOLDER.iterdir()} == {".pt", ".toml"}


def test_the_list_and_the_card_are_printed(capsys):
    assert main(["policies", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in listed for name in NAMES)
    assert listed in (Path(__file__).parents[3] / "docs" / "training" / "use.md").read_text()
    assert main(["policies", "show", "builtin"]) == 0
    shown = capsys.readouterr().out
    card = tomllib.loads((FOLDER / "builtin.toml").read_text())
    assert card["sha256"] in shown
    assert card["commands"][0] in shown
