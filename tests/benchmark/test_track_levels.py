"""The levels of tracks, by their digests."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from nclone_env.benchmark import load_track
from nclone_env.benchmark import track_levels as module
from nclone_env.errors import ConfigError
from nclone_env.level.formats import write_pack
from nclone_env.level.load import load_levels


def test_built_in_levels():
    levels = module.track_levels(load_track("Builtin-v1"))
    assert len(levels) == 16
    assert levels[0].name == "first-steps/01-walk"


@pytest.mark.parametrize(("name", "count"), [("Generated-v1", 1000), ("Planning-v1", 100)])
def test_generated_levels_are_part_of_the_package(name, count):
    track = load_track(name)
    levels = module.track_levels(track)
    assert [level.raw.digest[:16] for level in levels] == [level.digest for level in track.levels]
    assert len(levels) == count


def test_another_level_is_refused():
    track = load_track("Planning-v1")
    other = replace(track, levels=(track.levels[0]._replace(digest="0" * 16), *track.levels[1:]))
    with pytest.raises(ConfigError, match=r"levels: expected \w+/\d+ with digest 0{16}, got \w{16}"):
        module.track_levels(other)


def test_packs_are_pinned(tmp_path):
    levels = load_levels("jumps")
    data = write_pack([level.raw for level in levels])
    (tmp_path / "A.txt").write_bytes(data)
    (tmp_path / "B.txt").write_bytes(data + b"\n")
    track = load_track("Builtin-v1")
    rows = tuple(track.levels[6 + n]._replace(reference=f"A#{n}") for n in (0, 3))
    track = replace(track, source="packs", packs={"A": hashlib.sha256(data).hexdigest()}, levels=rows)
    found = module.track_levels(track, {"A": tmp_path / "A.txt"})
    assert [level.raw.digest for level in found] == [levels[n].raw.digest for n in (0, 3)]
    with pytest.raises(ConfigError, match=r"packs: expected A with SHA-256 \w{64}, got \w{64} of "):
        module.track_levels(track, {"A": tmp_path / "B.txt"})
    with pytest.raises(ConfigError, match=r"packs: expected --packs A=FILE, a pack with SHA-256 .* got none"):
        module.track_levels(track)
