"""The track of the game, with stand-ins for the packs that a user brings."""

import hashlib
from dataclasses import replace

import pytest

from nclone_env.benchmark import load_track, training_levels, verify
from nclone_env.benchmark import track as track_module
from nclone_env.cli.app import main
from nclone_env.errors import ConfigError
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.load import load_levels


@pytest.fixture
def packs(tmp_path, monkeypatch):
    """Two packs of built-in levels in the place of those of the game; of the first, two of five are evaluated."""
    monkeypatch.chdir(tmp_path)
    rows, digests, files = [], {}, {}
    for name, levels, evaluated in (("S", "jumps", (0, 3)), ("SI", "first-steps", range(6))):
        found = load_levels(levels)
        files[name] = tmp_path / f"{name}.txt"
        files[name].write_bytes(write_pack([level.raw for level in found]))
        digests[name] = hashlib.sha256(files[name].read_bytes()).hexdigest()
        row = load_track("Game-v1").levels[0]
        rows += [row._replace(reference=f"{name}#{n}", digest=found[n].raw.digest[:16]) for n in evaluated]
    track = replace(load_track("Game-v1"), packs=digests, levels=tuple(rows), max_frames=600)
    monkeypatch.setattr(track_module, "_read_track", lambda name: track)
    return files


def run(*words) -> int:
    return main(["benchmark", *map(str, words)])


def test_a_fifth_of_a_tab_and_a_whole_other_one():
    track = load_track("Game-v1")
    assert {name: part.stop - part.start for name, part in track.parts.items()} == {"S": 120, "SI": 125}
    assert [level.reference for level in track.levels[:7]] == [f"S#{n}" for n in (0, 6, 12, 18, 24, 25, 31)]
    assert [level.reference for level in track.levels[120:]] == [f"SI#{n}" for n in range(125)]


def test_training_levels_are_those_that_are_not_evaluated(packs):
    (levels,) = training_levels(load_track("Game-v1"), packs)
    assert levels == f"{packs['S']}#1,2,4"
    assert [level.raw.digest for level in load_levels(levels)] == [
        load_levels("jumps")[n].raw.digest for n in (1, 2, 4)
    ]


def test_other_tracks_say_in_words_what_may_be_trained_on():
    with pytest.raises(ConfigError, match=r"track: expected one of the game, got .* on levels of the generator"):
        training_levels(load_track("Generated-v1"), {})


def test_from_packs_to_a_row(packs, capsys):
    given = [f"{name}={path}" for name, path in packs.items()]
    assert run("run", "Game-v1", "--baseline", "nearest-exit", "--output", "exit.zip", "--packs", *given) == 0
    assert verify("exit.zip", packs).episodes == 8 * 16
    assert run("table", "exit.zip", "--no-plots", "--output", "page.md", "--packs", *given) == 0
    lines = (packs["S"].parent / "page.md").read_text().splitlines()
    place = lines.index("Mean success in percent by pack:")
    assert lines[place + 2] == "| policy | mode | S | SI |"
    assert lines[place + 4].startswith("| nearest-exit | state | ")
    assert run("verify", "exit.zip") == 2
    assert "packs: expected --packs S=FILE, a pack with SHA-256 " in capsys.readouterr().err


def test_the_ppo_trains_on_the_training_levels(packs, monkeypatch):
    given = [f"{name}={path}" for name, path in packs.items()]
    configs = []
    monkeypatch.setattr("nclone_env.benchmark.entries.train", lambda config, hooks: configs.append(config) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("run", "Game-v1", "--packs", *given)
    assert configs[0].environment.levels == (f"{packs['S']}#1,2,4",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda packs: packs.pop("SI"), r"packs: expected --packs SI=FILE, a pack with SHA-256 \w{16}\.\.\., got S; "),
        (lambda packs: packs.update(S=packs["SI"]), r"packs: expected S with SHA-256 \w{64}, got \w{64} of .*SI.txt"),
        (lambda packs: packs.update(S=packs["S"].parent / "x"), r"packs: expected S in .*x, got No such file"),
    ],
)
def test_missing_and_other_packs_are_refused(packs, change, message):
    change(packs)
    with pytest.raises(ConfigError, match=message):
        training_levels(load_track("Game-v1"), packs)
