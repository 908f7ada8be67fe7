"""Levels of the generator by name."""

import itertools

import pytest

from nclone_env.errors import ConfigError, UnknownLevelError
from nclone_env.generate import generate_level, generated_levels, names
from nclone_env.level import load_levels, resolve


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Keep the levels of each test in a folder of its own; kernels stay where they are."""
    monkeypatch.setattr("nclone_env._arrays.cache_root", lambda: tmp_path / "cache")
    names._kept.cache_clear()
    yield
    names._kept.cache_clear()


def digests(name: str) -> list[str]:
    return [level.raw.digest for level in load_levels(name)]


def test_a_name_denotes_the_levels_of_its_collection(monkeypatch):
    made = [each.level.raw.digest for each in itertools.islice(generated_levels(["rooms", "caves"], 3), 4)]
    assert digests("generated:0-3:rooms,caves:seed-3") == made
    assert len({*made, *digests("generated:0-1:rooms,caves:seed-4")}) == 6  # another seed has others
    names._kept.cache_clear()
    monkeypatch.setattr(names, "generate_level", None)  # from now on all are read from the disk
    assert digests("generated:3,0:seed-3:rooms,caves") == [made[3], made[0]]


def test_difficulty_and_split_belong_to_a_name():
    (level,) = load_levels("generated:5:held-out:20..60:caves")
    made = generate_level("caves", 0, 5, split="held-out", difficulty=(20, 60))
    assert (level.name, level.raw.digest) == ("generated:5:held-out:20..60:caves", made.level.raw.digest)
    assert digests("generated:5:caves") != [made.level.raw.digest]


def test_nothing_is_made_before_a_level_is_loaded(monkeypatch):
    monkeypatch.setattr(names, "generate_level", None)
    refs = resolve("generated:0-255:20..60")
    assert [refs[0].name, refs[-1].reference, len(refs)] == ["generated:0:20..60", "generated:255:20..60", 256]
    with pytest.raises(TypeError):
        refs[0].load()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("generated", r"did you mean 'generated:0-255'\?"),
        ("generated:", "expected numbers behind 'generated:'"),
        ("generated:all", "expected numbers behind 'generated:'"),
        ("generated:5-1", "write 1-5"),
        ("generated:0-999999998", "expected a list of at most 100000 levels, got '0-999999998' in 'gen.*; name fewer"),
        ("generated:" + ",".join(["0-49999"] * 3), "expected a list of at most 100000 levels, got '0-49999' in"),
        ("generated:0:cave", "expected families .* or seed-7 behind the numbers, got 'generated:0:cave'"),
        ("generated:0:90..10", "difficulty: expected a range"),
    ],
)
def test_what_is_no_name_is_refused(name, message):
    with pytest.raises((UnknownLevelError, ConfigError), match=message):
        resolve(name)
