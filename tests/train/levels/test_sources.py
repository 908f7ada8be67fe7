"""The levels of a run, and their split into a training and a held-out part."""

import itertools

import numpy as np
import pytest

from nclone_env import EnvironmentConfig
from nclone_env.errors import ConfigError, LevelFormatError, UnknownLevelError
from nclone_env.generate import generated_levels
from nclone_env.level import level_sets, load_level, load_levels
from nclone_env.level.formats.text import format_text
from nclone_env.train.config import TrainConfig
from nclone_env.train.levels.sources import policy_levels, run_levels, split_levels

from ...level.level_bases import make_level, make_pack


@pytest.fixture
def pack(tmp_path):
    """A pack of twenty levels, of which 3 and 7 are equal but for their titles."""
    spots = [min(n, 3) if n == 7 else n for n in range(20)]
    levels = (make_level([(0, 10 + spot, 82, 0, 0)], title=f"level {n}") for n, spot in enumerate(spots))
    path = tmp_path / "pack.txt"
    path.write_bytes(make_pack(*levels))
    return path


def test_the_parts_are_disjoint_and_complete_and_in_order():
    training, held_out = split_levels(("first-steps", "hazards"), 0.3, seed=0)
    names = [*level_sets()["first-steps"], *level_sets()["hazards"]]
    assert len(held_out) == round(0.3 * len(names))
    assert sorted([*training, *held_out], key=names.index) == names
    for part in (training, held_out):
        assert list(part) == sorted(part, key=names.index)


def test_the_split_depends_on_the_seed_alone():
    assert split_levels(("first-steps",), 0.5, 3) == split_levels(("first-steps",), 0.5, 3)
    assert len({split_levels(("first-steps",), 0.5, seed) for seed in range(10)}) > 3


def test_the_held_out_levels_are_the_first_of_a_permutation(pack):
    names = tuple(f"{pack}#{n}" for n in range(20) if n != 7)
    expected = sorted(np.random.default_rng(5).permutation(19)[:5].tolist())
    assert split_levels((str(pack),), 5 / 19, 5)[1] == tuple(names[place] for place in expected)


def test_every_reference_is_accepted_again(pack, tmp_path):
    (tmp_path / "one.toml").write_text(format_text(make_level([(0, 99, 82, 0, 0)], title="one")))
    sources = ("first-steps/01-walk", f"{pack}#0-4,9", str(tmp_path / "one.toml"))
    training, held_out = split_levels(sources, 0.5, 1)
    again = {load_level(name).raw.digest for name in (*training, *held_out)}
    assert again == {level.raw.digest for level in load_levels(sources)}
    assert EnvironmentConfig(levels=training).levels == training
    assert "first-steps/01-walk" in training + held_out


def test_equal_levels_count_once_whatever_their_names(pack, tmp_path):
    (tmp_path / "copy.toml").write_text(format_text(make_level([(0, 12, 82, 0, 0)], title="a copy of level 2")))
    training, held_out = split_levels((str(pack), f"{pack}#0-5", str(tmp_path / "copy.toml")), 0.25, 0)
    names = {*training, *held_out}
    assert len(names) == len(training) + len(held_out) == 19
    assert f"{pack}#3" in names
    assert f"{pack}#7" not in names


@pytest.mark.parametrize(
    ("levels", "share", "message"),
    [
        (("first-steps",), 0.05, r"held_out: 0\.05 of 6 levels \(.*\) leaves no level to hold out; choose a share"),
        (("first-steps",), 0.95, r"held_out: 0\.95 of 6 levels \(.*\) leaves no level to train on; choose a share"),
        (("first-steps/01-walk",) * 2, 0.5, r"of 1 levels \(first-steps/01-walk\) .*; name more levels"),
    ],
)
def test_shares_that_leave_a_part_empty(levels, share, message):
    with pytest.raises(ConfigError, match=message):
        split_levels(levels, share, 0)


def test_wrong_names(pack):
    with pytest.raises(UnknownLevelError, match="did you mean 'first-steps'"):
        split_levels(("first-step",), 0.5, 0)
    pack.write_bytes(b"$broken#00#\n" * 2)
    with pytest.raises(LevelFormatError, match="line 1"):
        split_levels((str(pack),), 0.5, 0)


def test_levels_are_generated_before_a_run(tmp_path, monkeypatch, pack):
    """The name says what to do, unless a file has it."""
    monkeypatch.chdir(tmp_path)
    config = TrainConfig.of(levels=("jumps", "generated"))
    with pytest.raises(
        ConfigError, match=r"levels: expected .* 'nclone-env levels generate .*--starts train-rec[^\n]*$"
    ):
        run_levels(config)
    pack.rename("generated")
    assert run_levels(config) == (("jumps", "generated"), ())
    assert policy_levels(TrainConfig.of(levels=("generated",))) == ("generated",)


def test_a_run_can_train_on_generated_levels_by_name_and_hold_some_out():
    config = TrainConfig.of(levels=("generated:0-7:rooms:seed-3",), held_out=0.25)
    training, out = run_levels(config)
    assert (len(training), len(out)) == (6, 2)
    assert {*training, *out} == {f"generated:{number}:rooms:seed-3" for number in range(8)}


def test_bundled_policies_play_held_out_levels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nclone_env.train.levels.sources._SHOWN", 4)
    trained = TrainConfig.of(levels=("generated",), split_seed=5, max_frames=700)
    levels = policy_levels(trained)
    expected = generated_levels(seed=5, split="held-out")
    assert [level.raw.digest for level in levels] == [
        made.level.raw.digest for made in itertools.islice(expected, 16) if len(made.inputs) <= 700
    ][:4]
    assert policy_levels(TrainConfig.of(levels="jumps")) == ("jumps",)
