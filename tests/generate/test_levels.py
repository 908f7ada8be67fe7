"""What holds for every generated level, and for a collection in files."""

import hashlib
import re
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from nclone_env.errors import ConfigError
from nclone_env.game import CELEBRATING, DEAD, EXIT, EXIT_SWITCH, GOLD, kind_name
from nclone_env.generate import levels
from nclone_env.generate.candidate import groups_of, shows, split_of
from nclone_env.generate.difficulty import EASIEST
from nclone_env.generate.families import BY_KIND, DEFAULT_FAMILIES, FAMILIES, NEEDED
from nclone_env.generate.levels import CollectionFiles, PackEntry, generate_level, generated_levels, write_collection
from nclone_env.generate.runs import least_clearance, random_wins
from nclone_env.level import build_room, pack, resolve, validate, write_pack
from nclone_env.level.formats import reader
from nclone_env.sim.trajectory import simulate

from .bases import CASES, made

GOLDEN = {
    "rooms": "4dc4da22a2966030",
    "caves": "abf7ef1f1a5ac5e4",
    "shafts": "a9213b9992553a31",
    "mazes": "d473f65771e85b64",
    "minefields": "2f9321105fc0703c",
    "patrols": "c6648c4016a0aab9",
    "turrets": "5f18ab218a8c22c7",
    "pads": "4d94fa3a26a8fd2f",
    "slopes": "418bd316f6448697",
    "motifs": "b92983acbfb48a8d",
}
"""The first 16 digits of SHA-256 over the digest of level 0 of seed 3 and its solution: they never change."""
MORE_MOTIFS = ("5a7901cddad1ee73", "fd538ed511dff82b", "495644ca472cf3b5")
"""Those of the next levels of that family."""


