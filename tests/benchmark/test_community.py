"""The track of many authors: levels by digest, in stand-ins for the packs that a user brings."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nclone_env.benchmark import Score, load_track, training_levels, verify
from nclone_env.benchmark import track as track_module
from nclone_env.benchmark.entries import Entered
from nclone_env.benchmark.scores import headline, interval_over_authors, score
from nclone_env.benchmark.track import track_levels
from nclone_env.cli.app import main
from nclone_env.errors import ConfigError
from nclone_env.level.formats.pack_text import write_pack
from nclone_env.level.load import load_levels


def track_of(**sets):
    """Return a track of three levels of each of these sets, as by authors of the names; the others are reserved."""
    real = load_track("Community-v1")
    rows, reserved = [], set()
    for author, name in sets.items():
        digests = [level.raw.digest[:16] for level in load_levels(name)]
        rows += [real.levels[0]._replace(reference=f"{author}#{n}", digest=d) for n, d in enumerate(digests[2:5])]
        reserved |= {*digests[:2], *digests[5:]}
    return replace(real, levels=tuple(rows), reserved=frozenset(reserved), max_frames=600, attempts=4)


@pytest.fixture
def track(tmp_path, monkeypatch):
    """Two authors, whose packs lie in folders of other names, among files that are no levels."""
    monkeypatch.chdir(tmp_path)
    for path, name in (("tabs/x/b.txt", "jumps"), ("tabs/a.txt", "first-steps")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(write_pack([level.raw for level in load_levels(name)]))
    (tmp_path / "tabs" / "x" / "b.txt").open("ab").write(b"$cut#" + b"0" * 3000 + b"#\n")
    (tmp_path / "tabs" / "AUTHORS").write_text("some names\n")
    (tmp_path / "tabs" / "empty").mkdir()
    found = track_of(ann="jumps", bob="first-steps")
    monkeypatch.setattr(track_module, "_read_track", lambda name: found)
    return found


def run(*words) -> int:
    return main(["benchmark", *map(str, words)])


def test_five_authors_of_twenty_levels_each():
    track = load_track("Community-v1")
    assert track.authors == 5
    assert [part.stop - part.start for part in track.parts.values()] == [20] * 5
    digests = [level.digest for level in track.levels]
    assert len(track.reserved) == 2085
    assert track.reserved.isdisjoint(digests)
    for part in track.parts.values():
        assert digests[part] == sorted(digests[part])
    assert load_track("Game-v1").authors == load_track("Generated-v1").authors == 0


def test_levels_are_found_by_digest_whatever_their_files_are_called(track, tmp_path, monkeypatch):
    levels = track_levels(track, {"any": tmp_path})
    assert [level.name for level in levels] == ["ann#0", "ann#1", "ann#2", "bob#0", "bob#1", "bob#2"]
    expected = load_levels("jumps")[2:5] + load_levels("first-steps")[2:5]
    assert [level.raw.digest for level in levels] == [level.raw.digest for level in expected]
    files = {"1": tmp_path / "tabs" / "a.txt", "2": tmp_path / "tabs" / "x"}
    assert [level.name for level in track_levels(track, files)] == [level.name for level in levels]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(track_levels(track, {"any": "~/tabs"})) == 6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), r"with the packs ann, bob, got no folder: 6 of the 6 levels of .* \(3 of ann, 3 of bob\); put"),
        (("--packs", "tabs/a.txt"), r"got tabs/a.txt: 3 of the 6 levels of Community-v1 are missing \(3 of ann\)"),
        (("--packs", "tabs/empty"), r"got tabs/empty: 6 of the 6 levels"),
    ],
)
def test_missing_levels_are_counted(track, capsys, given, message):
    assert run("run", "Community-v1", "--baseline", "nearest-exit", *given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(message, error)


def test_from_a_folder_to_a_row(track, tmp_path, capsys):
    given = ("--packs", "tabs")
    assert run("run", "Community-v1", "--baseline", "nearest-exit", "--output", "exit.zip", *given) == 0
    assert "(mean), 95 % interval of the mean over 2 authors " in capsys.readouterr().out
    found = verify("exit.zip", {"any": tmp_path})
    assert (found.episodes, found.authors) == (6 * 4, 2)
    assert run("table", "exit.zip", "--no-plots", "--output", "page.md", *given) == 0
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert "Cells are means over levels and seeds, with intervals of a bootstrap over packs" in "\n".join(lines)
    assert lines[lines.index("Mean success in percent by pack:") + 2] == "| policy | mode | ann | bob |"
    assert run("show", "Community-v1") == 0
    assert "packs     ann, bob, in any files of --packs FOLDER\n" in capsys.readouterr().out


def test_a_policy_that_was_trained_on_other_levels_of_the_packs_is_refused(tmp_path):
    (tmp_path / "pack.txt").write_bytes(write_pack([level.raw for level in load_levels("motifs-1")]))
    packs = {"any": tmp_path}
    track = track_of(ann="motifs-1")
    seen = load_levels("hazards")[0].raw.digest[:16]  # one of those that the policy ``builtin`` learned
    with pytest.raises(ConfigError, match=rf"not trained on levels of Community-v1 or its packs, got .*\['{seen}'\]"):
        Entered("builtin", replace(track, reserved=track.reserved | {seen}), "state", packs)
    assert len(Entered("builtin", track, "state", packs).episodes.tasks) == 2


def test_training_levels_are_up_to_the_user():
    with pytest.raises(ConfigError, match=r"got Community-v1; a policy may be trained on levels of no pack that is"):
        training_levels(load_track("Community-v1"), {})


def test_the_ppo_trains_on_levels_of_the_generator(track, monkeypatch, tmp_path):
    class Files:
        pack = "made.txt"

        def recordings(self, numbers):
            return [f"made/{number}.replay" for number in numbers]

    configs = []
    monkeypatch.setattr("nclone_env.benchmark.entries._generated", lambda order, count: Files())
    monkeypatch.setattr("nclone_env.benchmark.entries.train", lambda config, hooks: configs.append(config) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("run", "Community-v1", "--packs", "tabs")
    assert configs[0].environment.levels == ("made.txt",)


def test_intervals_draw_authors_then_levels_then_seeds():
    authors = np.array([[0.0] * 20 + [1.0] * 20])  # of one seed: all levels of an author are alike
    assert interval_over_authors(authors, 2) == (0.0, 1.0), "both samples may be of one author, half of the time"
    low, high = interval_over_authors(authors, 1)  # control: as if all levels were by one
    assert 0.3 < low < 0.5 < high < 0.7
    assert interval_over_authors(authors, 2) == interval_over_authors(authors, 2)
    mixed = np.tile([[0.0, 1.0]], (1, 20))  # all authors are alike, their levels are not
    assert interval_over_authors(mixed, 2) == pytest.approx((0.35, 0.65), abs=0.06)  # of 40 tosses of a coin
    seeds = np.array([[0.0] * 40, [1.0] * 40])
    assert interval_over_authors(seeds, 2) == pytest.approx((0.39, 0.61), abs=0.06)  # of 80


def test_a_score_over_authors_has_an_interval_of_its_mean():
    values = np.zeros((1, 40))
    values[0, :4] = 1.0
    found = score(values, 2)
    assert (found.iqm, found.mean) == (0.0, 0.1)
    assert 0.0 <= found.low < 0.1 < found.high
    assert headline(track_of(ann="jumps", bob="first-steps"), found) == 0.1
    assert headline(load_track("Builtin-v1"), Score(0.2, 0.3, None, None)) == 0.2
    assert score(values).low is None
