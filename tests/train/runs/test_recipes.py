"""Recipes by name: what each kind of levels is trained with."""

import inspect
import shlex
from pathlib import Path

import pytest

from nclone_env.cli.app import main
from nclone_env.cli.train import train, train_command
from nclone_env.errors import ConfigError, UnknownLevelError
from nclone_env.generate.levels import generate_level
from nclone_env.level import load_levels, write_pack
from nclone_env.options import flat
from nclone_env.train.config import TrainConfig
from nclone_env.train.policies.checkpoint import load_checkpoint, restore_config
from nclone_env.train.policies.files import bundled_names, policy_file
from nclone_env.train.runs.recipes import DEFAULTS, purpose, recipe_for, recipe_names
from nclone_env.train.runs.record import read_recipe

ROOT = Path(__file__).parents[3]
NAMES = recipe_names()
OF_THE_RUN = {"levels", "seed", "name", "output", "num_threads", "checkpoint_interval", "evaluation_interval", "track"}
NOT_KEPT = {"starts", "mirrored", "max_frames", "total_timesteps"}
"""Options that bundled policies do not keep, and the length of their last run, which may go on from another."""


def options(recipe):
    return {name: value for name, value in flat(recipe).items() if name not in OF_THE_RUN | NOT_KEPT}


@pytest.fixture
def packs(tmp_path, monkeypatch):
    """Files in the current folder: levels of a player in a pack and as text, and a pack of the generator."""
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_bytes(write_pack([level.raw for level in load_levels("first-steps")]))
    made = generate_level("rooms", seed=1, number=0).level
    Path("made.txt").write_bytes(write_pack([made.raw]))
    assert main(["levels", "convert", "first-steps/01-walk", "walk.toml"]) == 0
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_has_a_name_and_a_purpose_and_is_listed(name):
    recipe = read_recipe(name)
    assert (recipe.name, recipe.init, recipe.made) == (name, None, {})
    assert recipe.differences() == []
    assert 20 < len(purpose(name)) < 120
    assert not purpose(name).startswith("#")
    for page in (inspect.getdoc(train), (ROOT / "docs" / "training" / "levels.md").read_text()):
        assert name in page


def test_every_bundled_policy_but_that_of_the_defaults_has_a_recipe():
    assert set(NAMES) - {DEFAULTS} == set(bundled_names()) - {"builtin"}
    assert read_recipe(DEFAULTS).config == TrainConfig()


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(bundled_names())))
def test_a_recipe_is_that_of_the_policy_of_its_name(name):
    policy = restore_config(load_checkpoint(policy_file(name)))
    assert options(read_recipe(name).config) == options(policy)
    assert options(policy) != options(TrainConfig())


KINDS = {
    "jumps": DEFAULTS,
    "hazards/05-slalom": DEFAULTS,
    "walk.toml": DEFAULTS,
    "generated:0-3": "generated",
    "made.txt": "generated",
    "made.txt#0": "generated",
    "own.txt": "game-lookahead",
    "own.txt#0-2": "game-lookahead",
    "jumps generated:0": "generated",
    "made.txt walk.toml own.txt": "game-lookahead",
}


@pytest.mark.parametrize("levels", KINDS)
def test_the_kind_of_levels_chooses_a_recipe(levels, packs):
    assert recipe_for(levels.split()) == KINDS[levels]
    command = train_command(["train", "--levels", *levels.split(), "--seed", "1"])
    if KINDS[levels] == DEFAULTS:
        assert command is train
    else:
        assert command.keywords["recipe"] == Path(KINDS[levels])
        assert command.keywords["config"] == read_recipe(KINDS[levels]).config


@pytest.mark.parametrize(
    "words",
    [
        "train",
        "train --levels nowhere.txt",
        "train --levels own.txt --init builtin",
        "train --levels own.txt --levels jumps",
        "evaluate --levels own.txt",
    ],
)
def test_without_a_kind_there_is_no_recipe(words, packs):
    assert train_command(words.split()) is train
    with pytest.raises(UnknownLevelError, match=r"got 'nowhere\.txt'"):
        recipe_for(["nowhere.txt"])


def test_a_bundled_policy_is_trained_on_by_the_recipe_of_its_name(packs, capsys):
    words = ["train", "--levels", "own.txt", "--init", "game-motion"]
    assert train_command(words).keywords["config"] == read_recipe("game-motion").config
    assert train_command(["train", "--init=generated"]).keywords["recipe"] == Path("generated")
    assert train_command([*words, "--config", "defaults"]).keywords["config"] == TrainConfig()
    small = "--starts known --num-envs 8 --num-steps 16 --total-timesteps 128 --num-threads 1 --no-video --episodes 1"
    assert main([*words, *small.split(), "--name", "a"]) == 0
    assert "recipe game-motion: " in capsys.readouterr().err
    assert str(read_recipe("runs/a").init) == "game-motion"
    Path("game-motion").write_bytes(b"a policy of the user")
    assert train_command(words) is train


def test_a_recipe_that_is_named_comes_before_that_of_the_levels(packs):
    named = train_command(["train", "--levels", "own.txt", "--config", "generated", "--config=defaults"])
    assert named.keywords["config"] == TrainConfig()
    assert train_command(["train", "--levels", "own.txt"]).keywords["config"] != TrainConfig()


def test_files_come_before_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("generated").mkdir()
    assert read_recipe("generated").name == "generated", "a folder without a run"
    Path("generated/run.toml").write_text("seed = 7\n")
    assert (read_recipe("generated").name, read_recipe("generated").config) == ("", TrainConfig(seed=7))
    with pytest.raises(ConfigError, match=r"or one of defaults, .*, got game-moton: No such .*did you mean 'game-mot"):
        read_recipe("game-moton")


QUICK = shlex.split(
    "--observations game_state --starts known --max-frames 400 --num-envs 8 --num-steps 16 --total-timesteps 128 "
    "--hidden-size 8 --num-threads 1 --no-video --episodes 1 --track none"
)


def test_a_run_says_which_recipe_it_takes_and_its_record_repeats_it(packs, capsys):
    for name, given in (("a", ()), ("b", ("--config", "defaults")), ("c", ("--learning-rate", "0.25"))):
        assert main(["train", "--levels", "own.txt", *QUICK, *given, "--name", name]) == 0
        said = capsys.readouterr().err
        expected = "defaults" if name == "b" else "game-lookahead"
        assert said.startswith(f"recipe {expected}: levels ") or name == "b"
        assert f"recipe {expected}: {purpose(expected)}; --config takes others: " in said
    kept = {name: read_recipe(f"runs/{name}").config for name in "abc"}
    assert kept["a"].environment.reward.death == -1.0
    assert kept["a"].hidden_size == 8, "options that are given come before those of the recipe"
    assert kept["c"] == kept["a"].replace(learning_rate=0.25)
    assert kept["b"].environment.reward.death == TrainConfig().environment.reward.death
    assert main(["train", "--config", "runs/a", "--name", "again", "--no-video", "--episodes", "1"]) == 0
    assert "recipe" not in capsys.readouterr().err
    assert read_recipe("runs/again").config == kept["a"]


def test_built_in_levels_are_trained_as_ever(tmp_path, capsys):
    assert main(["train", "--levels", "first-steps", *QUICK, "--output", str(tmp_path), "--name", "a"]) == 0
    assert capsys.readouterr().err == ""
    config = read_recipe(tmp_path / "a").config
    assert config.environment.reward == TrainConfig().environment.reward
    assert config.ppo == TrainConfig().ppo