def fingerprint(level) -> str:
    return hashlib.sha256(level.level.raw.digest.encode() + level.inputs.tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(("family", "number"), CASES)
class TestEveryLevel:
    def test_its_recording_completes_it_in_the_last_frame(self, family, number):
        level = made(family, number)
        verdict = level.recording().verify()
        assert verdict.agrees
        assert (verdict.state, verdict.frames) == (CELEBRATING, len(level.inputs))
        assert level.difficulty.shortest == len(level.inputs)

    def test_it_is_well_formed(self, family, number):
        raw = made(family, number).level.raw
        assert validate(raw) == []
        kinds = Counter(raw.records[:, 0].tolist())
        assert kinds[EXIT] == kinds[EXIT_SWITCH] == 1
        assert kinds[GOLD] > 0
        edge = np.concatenate([raw.tiles[0], raw.tiles[-1], raw.tiles[:, 0], raw.tiles[:, -1]])
        assert (edge == 1).all()

    def test_nothing_is_inside_a_wall(self, family, number):
        raw = made(family, number).level.raw
        for kind, x, y, *_ in raw.records.tolist():
            column, row = (x - 4) // 4, (y - 4) // 4
            around = raw.tiles[row - (y % 4 == 0) : row + 1, column - (x % 4 == 0) : column + 1]
            assert (around != 1).any(), (kind, x, y)

    def test_the_start_is_on_the_ground_and_safe(self, family, number):
        run = simulate(made(family, number).level, bytes(60))
        assert (run.state < DEAD).all()
        assert abs(run.y[-1] - run.y[0]) <= 2.0
        assert not run.airborne[-1]

    def test_random_play_seldom_completes_it(self, family, number):
        level = made(family, number)
        if level.difficulty.number >= EASIEST:
            assert level.difficulty.random_wins < 0.05 * level.difficulty.random_runs

    def test_what_it_contains_matters(self, family, number):
        level = made(family, number)
        levels = pack([level.level])
        assert [group for group, _ in level.witnesses] == groups_of(level.level, family in BY_KIND)
        assert all(shows(level.level, levels, group, inputs) for group, inputs in level.witnesses)
        needed = NEEDED.get(family)
        assert needed is None or any(kind_name(group[0][0]) in needed for group, _ in level.witnesses)

    def test_what_was_measured_can_be_measured_again(self, family, number):
        level = made(family, number)
        assert least_clearance(pack([level.level]), level.inputs) == level.difficulty.clearance
        assert 0 <= level.difficulty.number <= 100
        assert level.difficulty.effort > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_bytes(family):
    assert fingerprint(made(family, 0)) == GOLDEN[family]


@pytest.mark.slow
def test_the_next_motifs_are_the_same_too():
    assert tuple(fingerprint(made("motifs", number)) for number in (1, 2, 3)) == MORE_MOTIFS


def test_another_seed_number_or_split_gives_other_bytes():
    others = [made("slopes", 0, seed=4), made("slopes", 1), made("slopes", 0, split="held-out")]
    assert len({fingerprint(level) for level in (made("slopes", 0), *others)}) == 4


def test_the_order_in_which_levels_are_made_does_not_matter():
    families = ("slopes", "caves")
    first = list(islice(generated_levels(families, seed=3), 3))
    assert [level.family for level in first] == ["slopes", "caves", "slopes"]
    alone = [generate_level(level.family, 3, level.number) for level in reversed(first)]
    assert [fingerprint(level) for level in first] == [fingerprint(level) for level in reversed(alone)]


@pytest.mark.parametrize("family", ["slopes", "caves"])
def test_a_level_belongs_to_its_split(family):
    for split in ("train", "held-out"):
        assert split_of(made(family, 0, split=split).level.raw.tiles) == split


def test_the_difficulty_is_as_asked():
    low, high = (generate_level("slopes", 3, 0, difficulty=bounds).difficulty for bounds in ((10, 40), (60, 90)))
    assert 10 <= low.number <= 40
    assert 60 <= high.number <= 90


def test_a_range_without_levels_is_an_error_that_says_why(monkeypatch):
    monkeypatch.setattr(levels, "ATTEMPTS", 8)
    message = r"difficulty: .* got 0\.\.0: none of 8 sketches .*\((.*other difficulty: \d+.*)\); widen the range"
    with pytest.raises(ConfigError, match=message) as raised:
        generate_level("slopes", difficulty=(0, 0))
    assert sum(map(int, re.findall(r": (\d+)", re.search(message, str(raised.value))[1]))) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "castles"}, "family: expected one of rooms, .*, got 'castles'"),
        ({"family": "rooms", "seed": -1}, "seed: expected .* at least 0, got -1"),
        ({"family": "rooms", "number": -1}, "number: expected .* at least 0, got -1"),
        ({"family": "rooms", "split": "test"}, "split: expected one of train, held-out, got 'test'"),
        ({"family": "rooms", "difficulty": (60, 20)}, r"difficulty: expected a range within 0\.\.100.*got 60\.\.20"),
        ({"family": "rooms", "difficulty": (0, 101)}, r"difficulty: expected a range .*got 0\.\.101"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        generate_level(**arguments)


def test_a_collection_without_named_families_has_the_first_nine():
    assert tuple(FAMILIES)[:9] == DEFAULT_FAMILIES
    assert [made.family for made in islice(generated_levels(seed=3), 2)] == ["rooms", "caves"]


def test_no_families_are_an_error():
    with pytest.raises(ConfigError, match="families: expected at least one of rooms, "):
        next(generated_levels(()))


@pytest.mark.slow
def test_a_sweep_of_levels_has_these_properties_and_no_duplicates():
    every = {split: generated_levels(tuple(FAMILIES), seed=8, split=split) for split in ("train", "held-out")}
    levels = {split: list(islice(several, 30)) for split, several in every.items()}
    digests = Counter(level.level.raw.digest for made in levels.values() for level in made)
    assert max(digests.values()) == 1
    for split, several in levels.items():
        assert {level.family for level in several} == set(FAMILIES)
        for level in several:
            assert level.recording().verify().state == CELEBRATING
            assert split_of(level.level.raw.tiles) == split
            assert validate(level.level.raw) == []
    hard = [level.level for level in levels["train"] if level.difficulty.number >= EASIEST]
    wins = [random_wins(pack([level]), 100, 77) for level in hard]
    assert np.mean(wins) < 1  # percent


def test_recordings_of_a_pack_whose_replacement_was_killed_do_not_stay(tmp_path, monkeypatch):
    files, unlink = CollectionFiles(tmp_path / "pack.txt"), Path.unlink

    def written(version: int) -> list[str]:
        entries = (
            PackEntry(b"x", {"recording": name}, name, b"x") for name in (f"0-{version}.replay", f"1-{version}.replay")
        )
        write_collection(files, entries)
        return sorted(path.name for path in files.folder.iterdir())

    def killed(path: Path, missing_ok: bool = False) -> None:
        if path.name == "0-0.replay":
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    written(0)
    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        written(1)
    monkeypatch.undo()
    assert written(1) == ["0-1.replay", "1-1.replay"]


def test_a_large_pack_gets_an_index(tmp_path, monkeypatch):
    files = CollectionFiles(tmp_path / "pack.txt")
    for limit, names in ((1 << 26, {"pack.txt"}), (1_000, {"pack.txt", "pack.txt.index"})):
        monkeypatch.setattr(reader, "MAX_FILE_SIZE", limit)
        lines = [write_pack([build_room(f"gold {number} 50").raw]) for number in range(40, 45)]
        made = (PackEntry(line, {"number": n}, f"{n}.replay", b"x") for n, line in enumerate(lines))
        assert write_collection(files, made) == 5
        assert {path.name for path in tmp_path.glob("pack.txt*")} == names
    index = np.load(tmp_path / "pack.txt.index")
    assert index.tolist()[-2] == [5, len(b"".join(lines[:4])), len(b"".join(lines)) - 1]
    (ref,) = resolve(f"{files.pack}#3")
    assert write_pack([ref.load().raw]) == lines[3]
